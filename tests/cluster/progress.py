"""Long steps that say what they are doing: elapsed seconds, the log, and a sign of life every few seconds."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.cluster.errors import LabError

_HEARTBEAT_SECONDS = 15.0
_STARTED = time.monotonic()


def say(message: str) -> None:
    """One line for the user, with the seconds since the command began."""
    print(f"[{time.monotonic() - _STARTED:4.0f} s] {message}", file=sys.stderr, flush=True)


def run(
    what: str,
    command: Sequence[str | Path],
    log: Path,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs a command with its output appended to `log`, reporting while it lasts.

    Raises:
        LabError: it exits non-zero; the message ends with the last lines of the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{what} (log: {log})")
    started = time.monotonic()
    with log.open("ab") as output:
        output.write(f"$ {' '.join(map(str, command))}\n".encode())
        output.flush()
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        while True:
            try:
                code = process.wait(_HEARTBEAT_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"  still at it after {time.monotonic() - started:.0f} s: {tail(log, 1)[:100]}")
            else:
                break
    if code:
        raise LabError(f"{what}: {command[0]} exited with {code}; {log} ends with\n{tail(log, 25)}")
    say(f"  done in {time.monotonic() - started:.1f} s")


def wait_until(what: str, condition: Callable[[], bool], timeout_seconds: float, hint: str) -> None:
    """Polls until the condition holds.

    Raises:
        LabError: it did not within the time; the message gives the hint, where to look.
    """
    started = reported = time.monotonic()
    while not condition():
        now = time.monotonic()
        if now - started > timeout_seconds:
            raise LabError(f"{what}: not within {timeout_seconds:.0f} s; {hint}")
        if now - reported > _HEARTBEAT_SECONDS:
            reported = now
            say(f"  waiting for {what}, {now - started:.0f} s so far; {hint}")
        time.sleep(0.1)


def tail(log: Path, lines: int) -> str:
    """The last lines of a log."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 8192))
        return "\n".join(stream.read().decode(errors="replace").splitlines()[-lines:])
