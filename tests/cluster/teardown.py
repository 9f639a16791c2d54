"""Stopping a lab, from whatever state it is in, and looking for anything that it left behind."""

from pathlib import Path

from tests.cluster import cache, cgroups, daemons, kernel, namespaces, processes, progress
from tests.cluster.components import COMPONENTS
from tests.cluster.errors import LabError
from tests.cluster.settings import Lab

_GRACE_SECONDS = 10.0


def down(lab: Lab) -> None:
    """Stops every component, kills what remains of pods, and removes the lab's mounts, network and cgroups.

    Logs, images and volumes stay in the state folder.

    Raises:
        LabError: something is left; the message lists it.
    """
    if lab.state.exists():
        with cache.lock(lab.state / "lock"):
            _stop(lab)
    else:
        _stop(lab)
    if left := leftovers(lab):
        raise LabError("\n  ".join([f"lab {lab.name} is down except for", *left]))


def leftovers(lab: Lab) -> list[str]:
    """What of the lab still exists on the machine, one line each."""
    pids = cgroups.processes(lab.identity) | set(namespaces.members(lab))
    left = [f"process {pid}: {_command(pid)}" for pid in sorted(pids)]
    left += [f"mount {path}" for path in namespaces.mounts_below(lab.state)]
    if lab.network_namespace.exists():
        left.append(f"network namespace {lab.network_namespace}")
    return left + [f"cgroup {path}" for path in cgroups.existing(lab.identity)]


def _stop(lab: Lab) -> None:
    for component in reversed(COMPONENTS):
        daemons.stop(lab, component, _GRACE_SECONDS)
    if orphans := [pid for pid in cgroups.processes(lab.identity) if processes.find(pid)]:
        progress.say(f"killing {len(orphans)} processes of pods and their shims")
    cgroups.kill(lab.identity, timeout_seconds=30)
    progress.say("removing mounts, network and cgroups")
    if not list(namespaces.members(lab)):
        # Else somebody's shell is in there; the namespaces stay, so that the next `down` finds it too.
        namespaces.delete(lab)
    cgroups.delete(lab.identity, timeout_seconds=30)
    for name in ("run", "etcd", "kubelet"):
        cache.remove(lab.state / name)
    if not list(Path("/run/netns").glob("llamapool-lab-*")):
        kernel.restore()


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return "(ended)"
    return words.replace(b"\0", b" ").decode(errors="replace")[:120].strip()
