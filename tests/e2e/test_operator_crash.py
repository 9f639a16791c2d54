"""The operator dies by SIGKILL at any moment; what it left half done is finished, once."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_serving import BUFFER_BYTES, cap_of
from tests.support.kubectl import Kubectl, until
from tests.support.models import MEBIBYTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.models import Model


def operator_processes(operator: Kubectl) -> list[int]:
    """Process ids, as the host sees them, of the operator's containers."""
    uids = [pod["metadata"]["uid"] for pod in operator.list("pods")]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            cgroups, command = (folder / "cgroup").read_text(), (folder / "cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if b"llamapool" in command and any(uid in cgroups for uid in uids):
            found.append(int(folder.name))
    return found


def kill(operator: Kubectl) -> None:
    """SIGKILL the operator, once it runs."""
    for process in until("a running operator", lambda: operator_processes(operator) or None):
        os.kill(process, signal.SIGKILL)


def assert_decided_once(model: Model) -> None:
    """Every decision in the record stands in the status once and was told once."""
    decisions = model.status()["decisions"]
    identities = [decision["id"] for decision in decisions]
    assert len(identities) == len(set(identities))

    def told() -> bool:
        events = [event for event in model.kubectl.list("events") if event["reason"] == "PoolCapChanged"]
        return len(events) == len(identities) and all(event.get("count", 1) == 1 for event in events)

    until("one event a decision", told, timeout_seconds=30)


@pytest.mark.parametrize("delay_seconds", [0.0, 0.2, 0.5, 1.0])
def test_a_kill_while_a_model_is_created_converges(
    create: Callable[..., Model], operator: Kubectl, delay_seconds: float
) -> None:
    model = create()
    time.sleep(delay_seconds)
    kill(operator)
    model.until_condition("Ready")
    model.chat("hello")
    until("two buffers", lambda: cap_of(model, 2 * BUFFER_BYTES))
    model.until_condition("LimitsApplied")
    assert_decided_once(model)


def test_kills_while_the_cap_moves_lose_no_decision_and_double_none(
    create: Callable[..., Model], operator: Kubectl
) -> None:
    model = create(pool={"mode": "Fixed", "cap": "64Mi"})
    model.until_condition("Ready")
    for mebibytes in (96, 128, 160):
        patch = f'{{"spec":{{"pool":{{"cap":"{mebibytes}Mi"}}}}}}'
        model.kubectl("patch", "hm", model.name, "--type", "merge", "--patch", patch)
        kill(operator)
        until(f"{mebibytes} MiB", partial(cap_of, model, mebibytes * MEBIBYTE))
    model.until_condition("LimitsApplied")
    assert_decided_once(model)
