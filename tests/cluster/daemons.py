"""The lab's components as processes: started once, found by their pidfiles."""

import datetime as dt
import os
from pathlib import Path

from tests.cluster import namespaces, processes, progress
from tests.cluster.components import Component
from tests.cluster.errors import LabError
from tests.cluster.settings import Lab


def running(lab: Lab, component: str) -> processes.Process | None:
    """The process of a component, if it lives."""
    process = processes.read_pidfile(_pidfile(lab, component))
    return process if process and process.alive() else None


def started_at(lab: Lab, component: str) -> dt.datetime:
    """When the component was last started, in UTC."""
    return dt.datetime.fromtimestamp(_pidfile(lab, component).stat().st_mtime, dt.UTC)


def start(lab: Lab, component: Component, cgroup: Path) -> bool:
    """Starts a component in the lab's namespaces and cgroup, unless it runs.

    Returns:
        Whether it was started.

    Raises:
        LabError: it ended at once.
    """
    if running(lab, component.name):
        return False
    log = lab.log / f"{component.name}.log"
    progress.say(f"starting {component.name} (log: {log})")
    try:
        processes.start(
            component.command,
            prefix=namespaces.enter_all(lab, _member(lab)),
            pidfile=_pidfile(lab, component.name),
            log=log,
            cgroup=cgroup,
            # No proxy settings: there is no way out of the lab's network.
            environment={"PATH": os.environ["PATH"], "HOME": str(lab.state)},
        )
    except ProcessLookupError as error:
        raise LabError(str(error)) from error
    return True


def stop(lab: Lab, component: str, grace_seconds: float) -> None:
    """Stops a component if it lives, killing it after the grace period, and waits until it is gone."""
    process = running(lab, component)
    if not process:
        return
    progress.say(f"stopping {component} (pid {process.pid})")
    if not processes.stop(process, grace_seconds=grace_seconds):
        progress.say(f"  it did not end within {grace_seconds:.0f} s and was killed")


def _member(lab: Lab) -> int | None:
    """Pid of any component that lives."""
    for pidfile in lab.run.glob("*.json"):
        if process := running(lab, pidfile.stem):
            return process.pid
    return None


def _pidfile(lab: Lab, component: str) -> Path:
    return lab.run / f"{component}.json"
