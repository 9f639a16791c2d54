"""Real kills walk the ladder to its end and stop there; ends of any other kind move nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.e2e.test_kills import POOL, SERVER, decisions, fill_pool, served
from tests.e2e.test_serving import BUFFER_BYTES
from tests.support import bursts, chart
from tests.support.kubectl import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.kubectl import Kubectl
    from tests.support.models import Model

WRITTEN_WITHIN_SECONDS = 2.0
APPLIED_WITHIN_SECONDS = 5.0
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def kill_and_wait(model: Model, known: int) -> dict[str, Any]:
    """One burst; the decision on it, after it was written and applied in time and the server is back."""
    bursts.provoke_kill(model, 1500)  # over the limit whatever state is held
    seen = time.monotonic()
    until("a decision", lambda: len(handled(model)) > known or None, timeout_seconds=10, every_seconds=0.05)
    written_after = time.monotonic() - seen
    bursts.until_running(model)
    up = time.monotonic()
    until("limits applied", lambda: acknowledged(model) or None, timeout_seconds=20, every_seconds=0.1)
    applied_after = time.monotonic() - up
    assert written_after < WRITTEN_WITHIN_SECONDS
    assert applied_after < APPLIED_WITHIN_SECONDS
    return until("the decision in status", lambda: last_decision(model))


def last_decision(model: Model) -> dict[str, Any] | None:
    """The newest decision on a kill; None before the first."""
    told = decisions(model)
    return told[-1] if told else None


def handled(model: Model) -> list[dict[str, Any]]:
    """Kills that the record holds as decided."""
    kills: list[dict[str, Any]] = bursts.record(model)["handled"]
    return kills


def acknowledged(model: Model) -> bool:
    """Whether the server reports the generation that is written."""
    generation: int = bursts.written(model)["generation"]
    return model.metrics().get("llamapool_limits_generation") == generation


def test_kills_walk_the_ladder_to_master_behaviour_a_lower_budget_and_degraded_and_stop_there(
    create: Callable[..., Model],
) -> None:
    model = served(create, cooldownSeconds=0)
    reasons: list[str] = []
    while reasons[-1:] != ["NoStepLeft"]:
        if len(reasons) < 2:
            fill_pool(model)
        else:
            bursts.hold_state(model, f"story number {len(reasons)}", turns=6)
        reasons.append(kill_and_wait(model, len(handled(model)))["reason"])
        assert len(reasons) < 20, reasons
    assert reasons[:2] == ["PoolHalved", "PoolTurnedOff"]
    assert set(reasons[2:-1]) == {"StateBudgetLowered"}
    assert model.until_condition("Degraded")["reason"] == "NoStepLeft"
    assert model.until_condition("Ready", "False")["reason"] == "OOMLooping"
    written = bursts.written(model)
    for _ in range(3):
        kill_and_wait(model, len(handled(model)))
    assert bursts.written(model) == written
    assert model.chat("still there?")["usage"]["completion_tokens"] > 0


def test_a_pool_that_held_too_little_to_matter_keeps_its_cap(create: Callable[..., Model]) -> None:
    model = create(
        limit="3Gi",  # of which the two buffers that the pool has ready are less than a thirty-second part
        pool={**POOL, "limitPercent": 1},
        server=SERVER,
        podTemplate=bursts.POD_TEMPLATE,
    )
    model.until_condition("Ready")
    model.chat("hello")
    model.until_condition("LimitsApplied")
    until("something held", lambda: 0 < model.metrics()["llamapool_pool_held_bytes"] <= 2 * BUFFER_BYTES)
    written = bursts.written(model)
    time.sleep(2)  # the server's last words tell of it
    bursts.provoke_kill(model, 3000)
    entry = until("a decision", lambda: last_decision(model), timeout_seconds=10)
    bursts.until_running(model)
    assert entry["evidence"]["poolHeldBytes"] > 0
    assert (entry["reason"], entry["outcome"]) == ("MemoryOutsideState", "NothingChanged")
    assert bursts.written(model) == written


def test_a_drained_node_and_a_pod_deleted_without_grace_change_no_limit(
    create: Callable[..., Model], kubectl: Kubectl
) -> None:
    model = served(create, cooldownSeconds=0)
    fill_pool(model)
    before, pod = bursts.written(model), model.pod()
    node = pod["spec"]["nodeName"]
    selector = f"--pod-selector=llamapool.dev/model={model.name}"
    kubectl("drain", node, selector, "--delete-emptydir-data", "--timeout", "2m")
    kubectl("uncordon", node)
    pod = model.another_pod(pod)
    model.until_condition("Ready")
    bursts.until_running(model)
    kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    model.another_pod(pod)
    bursts.until_running(model)
    model.until_condition("LimitsApplied")
    assert decisions(model) == []
    assert bursts.written(model) == before


def test_a_probe_that_fails_changes_no_limit(create: Callable[..., Model]) -> None:
    liveness = {
        "exec": {"command": ["sh", "-c", f"! test -e {bursts.FOLDER}/unwell"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    overlay = {
        "spec": {
            **bursts.POD_TEMPLATE["spec"],
            "containers": [{**bursts.POD_TEMPLATE["spec"]["containers"][0], "livenessProbe": liveness}],
        }
    }
    model = create(pool=POOL, server=SERVER, podTemplate=overlay)
    model.until_condition("Ready")
    model.chat("hello")
    time.sleep(6)
    before = bursts.written(model)
    pod = model.pod()["metadata"]["name"]
    model.kubectl("exec", pod, "-c", "server", "--", "touch", f"{bursts.FOLDER}/unwell")
    until("a restart", lambda: model.restarts() > 0, timeout_seconds=120)
    bursts.drain(model, "unwell")
    bursts.until_running(model)
    entry = until("a decision", lambda: last_decision(model))
    assert entry["reason"] == "ProbeKilled"
    assert bursts.written(model) == before


def test_a_model_that_does_not_fit_while_loading_is_said_to_be_so(create: Callable[..., Model]) -> None:
    # A context whose keys and values alone take several times the limit; they are touched while it loads.
    model = create(server={**SERVER, "contextSize": 131072}, limit="256Mi")
    entry = until("a decision", lambda: last_decision(model), timeout_seconds=120)
    assert (entry["reason"], entry["evidence"]["phase"]) == ("LoadingOOM", "loading")
    assert entry["outcome"] == "NothingChanged"
    cap_bytes = bursts.written(model)["poolCapBytes"]
    until("a second kill", lambda: len(handled(model)) > 1, timeout_seconds=120)
    assert bursts.written(model)["poolCapBytes"] == cap_bytes


def test_an_init_container_that_is_killed_for_memory_changes_no_limit(create: Callable[..., Model]) -> None:
    image = chart.image("llama-server")
    hog = {
        "name": "hog",
        "image": image,
        "command": ["sh", "-c", "x=$(head -c 200M /dev/zero | tr '\\0' x)"],
        "resources": {"limits": {"memory": "32Mi"}},
        "securityContext": RESTRICTED,
    }
    model = create(server=SERVER, podTemplate={"spec": {"initContainers": [hog]}})
    entry = until("a decision", lambda: last_decision(model), timeout_seconds=60)
    assert (entry["reason"], entry["evidence"]["phase"]) == ("InitOOM", "init")
    assert entry["outcome"] == "NothingChanged"


def test_an_eviction_changes_no_limit(create: Callable[..., Model]) -> None:
    scratch = {"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}
    mount = {"name": "scratch", "mountPath": "/scratch"}
    overlay = {"spec": {"volumes": [scratch], "containers": [{"name": "server", "volumeMounts": [mount]}]}}
    model = create(server=SERVER, podTemplate=overlay)
    model.until_condition("Ready")
    model.chat("hello")
    time.sleep(6)
    before = bursts.written(model)
    pod = model.pod()["metadata"]["name"]
    model.kubectl("exec", pod, "-c", "server", "--", "sh", "-c", "head -c 8M /dev/zero > /scratch/f")
    entry = until("a decision", lambda: last_decision(model), timeout_seconds=120)
    assert entry["reason"] == "Evicted"
    assert bursts.written(model)["poolCapBytes"] == before["poolCapBytes"]
