"""A server within a memory cgroup of its own, watched from outside until it is stopped or killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from http.client import HTTPException
from threading import Event, Thread
from typing import TYPE_CHECKING, Self
from urllib.error import URLError
from urllib.request import Request, urlopen

from llamapool.adapters.scrape import HttpScraper
from llamapool.errors import ScrapeError
from tests.cluster import cgroups
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

_START_SECONDS, _STOP_SECONDS, _ANSWER_SECONDS = 120.0, 20.0, 300.0
_POLL_SECONDS = 0.05
_SCRAPER = HttpScraper(timeout_seconds=5)


@contextmanager
def memory_cgroup(name: str) -> Iterator[Path]:
    """A memory cgroup until the block ends.

    Raises:
        OSError: it cannot be made; it takes root and the memory controller.
    """
    found = cgroups.hierarchies()
    memory = next((each for each in found if each.version == 1 and "memory" in each.options), found[-1])
    if memory.version == 2:
        (memory.mount / "cgroup.subtree_control").write_text("+memory")
    folder = memory.mount / name
    folder.mkdir()
    try:
        yield folder
    finally:
        cgroups.delete(name, _STOP_SECONDS)


class LimitedServer:
    """One llama-server under a limit.

    Attributes:
        end: how it ended by itself, once the block has: `killed` by the kernel, `refused` the start, `broke`
            otherwise; None: it was stopped by us.
    """

    def __init__(
        self,
        binary: Path,
        arguments: Sequence[str],
        *,
        cgroup: Path,
        limit_bytes: int,
        scratch: Path,
    ) -> None:
        self._cgroup, self._limit_bytes, self._scratch = cgroup, limit_bytes, scratch
        self._port, self._metrics_port = free_ports(2)
        self._command = [
            *(str(binary), "--host", "127.0.0.1", "--port", str(self._port)),
            *("--no-warmup", *arguments),
        ]
        self._base_bytes = self._state_bytes = self._peak_bytes = 0
        self._ended = Event()
        self._watcher = Thread(target=self._watch)
        self._was_ready = False
        self.end: str | None = None

    def __enter__(self) -> Self:
        name = "memory.max" if (self._cgroup / "memory.max").exists() else "memory.limit_in_bytes"
        (self._cgroup / name).write_text(str(self._limit_bytes))
        environment = dict(os.environ) | {
            "LLAMAPOOL_BENCH_TIMES": str(self._scratch / "times"),
            "LLAMAPOOL_METRICS_PORT": str(self._metrics_port),
            "LLAMAPOOL_TERMINATION_LOG": str(self._scratch / "termination-log"),
        }
        # The shell enters the cgroup and becomes the server, so that all of its memory is charged there.
        enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self._cgroup)]
        with (self._scratch / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*enter, *self._command], stdout=log, stderr=log, env=environment
            )
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._watcher.join()
        code = self._process.poll()
        if code is not None:
            refused = code > 0 and not self._was_ready
            self.end = "killed" if code == -signal.SIGKILL else "refused" if refused else "broke"
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ready(self) -> bool:
        """Wait until it answers; whether it does before it ends."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{self._port}/health", timeout=5):
                self._was_ready = True
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def complete(self, prompt: str) -> bool:
        """Send one prompt; whether it was answered."""
        body = {"prompt": prompt, "n_predict": 2, "temperature": 0, "ignore_eos": True, "cache_prompt": True}
        request = Request(f"http://127.0.0.1:{self._port}/completion", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        try:
            with urlopen(request, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310  # http, written above
                return "content" in json.load(answer)
        except (URLError, HTTPException, ConnectionError, TimeoutError):
            # It ended, and the caller looks why: its connections close before it can be seen to have ended.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
            return False

    def figures(self) -> dict[str, int] | None:
        """What its metrics said at their highest; None: they never had all three."""
        if not (self._base_bytes and self._state_bytes and self._peak_bytes):
            return None
        return {
            "base_bytes": self._base_bytes,
            "state_bytes": self._state_bytes,
            "peak_bytes": self._peak_bytes,
        }

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            try:
                sample = _SCRAPER.scrape("127.0.0.1", self._metrics_port)
            except ScrapeError:
                continue  # it starts, or it ended, or it is a stock server
            self._base_bytes = max(self._base_bytes, sample.base_bytes or 0)
            self._state_bytes = sample.checkpoint_bytes or self._state_bytes
            self._peak_bytes = max(self._peak_bytes, sample.cgroup_unreclaimable_bytes or 0)
