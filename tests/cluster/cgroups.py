"""The lab's cgroups: one of its name in every hierarchy, below which every process it starts is found."""

import errno
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True)
class Hierarchy:
    """A mounted cgroup hierarchy: version 1 has one per controller, version 2 a single one."""

    mount: Path
    version: int
    options: frozenset[str]


def hierarchies(mounts: Path = _MOUNTS) -> tuple[Hierarchy, ...]:
    """All that are mounted, in the order of the mount table (/proc/self/mounts, fstab(5) format)."""
    found = []
    for line in mounts.read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind in {"cgroup", "cgroup2"}:
            found.append(Hierarchy(Path(mount), 2 if kind == "cgroup2" else 1, frozenset(options.split(","))))
    return tuple(found)


def tracking(found: tuple[Hierarchy, ...]) -> Hierarchy:
    """The hierarchy that daemons are put into, to find them and their orphans.

    On version 1 it is that of `pids`, which limits nothing unless told; the daemons' memory stays accounted
    where it was. On version 2 there is only one.
    """
    return next((each for each in found if each.version == 1 and "pids" in each.options), found[-1])


def is_v2(found: tuple[Hierarchy, ...]) -> bool:
    """Whether the controllers are version 2; a hybrid system keeps them in version 1."""
    return all(each.version == 2 for each in found)


def create(name: str, found: tuple[Hierarchy, ...]) -> Path:
    """Makes the cgroup in every hierarchy with controllers, and in the tracking one a child for daemons.

    The kubelet puts pods below the same cgroup; version 2 then allows no processes in it, hence the child.

    Returns:
        The child's folder.
    """
    for each in found:
        if is_v2(found):
            # The kubelet refuses a cgroup root that lacks a controller which the machine has.
            controllers = (each.mount / "cgroup.controllers").read_text().split()
            (each.mount / "cgroup.subtree_control").write_text(" ".join(f"+{word}" for word in controllers))
        if each.version == 1 or is_v2(found):
            _make(each, each.mount / name)
    daemons = tracking(found).mount / name / "daemons"
    _make(tracking(found), daemons)
    return daemons


def _make(hierarchy: Hierarchy, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    if "cpuset" in hierarchy.options:
        # A new version 1 cpuset is empty, and no process can enter it.
        for setting in ("cpuset.cpus", "cpuset.mems"):
            (folder / setting).write_text((folder.parent / setting).read_text())


def processes(name: str) -> set[int]:
    """Pids of everything below the lab's cgroups."""
    pids: set[int] = set()
    for folder in existing(name):
        try:
            pids.update(map(int, (folder / "cgroup.procs").read_text().split()))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # removed before or after it was opened
                raise
    return pids


def existing(name: str) -> Iterator[Path]:
    """The lab's cgroups that are there, each before its parent."""
    for each in hierarchies():
        for folder, _, _ in os.walk(each.mount / name, topdown=False):
            yield Path(folder)


def kill(name: str, timeout_seconds: float) -> bool:
    """Kills everything in the lab's cgroups, again and again until nothing is left.

    Returns:
        Whether nothing is left.
    """
    deadline = time.monotonic() + timeout_seconds
    while found := processes(name):
        if time.monotonic() > deadline:
            return False
        for pid in found:
            _kill_if_inside(pid, name)
        time.sleep(0.05)
    return True


def _kill_if_inside(pid: int, name: str) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # Read again with the descriptor held: the pid may have become another process's.
        paths = [line.split(":", 2)[2] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
        if any(name in path.split("/") for path in paths):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return
    finally:
        os.close(descriptor)


def delete(name: str, timeout_seconds: float) -> bool:
    """Removes the lab's cgroups; the kernel refuses for a moment while killed processes drain out of them.

    Returns:
        Whether they are gone.
    """
    deadline = time.monotonic() + timeout_seconds
    while remaining := list(existing(name)):
        for folder in remaining:
            try:
                folder.rmdir()
            except OSError:
                continue
        if time.monotonic() > deadline:
            return not list(existing(name))
        time.sleep(0.02)
    return True
