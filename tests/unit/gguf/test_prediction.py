"""The base of a server is predicted from the facts and the flags, part by part."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest

from llamapool.domain.context import ContextFlags, context_layout
from llamapool.domain.gguf import read_header
from llamapool.domain.model_facts import ModelFacts, facts_of
from llamapool.domain.prediction import BasePrediction, predict_base
from llamapool.domain.sequence_memory import CacheTypes
from llamapool.domain.tensor_types import BY_NAME
from tests.unit.gguf.test_model_facts import ATTENTION, SSM, WEIGHTS, facts, model, split
from tests.unit.gguf.writing import Tensor, Written

HYBRID = facts(
    model("granitehybrid", ATTENTION, SSM, {"attention.head_count_kv": [0, 2, 0, 2]}, tensors=WEIGHTS)
)
WINDOWED = facts(model("gemma3", ATTENTION, {"attention.sliding_window": 512}, tensors=WEIGHTS))
STATE_BYTES = 2 * 4 * (3 * (128 + 2 * 2 * 16) + 16 * 128)
ROW_BYTES = 2 * 2 * (32 + 32)


def predicted(of: ModelFacts, **flags: bool | int | CacheTypes | None) -> BasePrediction:
    prediction = predict_base(of, replace(ContextFlags(), **flags))  # type: ignore[arg-type]
    assert prediction is not None
    return prediction


def test_keys_and_values_are_those_of_all_cells_of_all_attention_layers() -> None:
    assert predicted(HYBRID, slots=2, context_tokens=4096).keys_values == 4096 * 2 * ROW_BYTES


def test_the_trained_context_is_the_default() -> None:
    assert predicted(HYBRID, slots=1).keys_values == 8192 * 2 * ROW_BYTES


@pytest.mark.parametrize(("unified", "cells", "streams"), [(False, 512, 3), (True, 1024, 1)])
def test_the_context_is_divided_into_streams_of_whole_blocks(
    unified: bool,  # noqa: FBT001
    cells: int,
    streams: int,
) -> None:
    assert HYBRID.memory is not None
    flags = ContextFlags(slots=3, context_tokens=1000, unified=unified)
    layout = context_layout(flags, HYBRID.memory, HYBRID.context_length)
    assert (layout.cells, layout.streams) == (cells, streams)


@pytest.mark.parametrize(
    ("flags", "cells"),
    [
        (ContextFlags(slots=2, context_tokens=65536), 1024),
        (ContextFlags(slots=2, context_tokens=65536, unified=True), 1536),
        (ContextFlags(slots=2, context_tokens=65536, micro_batch_tokens=2048), 2560),
        (ContextFlags(slots=2, context_tokens=1024), 512),
        (ContextFlags(slots=2, context_tokens=65536, full_windows=True), 32768),
    ],
)
def test_a_window_has_cells_for_itself_and_a_micro_batch(flags: ContextFlags, cells: int) -> None:
    assert WINDOWED.memory is not None
    assert context_layout(flags, WINDOWED.memory, WINDOWED.context_length).window_cells == cells


def test_each_slot_keeps_its_recurrent_state() -> None:
    assert predicted(HYBRID, slots=1).recurrent_state == STATE_BYTES
    assert predicted(HYBRID, slots=7).recurrent_state == 7 * STATE_BYTES


def test_cache_types_count() -> None:
    eight_bits = CacheTypes(key=BY_NAME["q8_0"], value=BY_NAME["q8_0"])
    found = predicted(HYBRID, slots=1, context_tokens=256, cache_types=eight_bits)
    assert found.keys_values == 256 * 2 * 2 * (2 * 34)


def test_mapped_weights_are_not_counted_but_for_those_that_are_repacked() -> None:
    assert predicted(HYBRID).weights == 64 * 144
    assert predicted(HYBRID, repack=False).weights == 0


def test_weights_that_are_read_are_counted_whole() -> None:
    assert HYBRID.weights is not None
    assert predicted(HYBRID, mmap=False).weights == HYBRID.weights.total_bytes


def test_offloaded_layers_leave_the_host_from_the_last_on() -> None:
    weights = HYBRID.weights
    assert weights is not None
    one = predicted(HYBRID, mmap=False, gpu_layers=4, slots=1, context_tokens=256)  # the output and 3 layers
    assert one.weights == weights.input.total + weights.layers[0].total
    assert one.recurrent_state == STATE_BYTES // 2
    assert one.keys_values == 0


def test_the_cache_may_stay_on_the_host() -> None:
    kept = predicted(HYBRID, gpu_layers=None, offload_cache=False, slots=1)
    assert kept.keys_values == predicted(HYBRID, slots=1).keys_values
    assert kept.recurrent_state == STATE_BYTES


def test_a_model_that_is_offloaded_whole_computes_on_the_device() -> None:
    device = predicted(HYBRID, gpu_layers=None, slots=1)
    assert (device.keys_values, device.recurrent_state) == (0, 0)
    assert device.compute < predicted(HYBRID, slots=1).compute


def test_a_larger_micro_batch_takes_a_larger_compute_buffer() -> None:
    small, large = (predicted(HYBRID, slots=1, micro_batch_tokens=tokens).compute for tokens in (512, 1024))
    assert 1.9 * small < large < 2.1 * small


def test_the_total_is_the_sum_of_its_parts() -> None:
    found = predicted(HYBRID)
    assert found.total == (
        found.weights + found.keys_values + found.recurrent_state + found.compute + found.overhead
    )


def test_an_unknown_architecture_is_not_predicted() -> None:
    assert predict_base(facts(model("mamba9", SSM, tensors=WEIGHTS)), ContextFlags()) is None


def test_the_first_of_several_files_alone_is_not_predicted() -> None:
    assert predict_base(facts(split(WEIGHTS[:2], WEIGHTS[2:])[0]), ContextFlags()) is None


# What `sched_reserve` of llama.cpp b11434 reserved for headers of these widths; it needs no weights for it.
QWEN_27B: dict[str, Written] = {
    "embedding_length": 5120,
    "feed_forward_length": 17408,
    "attention.head_count": 24,
    "attention.head_count_kv": 4,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 6144,
    "ssm.state_size": 128,
    "ssm.time_step_rank": 48,
    "ssm.group_count": 16,
}
GRANITE_SMALL: dict[str, Written] = {
    "embedding_length": 4096,
    "feed_forward_length": 1536,
    "attention.head_count": 32,
    "attention.head_count_kv": [0, 0, 0, 8],
    "attention.key_length": 128,
    "attention.value_length": 128,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 8192,
    "ssm.state_size": 128,
    "ssm.time_step_rank": 128,
    "ssm.group_count": 1,
}


@pytest.mark.parametrize(
    ("architecture", "keys", "flags", "reserved_mib"),
    [
        ("qwen35", QWEN_27B, ContextFlags(slots=1, context_tokens=4096), 156),
        ("qwen35", QWEN_27B, ContextFlags(slots=1, context_tokens=32768), 184),
        ("qwen35", QWEN_27B, ContextFlags(slots=32, context_tokens=65536), 300),
        ("qwen35", QWEN_27B, ContextFlags(slots=4, context_tokens=8192, micro_batch_tokens=2048), 616),
        ("granitehybrid", GRANITE_SMALL, ContextFlags(slots=1, context_tokens=4096), 138),
        ("granitehybrid", GRANITE_SMALL, ContextFlags(slots=8, context_tokens=32768), 195),
    ],
)
def test_the_compute_buffer_is_what_upstream_reserves_within_20_mib(
    architecture: str, keys: dict[str, Written], flags: ContextFlags, reserved_mib: int
) -> None:
    found = facts(model(architecture, keys, tensors=(Tensor("output_norm.weight", (8,)),)))
    prediction = predict_base(found, flags)
    assert prediction is not None
    assert abs(prediction.compute / 2**20 - reserved_mib) < 20


def test_a_header_of_a_27b_is_planned_in_a_fraction_of_a_second() -> None:
    tokens: list[str] = [f"token number {index}" for index in range(250_000)]
    tensors = tuple(Tensor(f"blk.{index}.t", (5120, 64)) for index in range(1000))
    header = model("qwen35", QWEN_27B, tensors=tensors).with_metadata(
        **{"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": tokens}
    )
    content = header.header()
    start = time.process_time()
    found = facts_of([read_header(io.BytesIO(content))])
    predict_base(found, ContextFlags(slots=8, context_tokens=32768))
    assert time.process_time() - start < 1
