"""The operator's replicas on the node: who leads, and their processes as the host sees them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.kubectl import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.kubectl import Kubectl
    from tests.support.models import Model


def processes(pods: Iterable[dict[str, Any]], program: str = "llamapool") -> list[int]:
    """Process ids in those pods whose command line names the program; the operator's otherwise."""
    uids = [pod["metadata"]["uid"] for pod in pods]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            cgroups, command = (folder / "cgroup").read_text(), (folder / "cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if program.encode() in command and any(uid in cgroups for uid in uids):
            found.append(int(folder.name))
    return found


def signal_all(operator: Kubectl, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to every replica, once one runs."""
    for process in until("a running operator", lambda: processes(operator.list("pods")) or None):
        os.kill(process, number)


def leader(operator: Kubectl) -> str | None:
    """Name of the pod that holds the lease; None while nobody does."""
    holder: str | None = operator.get("lease", "llamapool")["spec"].get("holderIdentity")
    return holder


def signal_leader(operator: Kubectl, number: signal.Signals) -> tuple[str, list[int]]:
    """Send a signal to the replica that leads; its pod's name and its processes."""

    def running() -> tuple[str, list[int]] | None:
        name = leader(operator)
        pod = None if name is None else operator.find("pod", name)
        found = [] if pod is None else processes([pod])
        return (name, found) if name and found else None

    name, found = until("a leader that runs", running)
    for process in found:
        os.kill(process, number)
    return name, found


def assert_decided_once(model: Model) -> None:
    """Every decision in the record stands in the status once and was told once."""
    decisions = model.status()["decisions"]
    identities = [decision["id"] for decision in decisions]
    assert len(identities) == len(set(identities))

    def told() -> bool:
        events = [event for event in model.kubectl.list("events") if event["reason"] == "PoolCapChanged"]
        return len(events) == len(identities) and all(event.get("count", 1) == 1 for event in events)

    until("one event a decision", told, timeout_seconds=30)
