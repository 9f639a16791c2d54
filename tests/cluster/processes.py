"""Daemons that outlive the command that started them, known by pidfiles that survive recycled pids."""

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_PROC = Path("/proc")
_KILL_SECONDS = 10.0


@dataclass(frozen=True)
class Process:
    """One process for as long as it lives: the kernel reuses a pid, but not with the same start time."""

    pid: int
    start_ticks: int
    """Clock ticks after boot at which it started, field 22 of /proc/PID/stat."""

    def alive(self, proc: Path = _PROC) -> bool:
        """Whether it runs still; a zombie does not."""
        return find(self.pid, proc) == self


def find(pid: int, proc: Path = _PROC) -> Process | None:
    """The living process that has this pid now."""
    try:
        status = (proc / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name, in parentheses, may hold spaces and parentheses itself.
    fields = status[status.rindex(")") + 2 :].split()
    state, start_ticks = fields[0], int(fields[19])
    return None if state in "ZX" else Process(pid, start_ticks)


def read_pidfile(path: Path) -> Process | None:
    """What `write_pidfile` wrote, or None if there is no such file."""
    try:
        return Process(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None


def write_pidfile(path: Path, process: Process) -> None:
    """Writes it at once or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(process)))
    temporary.rename(path)


def start(
    command: Sequence[str | Path],
    *,
    prefix: Sequence[str | Path] = (),
    pidfile: Path,
    log: Path,
    cgroup: Path,
    environment: Mapping[str, str],
) -> Process:
    """Starts a daemon in a session of its own and inside a cgroup, so that its orphans can be found there.

    Arguments:
        prefix: words before the command that set something up and then become it (nsenter, for instance).

    Returns:
        The process, once it has become the command.

    Raises:
        ProcessLookupError: it ended before.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    # The shell joins the cgroup and becomes the command: no moment in which a child could be born outside.
    join = ("/bin/sh", "-c", 'cd / && echo 0 >"$0" && exec "$@"', cgroup / "cgroup.procs", *prefix, *command)
    # Not subprocess.Popen, which wants to see the end of what it started.
    pid = os.posix_spawn(
        join[0],
        join,
        environment,
        setsid=True,
        file_actions=(
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ),
    )
    process = find(pid)
    if process:
        write_pidfile(pidfile, process)
    while process and process.alive():
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(os.fsencode(command[0]) + b"\0"):
            return process
        time.sleep(0.01)
    raise ProcessLookupError(f"{command[0]} ended at once; see {log}")


def stop(process: Process, *, grace_seconds: float) -> bool:
    """Asks it to end, kills it after the grace period, and waits until it is gone.

    Returns:
        Whether it went by itself.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        # Checked while the descriptor is held: what it stands for is this process or one that is no more.
        if not process.alive() or _signal(descriptor, process, signal.SIGTERM, grace_seconds):
            return True
        _signal(descriptor, process, signal.SIGKILL, _KILL_SECONDS)
        return False
    finally:
        os.close(descriptor)


def _signal(descriptor: int, process: Process, number: signal.Signals, wait_seconds: float) -> bool:
    deadline = time.monotonic() + wait_seconds
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return True
    while process.alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
