"""A server of an arm: started on 127.0.0.1, read from outside, stopped by its pid."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from llamapool.adapters.scrape import HttpScraper
from tests.bench.builds import server
from tests.bench.errors import BenchError
from tests.bench.measurements import Timed
from tests.cluster.progress import tail
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from llamapool.domain.histogram import Histogram
    from tests.bench.arms import Arm

_START_SECONDS = 120.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.02
_SCRAPER = HttpScraper(timeout_seconds=10)


@dataclass(kw_only=True)
class Server:
    """One running llama-server.

    Attributes:
        arm: which it serves.
        pid: of its process.
        port: of its API.
        metrics_port: of llamapool's metrics.
        times: the file that its stopwatch appends to.
        ready_seconds: from its start until it answered.
    """

    arm: Arm
    pid: int
    port: int
    metrics_port: int
    times: Path
    ready_seconds: float
    _times_read: int = 0

    def page_faults(self) -> int:
        """Minor page faults since its start: field 10 of /proc/PID/stat."""
        # The command's name, in parentheses, may hold spaces itself.
        return int(_proc(self.pid, "stat").rpartition(")")[2].split()[7])

    def peak_rss_bytes(self) -> int:
        """The most memory it has had resident: VmHWM of /proc/PID/status."""
        (line,) = (line for line in _proc(self.pid, "status").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024

    def new_times(self) -> tuple[tuple[Timed, ...], tuple[Timed, ...]]:
        """Checkpoints and prompt saves that its stopwatch has recorded since the last call."""
        with self.times.open() as stream:
            stream.seek(self._times_read)
            lines = stream.readlines()
            self._times_read = stream.tell()
        timed: dict[str, list[Timed]] = {"checkpoint": [], "save": []}
        for line in lines:
            what, size_bytes, nanoseconds = line.split()
            timed[what].append(Timed(size_bytes=int(size_bytes), seconds=int(nanoseconds) / 1e9))
        return tuple(timed["checkpoint"]), tuple(timed["save"])

    def histogram(self) -> Histogram | None:
        """Its own histogram of the time to first token; None where it has no metrics port.

        Raises:
            ScrapeError: it could not be read.
        """
        if not self.arm.has_histogram:
            return None
        return _SCRAPER.scrape("127.0.0.1", self.metrics_port).time_to_first_token


@asynccontextmanager
async def running(arm: Arm, flags: Sequence[str], folder: Path) -> AsyncIterator[Server]:
    """A server of the arm until the block ends.

    Args:
        arm: which.
        flags: of llama-server, beside its address.
        folder: where its log and its times go.

    Raises:
        BenchError: it ended, or was not ready in time; with the end of its log.
    """
    port, metrics_port = free_ports(2)
    log, times = folder / f"{arm.name}.log", folder / f"{arm.name}.times"
    times.unlink(missing_ok=True)
    times.touch()
    environment = (
        dict(os.environ)
        | {
            "LLAMAPOOL_BENCH_TIMES": str(times),
            "LLAMAPOOL_METRICS_PORT": str(metrics_port),
            "LLAMAPOOL_TERMINATION_LOG": str(folder / f"{arm.name}.termination"),
            # An arm is idle while the others have their turn: that belongs to the method, not to the load.
            "LLAMAPOOL_IDLE_TRIM_SECONDS": "86400",
        }
        | arm.variables()
    )
    started = time.monotonic()
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            server(arm.build),
            *("--host", "127.0.0.1", "--port", str(port), *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
        )
    try:
        await _until_ready(process, port, f"{arm.name}: see {log}", log)
        yield Server(
            arm=arm,
            pid=process.pid,
            port=port,
            metrics_port=metrics_port,
            times=times,
            ready_seconds=time.monotonic() - started,
        )
    except BenchError as error:
        await asyncio.sleep(_POLL_SECONDS)  # for the loop to notice its end, if it was that
        if process.returncode is None:
            raise
        raise BenchError(
            f"{arm.name} ended with {process.returncode}; {log} ends with\n{tail(log, 15)}"
        ) from error
    finally:
        await _stop(process)


async def _until_ready(process: asyncio.subprocess.Process, port: int, name: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < deadline:
            if process.returncode is not None:
                raise BenchError(f"{name} ended with {process.returncode}; it ends with\n{tail(log, 15)}")
            try:
                async with session.get(f"http://127.0.0.1:{port}/health") as answer:
                    if answer.ok:
                        return
            except aiohttp.ClientConnectionError:  # it does not listen yet
                pass
            await asyncio.sleep(_POLL_SECONDS)
    raise BenchError(f"{name} was not ready within {_START_SECONDS:.0f} s; it ends with\n{tail(log, 15)}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _proc(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/{name}", encoding="ascii") as stream:  # noqa: PTH123
        return stream.read()
