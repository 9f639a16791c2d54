"""The facts of a model follow from its header by upstream's own formulas."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from llamapool.domain.architectures import known_architectures
from llamapool.domain.gguf import GgufError, read_header
from llamapool.domain.model_facts import facts_of
from llamapool.domain.sequence_memory import CacheTypes
from llamapool.domain.tensor_types import BY_NAME
from tests.unit.gguf.writing import File, Tensor, Written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llamapool.domain.model_facts import ModelFacts

COMMON: Mapping[str, Written] = {"block_count": 4, "context_length": 8192, "embedding_length": 64}
ATTENTION: Mapping[str, Written] = {
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 32,
    "attention.value_length": 32,
}
SSM: Mapping[str, Written] = {
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 128,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 8,
    "ssm.group_count": 2,
}


def model(architecture: str, *parts: Mapping[str, Written], tensors: tuple[Tensor, ...] = ()) -> File:
    keys: dict[str, Written] = {"general.architecture": architecture}
    for part in (COMMON, *parts):
        keys |= {f"{architecture}.{name}": value for name, value in part.items()}
    return File(metadata=keys, tensors=tensors)


def facts(*files: File) -> ModelFacts:
    return facts_of([read_header(io.BytesIO(file.header())) for file in files])


def test_a_27b_shape_has_checkpoints_of_149_626_mib() -> None:
    shape = {
        "block_count": 64,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 6144,
        "ssm.state_size": 128,
        "ssm.time_step_rank": 48,
        "ssm.group_count": 16,
    }
    state_bytes = facts(model("qwen35", ATTENTION, shape)).state_bytes
    assert state_bytes is not None
    assert state_bytes == 156_894_364
    assert f"{state_bytes / 2**20:.3f}" == "149.626"


def test_a_recurrent_model_has_state_in_every_layer_and_no_keys_and_values() -> None:
    found = facts(model("mamba2", SSM))
    row = 4 * (3 * (128 + 2 * 2 * 16) + 16 * 128) + 24
    assert (found.recurrent_layers, found.state_bytes) == (4, 28 + 4 * row)
    assert found.kv_bytes_per_token() == 0


def test_mamba_ignores_the_group_count_as_upstream_does() -> None:
    assert facts(model("mamba", SSM)).state_bytes == 28 + 4 * (4 * (3 * 128 + 16 * 128) + 24)


def test_a_layer_without_key_value_heads_is_recurrent() -> None:
    found = facts(model("granitehybrid", ATTENTION, SSM, {"attention.head_count_kv": [0, 2, 0, 0]}))
    assert found.recurrent_layers == 3
    assert found.kv_bytes_per_token() == 2 * 2 * (32 + 32)


@pytest.mark.parametrize(("flags", "recurrent"), [(None, 3), ([1, 0, 0, 0], 1)])
def test_full_attention_comes_at_the_interval_unless_the_file_lists_the_layers(
    flags: list[int] | None, recurrent: int
) -> None:
    listed: dict[str, Written] = {} if flags is None else {"attention.recurrent_layers": flags}
    assert facts(model("qwen3next", ATTENTION, SSM, listed)).recurrent_layers == recurrent


def test_falcon_h1_has_both_parts_in_every_layer() -> None:
    found = facts(model("falcon-h1", ATTENTION, SSM))
    assert found.recurrent_layers == 4
    assert found.kv_bytes_per_token() == 4 * 2 * 2 * (32 + 32)


def test_a_nemotron_layer_with_a_feed_forward_width_keeps_nothing() -> None:
    layers = {"attention.head_count_kv": [0, 2, 0, 0], "feed_forward_length": [0, 0, 96, 0]}
    found = facts(model("nemotron_h", ATTENTION, SSM, layers))
    assert found.recurrent_layers == 2
    assert found.kv_bytes_per_token() == 2 * 2 * (32 + 32)


def test_draft_layers_have_no_state() -> None:
    found = facts(model("qwen35", ATTENTION, SSM, {"block_count": 5, "nextn_predict_layers": 1}))
    assert (found.layers, found.recurrent_layers) == (5, 3)


def test_latent_attention_caches_keys_alone() -> None:
    latent: dict[str, Written] = {
        "attention.head_count_kv": [0, 1, 0, 1],
        "attention.key_length": 96,
        "attention.key_length_mla": 48,
        "attention.value_length_mla": 32,
        "ssm.conv_kernel": 4,
        "kda.head_dim": 32,
    }
    found = facts(model("kimi-linear", ATTENTION, latent))
    assert found.kv_bytes_per_token() == 2 * 2 * 96
    assert found.state_bytes == 28 + 2 * (4 * (3 * 3 * 4 * 32 + 32 * 32 * 4) + 24)


def test_quantized_keys_and_values_take_their_blocks() -> None:
    found = facts(model("qwen3next", ATTENTION, SSM))
    q8_0 = BY_NAME["q8_0"]
    assert found.kv_bytes_per_token(CacheTypes(key=q8_0, value=q8_0)) == 2 * (2 * 34)


def test_a_width_that_is_not_whole_blocks_is_refused() -> None:
    narrow = {"attention.head_count_kv": 1, "attention.key_length": 20}
    found = facts(model("qwen3next", ATTENTION, SSM, narrow))
    with pytest.raises(ValueError, match="a row of 20 elements is not whole q8_0 blocks of 32"):
        found.kv_bytes_per_token(CacheTypes(key=BY_NAME["q8_0"]))


def test_a_sliding_window_model_has_checkpoints_of_its_window() -> None:
    found = facts(model("gemma3", ATTENTION, {"attention.sliding_window": 32}))
    assert found.memory is not None
    assert found.memory.window == 32
    row = 2 * 2 * (32 + 32)
    assert found.kv_bytes_per_token() == 0  # the sixth layer would be the first with full attention
    assert found.state_bytes == 8 + 4 + 4 + 16 + 4 * 24 + 32 * (12 + 4 * row)
    shorter = found.memory.checkpoint_bytes(CacheTypes(), window_tokens=5, streams=3)
    assert shorter == 8 + 4 + 3 * 4 + 16 + 4 * 24 + 5 * (12 + 4 * row)


def test_a_model_with_plain_attention_has_no_checkpoints() -> None:
    found = facts(model("llama", ATTENTION))
    assert found.state_bytes == 0
    assert found.kv_bytes_per_token() == 4 * 2 * 2 * (32 + 32)


def test_an_unknown_architecture_has_no_figures_rather_than_guessed_ones() -> None:
    found = facts(model("mamba9", SSM))
    assert (found.state_bytes, found.kv_bytes_per_token(), found.recurrent_layers) == (None, None, None)
    assert (found.architecture, found.layers, found.context_length) == ("mamba9", 4, 8192)


def test_the_summary_is_what_status_keeps() -> None:
    assert facts(model("mamba2", SSM, tensors=WEIGHTS)).summary() == {
        "architecture": "mamba2",
        "layers": 4,
        "state_bytes": 28 + 4 * (4 * (3 * (128 + 2 * 2 * 16) + 16 * 128) + 24),
        "weights_bytes": 64 * 320 * 4 + 68 * 144 + 512,
        "kv_bytes_per_token": 0,
        "context_length": 8192,
    }


def test_llama4_has_chunks_unless_the_file_says_none() -> None:
    chunked = facts(model("llama4", ATTENTION)).memory
    assert chunked is not None
    assert chunked.window == 8192
    assert facts(model("llama4", ATTENTION, {"attention.sliding_window": 0})).state_bytes == 0


def test_gemma4_caches_nothing_in_the_layers_that_share() -> None:
    shared: dict[str, Written] = {
        "attention.sliding_window": 32,
        "attention.sliding_window_pattern": [1, 0, 1, 0],
        "attention.shared_kv_layers": 2,
    }
    found = facts(model("gemma4", ATTENTION, shared))
    assert found.kv_bytes_per_token() == 2 * 2 * (32 + 32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": 3}, "general.architecture is 3, not the name of an architecture"),
        ({"mamba2.block_count": 0}, "mamba2.block_count is 0, not 1 to 512"),
        ({"mamba2.block_count": 513}, "mamba2.block_count is 513, not 1 to 512"),
        ({"mamba2.ssm.inner_size": "big"}, "mamba2.ssm.inner_size is 'big', not a whole number"),
        ({"mamba2.ssm.inner_size": -1}, "mamba2.ssm.inner_size is -1, not a whole number"),
        ({"mamba2.nextn_predict_layers": 5}, "nextn_predict_layers is 5; there are 4 layers"),
    ],
)
def test_a_wrong_key_is_refused_by_name_and_value(changes: dict[str, Written], message: str) -> None:
    file = model("mamba2", SSM)
    with pytest.raises(GgufError, match=message):
        facts(replace(file, metadata={**file.metadata, **changes}))


def test_an_absent_key_is_named() -> None:
    with pytest.raises(GgufError, match=r"mamba2.ssm.inner_size is absent; mamba2 needs it"):
        facts(model("mamba2", {name: value for name, value in SSM.items() if name != "ssm.inner_size"}))


def test_a_list_of_another_length_than_the_layers_is_refused() -> None:
    with pytest.raises(GgufError, match="head_count_kv has 3 values, not one for each of 4 layers"):
        facts(model("jamba", ATTENTION, SSM, {"attention.head_count_kv": [0, 2, 0]}))


def test_every_recurrent_and_hybrid_architecture_of_upstream_is_known_but_one() -> None:
    upstream = (  # llm_arch_is_recurrent and llm_arch_is_hybrid of b11434, as llm_arch_name writes them
        "mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7 jamba falcon-h1 plamo2 granitehybrid lfm2 lfm2moe "
        "nemotron_h nemotron_h_moe qwen3next kimi-linear bailingmoe3 kimi-k3 glm5-next qwen35 qwen35moe "
        "qwen4exp deepseek4 minimax-01"
    )
    assert set(upstream.split()) - known_architectures() == {"deepseek4"}


WEIGHTS = (
    Tensor("token_embd.weight", (64, 320)),
    Tensor("blk.0.ffn_up.weight", (256, 64), type=12, size=64 * 144),
    Tensor("blk.0.attn_norm.weight", (64,)),
    Tensor("blk.1.ffn_up.weight", (256, 4), type=12, size=4 * 144),
    Tensor("output_norm.weight", (64,)),
)


def test_weights_are_counted_by_where_they_are_placed() -> None:
    weights = facts(model("mamba2", SSM, tensors=WEIGHTS)).weights
    assert weights is not None
    assert weights.input.total == 64 * 320 * 4
    assert {layer: part.total for layer, part in weights.layers.items()} == {0: 64 * 144 + 256, 1: 4 * 144}
    assert weights.output.total == 256
    assert weights.total_bytes == 64 * 320 * 4 + 68 * 144 + 512


def test_four_bit_matrices_of_whole_groups_of_rows_are_repacked() -> None:
    weights = facts(model("mamba2", SSM, tensors=WEIGHTS)).weights
    assert weights is not None
    assert {layer: part.repacked for layer, part in weights.layers.items()} == {0: 64 * 144, 1: 0}


@pytest.mark.parametrize("has_output", [False, True])
def test_embeddings_serve_as_output_where_the_file_has_none(has_output: bool) -> None:  # noqa: FBT001
    tensors = (*WEIGHTS, Tensor("output.weight", (64, 320))) if has_output else WEIGHTS
    weights = facts(model("mamba2", SSM, tensors=tensors)).weights
    assert weights is not None
    assert weights.tied_output.total == (0 if has_output else 64 * 320 * 4)


def split(*parts: tuple[Tensor, ...], count: int | None = None, tensors: int | None = None) -> list[File]:
    whole = model("mamba2", SSM)
    keys: dict[str, Written] = {
        "split.count": len(parts) if count is None else count,
        "split.tensors.count": sum(map(len, parts)) if tensors is None else tensors,
    }
    first, *others = parts
    return [
        File(metadata={**whole.metadata, **keys}, tensors=first),
        *(File(metadata=keys, tensors=part) for part in others),
    ]


def test_a_split_model_is_the_sum_of_its_files() -> None:
    whole, parts = facts(model("mamba2", SSM, tensors=WEIGHTS)), facts(*split(WEIGHTS[:2], WEIGHTS[2:]))
    assert parts.weights == whole.weights
    assert parts.state_bytes == whole.state_bytes


def test_the_first_file_of_a_split_model_gives_all_but_the_weights() -> None:
    first = facts(split(WEIGHTS[:2], WEIGHTS[2:])[0])
    assert first.weights is None
    assert first.state_bytes == facts(model("mamba2", SSM)).state_bytes


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (split(WEIGHTS[:2], WEIGHTS[2:], count=3), "split.count is 3; 2 files were read"),
        (split(WEIGHTS[:2], WEIGHTS[2:], tensors=9), "split.tensors.count is 9; the files have 5 tensors"),
        (split(WEIGHTS[:2], WEIGHTS[2:], count=70_000), "split.count is 70000, not a whole number"),
    ],
)
def test_files_that_are_not_one_model_are_refused(files: list[File], message: str) -> None:
    with pytest.raises(GgufError, match=message):
        facts(*files)
