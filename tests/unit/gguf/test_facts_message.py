"""The facts of a model survive the way through a pod's termination message and the status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamapool.adapters.gguf_header import read_model_facts
from llamapool.domain.context import ContextFlags
from llamapool.domain.facts_message import (
    MAX_MESSAGE_BYTES,
    FetchedModel,
    from_message,
    from_status,
    to_message,
)
from llamapool.domain.prediction import predict_base
from llamapool.errors import FactsMessageError
from tests.models.architectures import TINY_MODELS, write_tiny_model
from tests.unit.gguf.test_model_facts import ATTENTION, SSM, WEIGHTS, facts, model, split

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.gguf.writing import Written

SHA256 = "ab" * 32
PREDICTED = [ContextFlags(), ContextFlags(slots=2, mmap=False), ContextFlags(gpu_layers=1, mmap=False)]


def returned(sent: FetchedModel) -> FetchedModel:
    received = from_message(to_message(sent))
    assert received is not None
    return received


@pytest.mark.parametrize("architecture", sorted(TINY_MODELS))
def test_every_architecture_is_planned_alike_from_the_message(tmp_path: Path, architecture: str) -> None:
    path = tmp_path / "model.gguf"
    write_tiny_model(path, TINY_MODELS[architecture])
    sent = read_model_facts(str(path))
    received = returned(FetchedModel(sha256=SHA256, facts=sent)).facts
    assert received.memory == sent.memory
    assert received.weights == sent.weights
    assert received.summary() == sent.summary()
    assert [predict_base(received, each) for each in PREDICTED] == [
        predict_base(sent, each) for each in PREDICTED
    ]


def test_draft_and_projector_are_in_the_message() -> None:
    main, draft = facts(model("mamba2", SSM, tensors=WEIGHTS)), facts(model("qwen3", ATTENTION))
    received = returned(FetchedModel(sha256=None, facts=main, draft=draft, projector_bytes=7))
    assert (received.sha256, received.projector_bytes) == (None, 7)
    assert received.draft is not None
    assert received.draft.memory == draft.memory


def test_an_unknown_architecture_stays_unknown() -> None:
    received = returned(FetchedModel(sha256=SHA256, facts=facts(model("deepseek4", ATTENTION))))
    assert received.facts.state_bytes is None
    assert predict_base(received.facts, ContextFlags()) is None


def test_the_first_file_of_a_split_model_says_nothing_of_the_weights() -> None:
    assert (
        returned(FetchedModel(sha256=SHA256, facts=facts(split(WEIGHTS[:2], WEIGHTS[2:])[0]))).facts.weights
        is None
    )


def test_the_message_has_the_figures_for_people() -> None:
    sent = facts(model("mamba2", SSM, tensors=WEIGHTS))
    message = json.loads(to_message(FetchedModel(sha256=SHA256, facts=sent)))
    expected = {"v": 1, "sha256": SHA256, "file_bytes": sent.file_bytes, **sent.summary()}
    assert message.items() >= expected.items()


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=512))
def test_no_message_is_longer_than_the_kubelet_keeps(heads: list[int]) -> None:
    keys: dict[str, Written] = {"block_count": len(heads), "attention.head_count_kv": heads}
    sent = facts(model("qwen3", ATTENTION, keys))
    text = to_message(FetchedModel(sha256=SHA256, facts=sent))
    assert len(text.encode()) <= MAX_MESSAGE_BYTES
    received = from_message(text)
    assert received is None or received.facts.memory == sent.memory


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v":2}', '{"v":1,"keys":{}}', '{"v":1,"keys":[]}'])
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(FactsMessageError, match="the facts"):
        from_message(text)


def test_a_status_that_somebody_edited_is_refused_and_not_half_read() -> None:
    message = json.loads(
        to_message(FetchedModel(sha256=SHA256, facts=facts(model("mamba2", SSM, tensors=WEIGHTS))))
    )
    message["weights"]["layers"]["at"] = "zz"
    with pytest.raises(FactsMessageError):
        from_status(message)
