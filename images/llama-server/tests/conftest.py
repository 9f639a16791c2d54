"""Servers under test. Their binaries are named by LLAMAPOOL_SERVER_BINARY and LLAMAPOOL_UPSTREAM_BINARY."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from tests.models.architectures import TINY_MODELS, write_tiny_model
from tests.models.hybrid import HybridShape, write_hybrid_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

READY_SECONDS = 120.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Server:
    """A llama-server that was started; it may still be loading."""

    process: subprocess.Popen[bytes]
    port: int
    metrics_port: int
    folder: Path

    def until_ready(self) -> Server:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended with {self.process.returncode}:\n{self.log()[-2000:]}")
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return self
            except OSError:  # refused, or 503 while it loads
                time.sleep(POLL_SECONDS)
        raise RuntimeError(f"it was not ready within {READY_SECONDS} s:\n{self.log()[-2000:]}")

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def complete(self, prompt: str, tokens: int = 8, **more: Any) -> Any:
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
        with urlopen(request, timeout=READY_SECONDS) as response:  # noqa: S310  # http, written above
            return json.load(response)

    def conversations(self, names: tuple[str, ...] = ("hello", "zebra"), turns: int = 4) -> str:
        """Conversations that grow in alternation; the digest of all tokens of all answers."""
        digest = hashlib.sha256()
        texts = dict.fromkeys(names, "")
        for turn in range(turns):
            for name in names:
                prompt = f"{texts[name]}{name} says in turn {turn}: tell me more of it."
                answer = self.complete(prompt)
                digest.update(json.dumps(answer["tokens"]).encode())
                texts[name] = prompt + answer["content"]
        return digest.hexdigest()

    def metrics(self) -> dict[str, float]:
        """Samples by name; buckets of histograms left out."""
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        samples = (line.rsplit(" ", 1) for line in lines if not line.startswith("#") and "{" not in line)
        return {name: float(value) for name, value in samples}

    def buckets(self, name: str) -> list[tuple[float, float]]:
        """Upper bound and cumulative count of each bucket of a histogram."""
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        head = f'{name}_bucket{{le="'
        rows = (line[len(head) :].split('"} ') for line in lines if line.startswith(head))
        return [(float(bound), float(count)) for bound, count in rows]

    def until(self, name: str, value: float, seconds: float = 10) -> None:
        """Waits until a metric has that value."""
        deadline = time.monotonic() + seconds
        while self.metrics().get(name) != value:
            assert time.monotonic() < deadline, f"{name} is {self.metrics().get(name)}, want {value}"
            time.sleep(POLL_SECONDS)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


class Servers:
    """Starts servers and ends them with the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Server] = []

    def start(
        self, model: Path | None, *flags: str, upstream: bool = False, env: Mapping[str, str] | None = None
    ) -> Server:
        """One server; without a model it would be a router."""
        port, metrics_port = _free_ports(2)
        folder = self._folder / str(port)
        folder.mkdir()
        command = [
            *(
                str(binary(upstream=upstream)),
                *(("--model", str(model)) if model else ()),
                "--host",
                "127.0.0.1",
            ),
            *("--port", str(port), "--threads", "1", "--ctx-size", "4096", "--no-warmup", *flags),
        ]
        environment = {**os.environ, "LLAMAPOOL_METRICS_PORT": str(metrics_port), **(env or {})}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        server = Server(process, port, metrics_port, folder)
        self._started.append(server)
        return server

    def end(self) -> None:
        for server in self._started:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()


def binary(*, upstream: bool) -> Path:
    """The llama-server to test, or the unpatched one to compare it with.

    Raises:
        LookupError: the environment does not name it, or names something that is not a file.
    """
    variable = "LLAMAPOOL_UPSTREAM_BINARY" if upstream else "LLAMAPOOL_SERVER_BINARY"
    path = Path(os.environ.get(variable, ""))
    if not path.is_file():
        raise LookupError(f"{variable} is {os.environ.get(variable)!r}, want the path of a llama-server")
    return path


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    started = Servers(tmp_path)
    yield started
    started.end()


@pytest.fixture(scope="session")
def hybrid_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its checkpoints have 149.6 MiB."""
    path = tmp_path_factory.mktemp("hybrid") / "hybrid.gguf"
    write_hybrid_model(path, HybridShape())
    return path


@pytest.fixture(scope="session")
def dense_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Attention alone: no checkpoint is ever made."""
    path = tmp_path_factory.mktemp("dense") / "dense.gguf"
    write_tiny_model(path, TINY_MODELS["qwen3"])
    return path


@pytest.fixture(scope="session")
def failing_mmap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of fail_mmap.c, to be preloaded."""
    library = tmp_path_factory.mktemp("fail_mmap") / "fail_mmap.so"
    source = Path(__file__).with_name("fail_mmap.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture(scope="session")
def upstream_answers(hybrid_model: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What upstream answers to the conversations."""
    started = Servers(tmp_path_factory.mktemp("upstream"))
    try:
        return started.start(hybrid_model, "--parallel", "1", upstream=True).until_ready().conversations()
    finally:
        started.end()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
