"""A server of files, an empty cache, and models small enough to be sent many times."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from llamapool.adapters.fetch.download import Pace
from llamapool.adapters.fetch.model import Fetcher, Places
from llamapool.fields import Fields
from llamapool.sources import Artifacts, parse_artifacts
from tests.support.file_server import FileServer, serving
from tests.unit.gguf.test_model_facts import SSM, model
from tests.unit.gguf.writing import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llamapool.domain.facts_message import FetchedModel

EMBEDDING = 64


def model_bytes(seed: int = 0, *, kibibytes: int = 1024, **metadata: Any) -> bytes:
    """A GGUF file of a Mamba 2 model with random weights."""
    weights = Tensor("token_embd.weight", (EMBEDDING, kibibytes * 1024 // (4 * EMBEDDING)))
    header = model("mamba2", SSM, tensors=(weights,)).with_metadata(**metadata).header()
    return header + bytes(-len(header) % 32) + random.Random(seed).randbytes(weights.data_bytes)  # noqa: S311


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def asked(source: dict[str, Any], **others: Any) -> Artifacts:
    """spec.model as the command is given it."""
    return parse_artifacts(Fields({"source": source, **others}, "spec.model"))


@dataclass
class Volume:
    """A cache volume, and what fetching into it said."""

    folder: Path
    lines: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    tries: int = 3

    def fetch(self, artifacts: Artifacts) -> FetchedModel | None:
        pace = Pace(
            tries=self.tries,
            sync_bytes=1 << 16,
            progress_seconds=0,
            sleep=self.slept.append,
            jitter=lambda: 0.0,
        )
        places = Places(cache=self.folder / "cache", secrets=self.folder / "secrets", root=self.folder)
        return Fetcher(places=places, say=self.lines.append, pace=pace).fetch(artifacts)

    def served(self, artifacts: Artifacts) -> bytes | None:
        """What llama-server would open; None: there is nothing."""
        path = self.folder / artifacts.model.path.removeprefix("/")
        return path.read_bytes() if path.exists() else None

    def give_secret(self, role: str, **values: str) -> None:
        folder = self.folder / "secrets" / role
        folder.mkdir(parents=True)
        for name, value in values.items():
            (folder / name).write_text(f"{value}\n")

    @property
    def log(self) -> str:
        return "\n".join(self.lines)


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    return Volume(tmp_path)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(FileServer()) as running:
        yield running


@pytest.fixture
def source(server: FileServer) -> dict[str, Any]:
    """A model behind an address."""
    server.files["/model.gguf"] = model_bytes()
    return {"http": {"urls": [f"{server.address}/model.gguf"]}}
