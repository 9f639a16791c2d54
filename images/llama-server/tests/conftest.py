"""Servers under test, beside upstream's: see tests/support/llama_server.py for where they come from."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.models.architectures import TINY_MODELS, write_tiny_model
from tests.models.hybrid import HybridShape, write_hybrid_model
from tests.support import llama_server
from tests.support.llama_server import LlamaServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Server(LlamaServer):
    """One that conversations are held with."""

    def conversations(self, names: tuple[str, ...] = ("hello", "zebra"), turns: int = 4, **more: Any) -> str:
        """Conversations that grow in alternation; the digest of all tokens of all answers."""
        digest = hashlib.sha256()
        texts = dict.fromkeys(names, "")
        for turn in range(turns):
            for name in names:
                prompt = f"{texts[name]}{name} says in turn {turn}: tell me more of it."
                answer = self.complete(prompt, **more)
                digest.update(json.dumps(answer["tokens"]).encode())
                texts[name] = prompt + answer["content"]
        return digest.hexdigest()


class Servers:
    """Starts servers and ends them with the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[LlamaServer] = []

    def start(
        self,
        model: Path | None,
        *flags: str,
        upstream: bool = False,
        program: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Server:
        """One server: of this program, upstream's, or the one under test; a router if it has no model."""
        chosen = program or llama_server.binary(upstream=upstream)
        started = llama_server.start(chosen, model, self._folder, "--ctx-size", "4096", *flags, env=env)
        self._started.append(started)
        return Server(started.process, started.port, started.metrics_port, started.folder)

    def end(self) -> None:
        for server in self._started:
            server.end()


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
