"""How fast and how exactly faults are answered on the test node: build/bench/tuning.json.

Each fault is a real kill: a memory-backed volume of the pod is filled in one burst while the pool holds
buffers, so that each calls for a step. Between faults tuning is switched off and on, which gives it back.
Run inside the node: ``python -m tests.cluster exec -- python -m tests.bench.tuning``.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamapool.domain.trial import Result
from tests.e2e.conftest import SMALL, SMALL_FILE
from tests.simulator.trials import null_trial
from tests.support import bursts, chart
from tests.support.kubectl import CommandError, Kubectl, until
from tests.support.models import Model, manifest, provide_model

if TYPE_CHECKING:
    from collections.abc import Sequence

OUTPUT = Path(__file__).parents[2] / "build" / "bench" / "tuning.json"
NAMESPACE = "bench-tuning"
_NULL_TRIALS = 1000
_BURST_MEBIBYTES = 1500  # over the limit whatever state is held
_POOL = {"mode": "Auto", "limitPercent": 25, "idleTrimSeconds": 0}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the faults and the simulated trials, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=50)
    faults = parser.parse_args(arguments).faults
    model = _serve()
    seconds = []
    for number in range(1, faults + 1):
        seconds.append(_fault(model, number))
        print(f"bench-tuning: fault {number} of {faults}: applied after {seconds[-1]:.2f} s", flush=True)  # noqa: T201
    figures = {**_exactness(model, faults), **_spread(seconds), "null_trials": _null_trials()}
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures))  # noqa: T201
    model.kubectl("delete", "hybridmodels", "--all", "--wait")


def _serve() -> Model:
    chart.install()
    kubectl = Kubectl(NAMESPACE)
    kubectl.ensure_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    provide_model(kubectl, SMALL_FILE, SMALL)
    spec = {
        "pool": _POOL,
        "server": {"slots": 2, "contextSize": 2048, "ctxCheckpoints": 4, "cacheRAM": 0},
        "tuning": {"cooldownSeconds": 0},
        "podTemplate": bursts.POD_TEMPLATE,
    }
    kubectl.apply(manifest("chat", SMALL_FILE, limit="1536Mi", **spec))
    model = Model(kubectl, "chat")
    model.until_condition("Ready")
    model.chat("hello")
    return model


def _fault(model: Model, number: int) -> float:
    """Provoke one kill, and return how long its answer took.

    Until it was written, and, once the server was up again, until the server had it in effect. The kubelet's
    wait before the restart does not count.
    """
    _give_back(model)
    for topic in ("rivers", "mountains", "forests"):
        bursts.hold_state(model, f"{topic} of run {number}", turns=5)
    for topic in ("islands", "lakes"):
        bursts.hold_state(model, f"{topic} of run {number}", turns=1)
    decided = _decided(model)
    bursts.provoke_kill(model, _BURST_MEBIBYTES)
    seen = time.monotonic()
    until("the fault decided", lambda: _decided(model) > decided or None, every_seconds=0.05)
    written = time.monotonic()
    until("the server up", lambda: _generation(model) is not None or None, every_seconds=0.05)
    up = time.monotonic()
    until(
        "the answer in effect",
        lambda: _generation(model) == bursts.written(model)["generation"] or None,
        every_seconds=0.05,
    )
    applied = time.monotonic()
    bursts.until_running(model)
    return (written - seen) + (applied - max(up, written))


def _give_back(model: Model) -> None:
    """Switch tuning off and on, so that the ladder is at its top again."""
    for mode in ("Off", "Auto"):
        patch = json.dumps({"spec": {"tuning": {"memory": mode}}})
        model.kubectl("patch", "hm", model.name, "--type", "merge", "--patch", patch)
        until("tuning switched", lambda: bursts.record(model)["ladder"]["pool"] == "Full" or None)


def _generation(model: Model) -> float | None:
    """Generation that the server reports; None while it does not answer."""
    try:
        return model.scrape_once().get("llamapool_limits_generation")
    except (CommandError, OSError):
        return None


def _decided(model: Model) -> int:
    return sum(bursts.record(model)["kills"].values())


def _exactness(model: Model, faults: int) -> dict[str, Any]:
    """Compare what the record counts with the faults that were made."""
    decided, restarts = _decided(model), model.restarts()
    return {
        "faults": faults,
        "decided_once": min(faults, decided),
        "missed": max(0, restarts - decided),
        "doubled": max(0, decided - restarts),
    }


def _spread(seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, -(-len(ordered) * 99 // 100) - 1)]
    figures = {"p50": round(statistics.median(ordered), 3), "p99": round(p99, 3)}
    return {"fault_to_applied_seconds": figures}


def _null_trials() -> dict[str, int]:
    draw = random.Random(20261202)  # noqa: S311 - a simulation
    acted = sum(null_trial(draw) is Result.POOL_HARMS for _ in range(_NULL_TRIALS))
    return {"run": _NULL_TRIALS, "acted": acted}


if __name__ == "__main__":
    main()
