"""The tiny models that the server's tests use are read, and known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from llamapool.adapters.gguf_header import read_model_facts
from llamapool.domain.context import ContextFlags
from llamapool.domain.prediction import predict_base
from tests.models.architectures import TINY_MODELS, write_tiny_model

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_STATE = {"gemma3", "qwen3"}


@pytest.mark.parametrize("architecture", TINY_MODELS)
def test_a_tiny_model_is_read_known_and_predicted(tmp_path: Path, architecture: str) -> None:
    path, model = tmp_path / "model.gguf", TINY_MODELS[architecture]
    write_tiny_model(path, model)
    facts = read_model_facts(str(path))
    assert facts.architecture == architecture
    assert facts.layers == len(model.blocks)
    assert (facts.recurrent_layers == 0) == (architecture in WITHOUT_STATE)
    assert (facts.state_bytes == 0) == (architecture == "qwen3")
    assert facts.weights is not None
    assert facts.weights.total_bytes == 4 * sum(map(math.prod, model.tensors.values()))
    assert predict_base(facts, ContextFlags()) is not None


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first.gguf", tmp_path / "second.gguf"
    for path in (first, second):
        write_tiny_model(path, TINY_MODELS["rwkv7"], seed=3)
    assert first.read_bytes() == second.read_bytes()
