"""How fast and how exactly faults are answered on the test node: build/bench/tuning.json.

Each fault is a real kill: a memory-backed volume of the pod is filled in one burst while the pool holds
buffers, so that each calls for a step. Between faults tuning is switched off and on, which gives it back.
Several models have their faults at the same time.
Run inside the node: ``python -m tests.cluster exec -- python -m tests.bench.tuning``.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubernetes import client, config, watch

from llamapool.domain.trial import Result
from tests.bench import machine
from tests.e2e.conftest import SMALL, SMALL_FILE
from tests.e2e.test_kills import POOL, SERVER
from tests.simulator.trials import null_trial
from tests.support import bursts, chart
from tests.support.kubectl import Kubectl, until
from tests.support.models import Model, manifest, provide_model, samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OUTPUT = Path(__file__).parents[2] / "build" / "bench" / "tuning.json"
NAMESPACE = "bench-tuning"
_NULL_TRIALS = 1000
_BURST_MEBIBYTES = 1500  # over the limit whatever state is held
_LEAST_HELD_BYTES = (1536 << 20) // 32
"""The pool is to blame from 1/32 of the limit on."""
_BLACK_BOX_SECONDS = 1.2
"""The server writes its last words every second."""
_EVERY_SECONDS = 0.05


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the faults and the simulated trials, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--models", type=int, default=3)
    asked = parser.parse_args(arguments)
    kubectl = _prepare()
    config.load_kube_config()
    numbers = iter(range(1, asked.faults + 1))
    with ThreadPoolExecutor(asked.models) as threads:
        runs = threads.map(lambda name: _befall(kubectl, name, numbers), _names(asked.models))
        served = list(runs)
    figures = {
        **_figures(served),
        "null_trials": _null_trials(),
        "machine": machine.describe(),
    }
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures))  # noqa: T201
    kubectl("delete", "hybridmodels", "--all", "--wait")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a fault was answered.

    Attributes:
        decisions: on it; 1 is right.
        reason: of the last decision.
        decided_seconds: from the kubelet's first word of it to the record that holds the decision.
        applied_seconds: from when both the server was up again and the limits were written, until the server
            had them in effect.
    """

    decisions: int
    reason: str
    decided_seconds: float
    applied_seconds: float

    @property
    def seconds(self) -> float:
        """From the fault seen to its answer in effect, without the wait for the server's restart."""
        return self.decided_seconds + self.applied_seconds

    def __str__(self) -> str:
        return f"{self.reason}, decided after {self.decided_seconds:.2f} s, in all {self.seconds:.2f} s"


@dataclass
class Witness:
    """Notes when pod and ConfigMap change: from watches, as the operator itself learns it.

    Attributes:
        model_name: of the model.
        pod_name, address: of its pod; both outlive its containers.
        killed_at: when each end of a container was first told, by its container id; monotonic seconds.
        decided_at: when a record that counts so many kills was first told; monotonic seconds.
        limits: limits.json, the latest.
        record: record.json, the latest.
    """

    model_name: str
    pod_name: str
    address: str
    killed_at: dict[str, float] = field(default_factory=dict)
    decided_at: dict[int, float] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for follow in (self._follow_pod, self._follow_record):
            threading.Thread(target=follow, daemon=True).start()
        until("the first look at both", lambda: bool(self.record))

    @property
    def decided(self) -> int:
        """Kills that were decided so far."""
        return sum(self.record["kills"].values())

    def generation(self) -> float | None:
        """The generation that the server reports; None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:9090/metrics", timeout=1) as page:
                return samples(page.read()).get("llamapool_limits_generation")
        except OSError:
            return None

    def in_effect(self) -> bool:
        """Whether the server reports the limits that are written."""
        written: int = self.limits["generation"]
        return self.generation() == written

    def _follow_pod(self) -> None:
        api = client.CoreV1Api()
        while True:  # the API server ends a watch now and then
            for event in watch.Watch().stream(
                api.list_namespaced_pod, NAMESPACE, field_selector=f"metadata.name={self.pod_name}"
            ):
                for status in event["raw_object"]["status"].get("containerStatuses", []):
                    for state in (status["state"], status["lastState"]):
                        if "terminated" in state:
                            self.killed_at.setdefault(state["terminated"]["containerID"], time.monotonic())

    def _follow_record(self) -> None:
        api = client.CoreV1Api()
        while True:
            for event in watch.Watch().stream(
                api.list_namespaced_config_map,
                NAMESPACE,
                field_selector=f"metadata.name={self.model_name}-limits",
            ):
                data = event["raw_object"]["data"]
                self.limits, self.record = json.loads(data["limits.json"]), json.loads(data["record.json"])
                self.decided_at.setdefault(self.decided, time.monotonic())


@dataclass(frozen=True, kw_only=True)
class Served:
    """What befell one model.

    Attributes:
        answers: one a fault.
        restarts: of its server.
        kills: that its record counts.
    """

    answers: list[Answer]
    restarts: int
    kills: int


def _names(models: int) -> list[str]:
    return [f"chat-{number}" for number in range(1, models + 1)]


def _prepare() -> Kubectl:
    chart.install()
    kubectl = Kubectl(NAMESPACE)
    kubectl.ensure_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    provide_model(kubectl, SMALL_FILE, SMALL)
    return kubectl


def _befall(kubectl: Kubectl, name: str, numbers: Iterator[int]) -> Served:
    """Serve a model, and take faults for it from the common list until there are none left."""
    model = _serve(kubectl, name)
    pod = model.pod()
    witness = Witness(name, pod["metadata"]["name"], pod["status"]["podIP"])
    answers = []
    for number in numbers:
        answers.append(_fault(model, witness, number))
        print(f"bench-tuning: fault {number}, {name}: {answers[-1]}", flush=True)  # noqa: T201
    return Served(answers=answers, restarts=model.restarts(), kills=witness.decided)


def _serve(kubectl: Kubectl, name: str) -> Model:
    spec = {
        "pool": POOL,
        "server": SERVER,
        "tuning": {"cooldownSeconds": 0},
        "podTemplate": bursts.POD_TEMPLATE,
    }
    kubectl.apply(manifest(name, SMALL_FILE, limit="1536Mi", **spec))
    model = Model(kubectl, name)
    model.until_condition("Ready")
    model.chat("hello")
    return model


def _fault(model: Model, witness: Witness, number: int) -> Answer:
    """Provoke one kill, and measure its answer; the kubelet's wait before the restart does not count."""
    _give_back(model, witness)
    _hold_buffers(model, number)
    until("limits in effect", witness.in_effect)
    time.sleep(_BLACK_BOX_SECONDS)
    known, before = set(witness.killed_at), witness.decided
    bursts.provoke_kill(model, _BURST_MEBIBYTES)
    (killed,) = until("the kill told", lambda: set(witness.killed_at) - known or None, every_seconds=0.05)
    until("the kill decided", lambda: witness.decided > before, every_seconds=_EVERY_SECONDS)
    until("the server up", witness.generation, every_seconds=_EVERY_SECONDS)
    up = time.monotonic()
    until("the answer in effect", witness.in_effect, every_seconds=_EVERY_SECONDS)
    applied = time.monotonic()
    bursts.until_running(model)
    decided_at = witness.decided_at[before + 1]
    return Answer(
        decisions=witness.decided - before,
        reason=witness.record["decisions"][0]["reason"],
        decided_seconds=max(0.0, decided_at - witness.killed_at[killed]),
        applied_seconds=applied - max(up, decided_at),
    )


def _give_back(model: Model, witness: Witness) -> None:
    """Switch tuning off and on, so that the ladder is at its top again."""
    for mode in ("Off", "Auto"):
        patch = json.dumps({"spec": {"tuning": {"memory": mode}}})
        model.kubectl("patch", "hm", model.name, "--type", "merge", "--patch", patch)
        until("all given back", lambda: witness.record["ladder"]["pool"] == "Full")


def _hold_buffers(model: Model, number: int) -> None:
    """Let the pool hold enough to be blamed: a conversation of some turns, and another one in its place."""
    bursts.hold_state(model, f"rivers of run {number}", turns=4)
    bursts.hold_state(model, f"islands of run {number}", turns=1)
    held_bytes = model.metrics()["llamapool_pool_held_bytes"]
    if held_bytes < _LEAST_HELD_BYTES:
        raise AssertionError(f"the pool holds {held_bytes:.0f} bytes, too few to be blamed")


def _figures(served: list[Served]) -> dict[str, Any]:
    """Sum up; restarts and kills beyond the faults are ends that nobody provoked."""
    answers = [answer for one in served for answer in one.answers]
    seconds = sorted(answer.seconds for answer in answers)
    return {
        "faults": len(answers),
        "decided_once": sum(answer.decisions == 1 for answer in answers),
        "missed": sum(answer.decisions == 0 for answer in answers),
        "doubled": sum(answer.decisions > 1 for answer in answers),
        "models": len(served),
        "restarts": sum(one.restarts for one in served),
        "kills": sum(one.kills for one in served),
        "fault_to_applied_seconds": _spread(seconds),
        "fault_to_decided_seconds": _spread(sorted(answer.decided_seconds for answer in answers)),
    }


def _spread(ordered: list[float]) -> dict[str, float]:
    p99 = ordered[min(len(ordered) - 1, -(-len(ordered) * 99 // 100) - 1)]
    return {"p50": round(statistics.median(ordered), 3), "p99": round(p99, 3)}


def _null_trials() -> dict[str, int]:
    draw = random.Random(20261202)  # noqa: S311 - a simulation
    acted = sum(null_trial(draw) is Result.POOL_HARMS for _ in range(_NULL_TRIALS))
    return {"run": _NULL_TRIALS, "acted": acted}


if __name__ == "__main__":
    main()
