"""The size of a context checkpoint is what the header says it will be, for every architecture."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from llamapool.adapters.gguf_header import read_model_facts
from llamapool.domain.sequence_memory import CacheTypes
from tests.models.architectures import TINY_MODELS, write_tiny_model
from tests.models.hybrid import HybridShape, write_hybrid_model
from tests.support.llama_server import binary, is_pooled, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.llama_server import LlamaServer

CREATED = re.compile(r"created context checkpoint \d+ of \d+ \(.*n_tokens = (\d+), size = ([\d.]+) MiB\)")
FLAGS = ("--parallel", "1", "--ctx-size", "512", "--cache-ram", "0", "--verbosity", "4")
PROMPT = (
    "A prompt of some more bytes than the sliding window has tokens, each of which is a token of its own."
)


def assert_checkpoints_are_predicted(server: LlamaServer, model: Path) -> None:
    facts = read_model_facts(str(model))
    assert facts.memory is not None
    metrics = server.metrics() if is_pooled(binary()) else None
    created = CREATED.findall(server.whole_log())
    assert created
    for tokens, shown_mib in created:
        expected_bytes = facts.memory.checkpoint_bytes(CacheTypes(), window_tokens=int(tokens))
        assert shown_mib == f"{expected_bytes / 2**20:.3f}"
    if metrics is not None:
        assert metrics["llamapool_checkpoint_bytes"] == expected_bytes


@pytest.mark.parametrize("architecture", [name for name in TINY_MODELS if name != "qwen3"])
def test_the_server_answers_and_its_checkpoints_have_the_predicted_size(
    tmp_path: Path, architecture: str
) -> None:
    model = tmp_path / f"{architecture}.gguf"
    write_tiny_model(model, TINY_MODELS[architecture])
    with running(model, tmp_path, *FLAGS) as server:
        assert server.complete(PROMPT, tokens=2)["tokens_predicted"] == 2
        assert_checkpoints_are_predicted(server, model)


def test_a_checkpoint_of_a_27b_has_the_predicted_size(tmp_path: Path) -> None:
    model = tmp_path / "27b.gguf"
    write_hybrid_model(model, HybridShape())
    with running(model, tmp_path, *FLAGS) as server:
        server.complete(PROMPT)
        assert_checkpoints_are_predicted(server, model)


def test_a_model_with_full_attention_alone_has_no_checkpoints(tmp_path: Path) -> None:
    model = tmp_path / "qwen3.gguf"
    write_tiny_model(model, TINY_MODELS["qwen3"])
    with running(model, tmp_path, *FLAGS) as server:
        server.complete(PROMPT)
        assert not CREATED.search(server.whole_log())
    assert read_model_facts(str(model)).state_bytes == 0


@pytest.mark.parametrize("slots", [1, 3])
def test_a_window_has_as_many_streams_as_the_context(tmp_path: Path, slots: int) -> None:
    model = tmp_path / "gemma3.gguf"
    write_tiny_model(model, TINY_MODELS["gemma3"])
    flags = ("--parallel", str(slots), "--ctx-size", str(512 * slots), "--no-kv-unified", *FLAGS[4:])
    with running(model, tmp_path, *flags) as server:
        server.complete(PROMPT)
        created = CREATED.findall(server.whole_log())
    memory = read_model_facts(str(model)).memory
    assert memory is not None
    assert created
    for tokens, shown_mib in created:
        size_bytes = memory.checkpoint_bytes(CacheTypes(), window_tokens=int(tokens), streams=slots)
        assert shown_mib == f"{size_bytes / 2**20:.3f}"
