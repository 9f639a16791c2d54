"""Kills for memory, for real: each decided once, by one step, in seconds; other ends change nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.e2e.test_serving import BUFFER_BYTES, cap_of
from tests.support import bursts
from tests.support.kubectl import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.models import Model

POOL = {"mode": "Auto", "limitPercent": 25, "idleTrimSeconds": 0}  # 10 buffers of 38 MiB of 1.5 GiB
# Few checkpoints a slot, so that what is in use leaves room for pooled buffers.
# One thread: two that wait for each other in every layer crawl where the machine has other work, too.
SERVER = {
    "slots": 2,
    "contextSize": 2048,
    "ctxCheckpoints": 4,
    "cacheRAM": 0,
    "extraArgs": ["--threads", "1"],
}
PLANNED_BUFFERS = 10


def served(create: Callable[..., Model], *, idle_trim_seconds: int = 0, **tuning: Any) -> Model:
    """A model with a volume to fill, that has made its first checkpoint."""
    model = create(
        limit="1536Mi",
        pool={**POOL, "idleTrimSeconds": idle_trim_seconds},
        server=SERVER,
        tuning=tuning,
        podTemplate=bursts.POD_TEMPLATE,
    )
    model.until_condition("Ready")
    model.chat("hello")
    until("the plan's cap", lambda: cap_of(model, PLANNED_BUFFERS * BUFFER_BYTES))
    return model


def fill_pool(model: Model) -> None:
    """Leave released checkpoints in the pool: conversations of several turns, each replaced by the next."""
    for topic in ("rivers", "mountains", "forests", "deserts"):
        bursts.hold_state(model, topic, turns=5)
    for topic in ("islands", "lakes"):
        bursts.hold_state(model, topic, turns=1)
    metrics = model.metrics()
    state = {name: metrics[name] for name in sorted(metrics) if "pool" in name or "checkpoint" in name}
    assert metrics["llamapool_pool_held_bytes"] >= 2 * BUFFER_BYTES, state


def decisions(model: Model) -> list[dict[str, Any]]:
    """Decisions on kills, the oldest first."""
    entries = model.status().get("decisions", [])
    return [entry for entry in reversed(entries) if "kill" in entry["evidence"]]


def test_a_kill_with_a_full_pool_halves_the_cap_and_the_server_comes_back_with_it(
    create: Callable[..., Model],
) -> None:
    model = served(create)
    fill_pool(model)
    ended = bursts.provoke_kill(model, 1340)
    seen = time.monotonic()
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    until("a decision", lambda: decisions(model) or None, timeout_seconds=5, every_seconds=0.1)
    assert time.monotonic() - seen < 5
    bursts.until_running(model)
    until("half the cap", lambda: cap_of(model, PLANNED_BUFFERS // 2 * BUFFER_BYTES), timeout_seconds=10)
    (decision,) = decisions(model)
    assert (decision["reason"], decision["evidence"]["cause"]) == ("PoolHalved", "ContainerOOM")
    assert decision["evidence"]["phase"] == "steady"
    assert model.chat("and now?")["usage"]["completion_tokens"] > 0


def test_a_kill_with_nothing_held_changes_no_limit_and_names_memory_outside(
    create: Callable[..., Model],
) -> None:
    model = served(create, idle_trim_seconds=1)
    written = model.status()["limits"]["written"]
    until("an empty pool", lambda: model.metrics()["llamapool_pool_held_bytes"] == 0)
    time.sleep(2)  # the server's last words tell of it
    bursts.provoke_kill(model, 1500)  # with what the server needs beside state, over the limit
    until("a decision", lambda: decisions(model) or None, timeout_seconds=10)
    bursts.until_running(model)
    assert [entry["reason"] for entry in decisions(model)] == ["MemoryOutsideState"]
    assert model.status()["limits"]["written"] == written
    assert model.until_condition("Degraded")["reason"] == "MemoryOutsideState"


def test_a_server_that_is_stopped_from_outside_changes_no_limit(create: Callable[..., Model]) -> None:
    model = served(create)
    written = model.status()["limits"]["written"]
    pod = model.pod()
    name = pod["metadata"]["name"]
    model.kubectl("exec", name, "-c", "server", "--", "sh", "-c", "kill -TERM 1")
    until("a restart", lambda: model.restarts() > 0, timeout_seconds=60)
    bursts.until_running(model)
    model.kubectl("delete", "pod", name, "--wait")
    model.another_pod(pod)
    bursts.until_running(model)
    time.sleep(2)
    assert decisions(model) == [] or {entry["reason"] for entry in decisions(model)} <= {"Killed"}
    assert model.status()["limits"]["written"] == written


def test_a_process_beside_the_server_that_is_killed_is_seen_while_the_server_lives(
    create: Callable[..., Model],
) -> None:
    model = served(create)
    pod = model.pod()["metadata"]["name"]
    # A shell that grows past what the server holds: the kernel picks it, and the server lives on.
    grow = "x=$(head -c 1450M /dev/zero | tr '\\0' x); echo ${#x}"
    model.kubectl("exec", pod, "-c", "server", "--", "sh", "-c", f"({grow}) || true")
    until("a decision", lambda: decisions(model) or None, timeout_seconds=15)
    (decision,) = decisions(model)
    assert decision["evidence"]["cause"] == "ChildOOM"
    assert model.restarts() == 0
