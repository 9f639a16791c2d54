"""Start the llama-server under test, talk to it, stop it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BINARY_VARIABLE = "LLAMAPOOL_SERVER_BINARY"
START_SECONDS = 120.0
_POLL_SECONDS = 0.05
_STOP_SECONDS = 20.0
_POOLED_MARK = b"LLAMAPOOL_METRICS_PORT"


def server_binary() -> Path:
    """Path of the llama-server under test.

    Raises:
        LookupError: the environment does not name it, or names something that is not a file.
    """
    name = os.environ.get(BINARY_VARIABLE)
    if not name:
        raise LookupError(f"{BINARY_VARIABLE} is not set; name the llama-server to test, stock or pooled")
    path = Path(name)
    if not path.is_file():
        raise LookupError(f"{BINARY_VARIABLE} is {name!r}, which is not a file")
    return path


def is_pooled(binary: Path) -> bool:
    """Whether the binary is llamapool's: one that knows the variable of its metrics' port."""
    return _POOLED_MARK in binary.read_bytes()


@dataclass(frozen=True, kw_only=True)
class LlamaServer:
    """A running server.

    Attributes:
        process: of the server.
        port: of its API.
        metrics_port: of llamapool's metrics, where it has them.
        log_path: what it writes.
    """

    process: subprocess.Popen[bytes]
    port: int
    metrics_port: int
    log_path: Path

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        with urlopen(request, timeout=START_SECONDS) as response:  # noqa: S310  # http, written above
            answer: dict[str, Any] = json.load(response)
        return answer

    def complete(self, prompt: str, *, tokens: int = 2) -> dict[str, Any]:
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "seed": 42, "ignore_eos": True}
        return self.post("/completion", body)

    def metric(self, name: str) -> float:
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        values = [line.split()[-1] for line in lines if line.split(" ")[0].split("{")[0] == name]
        assert len(values) == 1, f"{name} has {len(values)} series"
        return float(values[0])


@contextmanager
def running(model: Path, folder: Path, *flags: str) -> Iterator[LlamaServer]:
    """Serve `model` until the block ends.

    Args:
        model: GGUF file.
        folder: where the log goes.
        flags: of llama-server, beside model and port.

    Raises:
        LookupError: the environment does not name the server.
        RuntimeError: it ended, or did not answer in time; with the end of its log.
    """
    port, metrics_port = _free_ports(2)
    log_path = folder / f"{model.stem}-{port}.log"
    command: Sequence[str] = (
        *(str(server_binary()), "--model", str(model), "--host", "127.0.0.1", "--port", str(port)),
        *("--threads", "1", "--no-warmup", *flags),
    )
    environment = {
        **os.environ,
        "LLAMAPOOL_METRICS_PORT": str(metrics_port),
        "LLAMAPOOL_TERMINATION_LOG": str(folder / f"{model.stem}-{port}.json"),
    }
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    server = LlamaServer(process=process, port=port, metrics_port=metrics_port, log_path=log_path)
    try:
        _wait_until_ready(server)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(server: LlamaServer) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise RuntimeError(f"llama-server ended with {server.process.returncode}:\n{server.log[-2000:]}")
        try:
            with urlopen(f"http://127.0.0.1:{server.port}/health", timeout=5):
                return
        except OSError:  # refused, or 503 while it loads
            time.sleep(_POLL_SECONDS)
    raise RuntimeError(f"llama-server did not answer within {START_SECONDS} s:\n{server.log[-2000:]}")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
