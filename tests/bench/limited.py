"""A server within a memory cgroup of its own, watched from outside until it is stopped or killed."""

from __future__ import annotations

import signal
import subprocess
from contextlib import contextmanager, suppress
from http.client import HTTPException
from threading import Event, Thread
from typing import TYPE_CHECKING, Self
from urllib.error import URLError

from llamapool.adapters.scrape import HttpScraper
from llamapool.errors import ScrapeError
from tests.cluster import cgroups
from tests.support.llama_server import start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

_END_SECONDS, _ANSWER_SECONDS = 20.0, 300.0
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
        cgroups.delete(name, _END_SECONDS)


class LimitedServer:
    """One llama-server under a limit.

    Args:
        binary: of the server.
        model: that it serves.
        flags: of llama-server, beside its address.
        cgroup: that it runs in, alone.
        limit_bytes: of that cgroup.
        scratch: a folder that exists.

    Attributes:
        end: how it ended by itself, once the block has: `killed` by the kernel, `refused` the start, `broke`
            otherwise; None: it was stopped by us.
    """

    def __init__(
        self,
        binary: Path,
        model: Path,
        *flags: str,
        cgroup: Path,
        limit_bytes: int,
        scratch: Path,
    ) -> None:
        self._binary, self._model, self._flags = binary, model, flags
        self._cgroup, self._limit_bytes, self._scratch = cgroup, limit_bytes, scratch
        self._base_bytes = self._state_bytes = self._peak_bytes = 0
        self._ended = Event()
        self._watcher = Thread(target=self._watch)
        self._was_ready = False
        self.end: str | None = None

    def __enter__(self) -> Self:
        name = "memory.max" if (self._cgroup / "memory.max").exists() else "memory.limit_in_bytes"
        (self._cgroup / name).write_text(str(self._limit_bytes))
        self._server = start(
            self._binary, self._model, self._scratch, *self._flags, cgroup=self._cgroup, threads=None
        )
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._watcher.join()
        code = self._server.process.poll()
        if code is not None:
            refused = code > 0 and not self._was_ready
            self.end = "killed" if code == -signal.SIGKILL else "refused" if refused else "broke"
            return
        try:
            self._server.stop()
        except subprocess.TimeoutExpired:
            self._server.end()

    def ready(self) -> bool:
        """Wait until it answers; whether it does before it ends.

        Raises:
            RuntimeError: it neither answered in time nor ended; with the end of its log.
        """
        try:
            self._server.until_ready()
        except RuntimeError:
            if self._server.process.poll() is None:
                raise
            return False
        self._was_ready = True
        return True

    def complete(self, prompt: str) -> bool:
        """Send one prompt; whether it was answered."""
        try:
            return "content" in self._server.complete(prompt, tokens=2, timeout_seconds=_ANSWER_SECONDS)
        except (URLError, HTTPException, ConnectionError, TimeoutError):
            # It ended, and the caller looks why: its connections close before it can be seen to have ended.
            with suppress(subprocess.TimeoutExpired):
                self._server.process.wait(_END_SECONDS)
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
                sample = _SCRAPER.scrape("127.0.0.1", self._server.metrics_port)
            except ScrapeError:
                continue  # it starts, or it ended, or it is a stock server
            self._base_bytes = max(self._base_bytes, sample.base_bytes or 0)
            self._state_bytes = sample.checkpoint_bytes or self._state_bytes
            self._peak_bytes = max(self._peak_bytes, sample.cgroup_unreclaimable_bytes or 0)
