"""A llama-server as a process on 127.0.0.1: started, waited for, asked, read, stopped by its pid."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Self
from urllib.request import Request, urlopen

from tests.bench import builds
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVER_VARIABLE, UPSTREAM_VARIABLE = "LLAMAPOOL_SERVER_BINARY", "LLAMAPOOL_UPSTREAM_BINARY"
READY_SECONDS = 120.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.05
_POOLED_MARK = b"LLAMAPOOL_METRICS_PORT"


def binary(*, upstream: bool = False) -> Path:
    """The llama-server to test, or the unpatched one to compare it with.

    The environment may name it; else it comes from the cache, or is compiled now, in minutes.

    Raises:
        LookupError: the environment names something that is not a file.
        BenchError, LabError: it could not be built.
    """
    variable = UPSTREAM_VARIABLE if upstream else SERVER_VARIABLE
    named = os.environ.get(variable)
    if named is None:
        return builds.server(builds.Build.UPSTREAM if upstream else builds.Build.LLAMAPOOL)
    if not Path(named).is_file():
        raise LookupError(f"{variable} is {named!r}, want the path of a llama-server")
    return Path(named)


def is_pooled(program: Path) -> bool:
    """Whether it is llamapool's: one that knows the variable of its metrics' port."""
    return _POOLED_MARK in program.read_bytes()


@dataclass(frozen=True)
class LlamaServer:
    """A llama-server that was started; it may still be loading.

    Attributes:
        process: of the server.
        port: of its API.
        metrics_port: of llamapool's metrics, where it has them.
        folder: where its log and its termination log are.
    """

    process: subprocess.Popen[bytes]
    port: int
    metrics_port: int
    folder: Path

    def until_ready(self) -> Self:
        """Wait until it answers.

        Raises:
            RuntimeError: it ended, or did not answer in time; with the end of its log.
        """
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended with {self.process.returncode}:\n{self.log()[-2000:]}")
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return self
            except OSError:  # refused, or 503 while it loads
                time.sleep(_POLL_SECONDS)
        raise RuntimeError(f"it was not ready within {READY_SECONDS} s:\n{self.log()[-2000:]}")

    def log(self) -> str:
        """What is written of it so far: a thread of the server writes it, a little later than it answers."""
        return (self.folder / "log").read_text(errors="replace")

    def complete(
        self, prompt: str, tokens: int = 8, timeout_seconds: float = READY_SECONDS, **more: Any
    ) -> Any:
        """The answer, greedy and reproducible; a list of answers to a request for several."""
        body = {
            "prompt": prompt,
            "n_predict": tokens,
            "temperature": 0,
            "top_k": 1,
            "seed": 42,
            "ignore_eos": True,
            "cache_prompt": True,
            "return_tokens": True,
            **more,
        }
        url = f"http://127.0.0.1:{self.port}/completion"
        request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=timeout_seconds) as response:  # noqa: S310  # http, written above
            return json.load(response)

    def metrics(self) -> dict[str, float]:
        """Samples by name; those with labels left out."""
        samples = (line.rsplit(" ", 1) for line in self._page() if "{" not in line)
        return {name: float(value) for name, value in samples}

    def buckets(self, name: str) -> list[tuple[float, float]]:
        """Upper bound and cumulative count of each bucket of a histogram."""
        head = f'{name}_bucket{{le="'
        rows = (line[len(head) :].split('"} ') for line in self._page() if line.startswith(head))
        return [(float(bound), float(count)) for bound, count in rows]

    def until(self, name: str, value: float, seconds: float = 10) -> None:
        """Wait until a metric has that value."""
        deadline = time.monotonic() + seconds
        while self.metrics().get(name) != value:
            assert time.monotonic() < deadline, f"{name} is {self.metrics().get(name)}, want {value}"
            time.sleep(_POLL_SECONDS)

    def stop(self) -> int:
        """Have it end; its exit code."""
        self.process.terminate()
        return self.process.wait(STOP_SECONDS)

    def whole_log(self) -> str:
        """Have it end; all that it logged."""
        self.stop()
        return self.log()

    def end(self) -> None:
        """End it, if it has not: at once."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _page(self) -> list[str]:
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        return [line for line in lines if not line.startswith("#")]


def start(
    program: Path,
    model: Path | None,
    folder: Path,
    *flags: str,
    env: Mapping[str, str] | None = None,
    cgroup: Path | None = None,
    threads: int | None = 1,
) -> LlamaServer:
    """Start a server, whose files go into a new folder in `folder`; without a model it would be a router.

    In a cgroup, if one is given: the shell enters it and becomes the server, so that all memory of the server
    is charged there. With one thread, so that answers repeat; None leaves their number to the server.
    """
    port, metrics_port = free_ports(2)
    own = Path(mkdtemp(dir=folder))
    served = ("--model", str(model)) if model else ()
    enter = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(cgroup)) if cgroup else ()
    address = ("--host", "127.0.0.1", "--port", str(port))
    computing = ("--threads", str(threads)) if threads else ()
    command = (*enter, program, *served, *address, *computing, "--no-warmup")
    environment = {
        **os.environ,
        "LLAMAPOOL_METRICS_PORT": str(metrics_port),
        "LLAMAPOOL_TERMINATION_LOG": str(own / "termination-log"),
        # The builds of tests/bench have its stopwatch in them, which does not run without a file.
        "LLAMAPOOL_BENCH_TIMES": str(own / "times"),
        **(env or {}),
    }
    with (own / "log").open("wb") as log:
        process = subprocess.Popen((*command, *flags), stdout=log, stderr=subprocess.STDOUT, env=environment)
    return LlamaServer(process, port, metrics_port, own)


@contextmanager
def running(model: Path, folder: Path, *flags: str) -> Iterator[LlamaServer]:
    """The server under test, ready, until the block ends.

    Raises:
        RuntimeError: it ended, or did not answer in time; with the end of its log.
    """
    server = start(binary(), model, folder, *flags)
    try:
        yield server.until_ready()
    finally:
        server.end()
