"""Write a small random hybrid model whose context checkpoints are as large as a 27B's.

    python -m tests.models.hybrid OUT.gguf [--layers 64] [--seed 0]

The architecture is llama.cpp's ``qwen35``: gated delta-net layers, with full attention in one layer of
four. The size of a checkpoint depends on the ``ssm.*`` keys and on the number of recurrent layers alone,
so those are a 27B's, while the embedding is 64 wide: 151 MB of weights, 149.6 MiB of state, next to no
arithmetic. Fewer layers give smaller checkpoints in proportion.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONTROL_TOKENS = 64
BEGIN_OF_TEXT, END_OF_TEXT = 256, 257


@dataclass(frozen=True, kw_only=True)
class HybridShape:
    """The hyperparameters of a ``qwen35`` model, in the words of its GGUF keys."""

    layers: int = 64
    full_attention_interval: int = 4
    embedding_length: int = 64
    feed_forward_length: int = 128
    head_count: int = 4
    head_count_kv: int = 2
    head_length: int = 64
    context_length: int = 8192
    ssm_conv_kernel: int = 4
    ssm_state_size: int = 128
    ssm_time_step_rank: int = 48
    ssm_group_count: int = 16

    @property
    def ssm_inner_size(self) -> int:
        """Width of the delta-net's value heads: state size × time step rank."""
        return self.ssm_state_size * self.ssm_time_step_rank

    @property
    def convolution_channels(self) -> int:
        """Channels of the causal convolution: values, and a key and a query for each group."""
        return self.ssm_inner_size + 2 * self.ssm_group_count * self.ssm_state_size

    def is_recurrent(self, layer: int) -> bool:
        """Whether ``layer`` (from 0) keeps a recurrent state rather than a KV cache."""
        return (layer + 1) % self.full_attention_interval != 0

    @property
    def state_bytes(self) -> int:
        """Bytes of recurrent state of one sequence: float32 convolution and delta-net states.

        A checkpoint adds a header of some hundred bytes to it. Source: ``llama_hparams::n_embd_r`` and
        ``n_embd_s`` of llama.cpp b11434.
        """
        convolution = (self.ssm_conv_kernel - 1) * self.convolution_channels
        delta_net = self.ssm_state_size * self.ssm_inner_size
        recurrent_layers = sum(self.is_recurrent(layer) for layer in range(self.layers))
        return 4 * (convolution + delta_net) * recurrent_layers


def byte_level_vocabulary() -> tuple[list[str], list[int]]:
    """Tokens and their types: one for each byte, in GPT-2's printable alphabet, then control tokens."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    substitutes = iter(range(256, 512))
    tokens = [chr(byte if byte in printable else next(substitutes)) for byte in range(256)]
    tokens += [f"<|control_{index}|>" for index in range(CONTROL_TOKENS)]
    types = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * CONTROL_TOKENS
    return tokens, types


class _Weights:
    """Random tensors, added to a writer: small enough that activations stay finite through every layer."""

    def __init__(self, writer: Any, seed: int) -> None:
        self._writer = writer
        self._random = np.random.default_rng(seed)

    def matrix(self, name: str, *shape: int) -> None:
        values = self._random.standard_normal(shape, dtype=np.float32) * 0.05
        self._writer.add_tensor(name, values.astype(np.float16))

    def vector(self, name: str, values: NDArray[Any]) -> None:
        self._writer.add_tensor(name, values.astype(np.float32))

    def ones(self, name: str, length: int) -> None:
        self.vector(name, np.ones(length))

    def normal(self, *shape: int, scale: float) -> NDArray[Any]:
        return self._random.standard_normal(shape) * scale


def _attention(weights: _Weights, block: str, shape: HybridShape) -> None:
    heads, width = shape.head_count * shape.head_length, shape.embedding_length
    weights.matrix(f"{block}.attn_q.weight", 2 * heads, width)  # query and output gate
    weights.matrix(f"{block}.attn_k.weight", shape.head_count_kv * shape.head_length, width)
    weights.matrix(f"{block}.attn_v.weight", shape.head_count_kv * shape.head_length, width)
    weights.matrix(f"{block}.attn_output.weight", width, heads)
    weights.ones(f"{block}.attn_q_norm.weight", shape.head_length)
    weights.ones(f"{block}.attn_k_norm.weight", shape.head_length)


def _delta_net(weights: _Weights, block: str, shape: HybridShape) -> None:
    width, rank = shape.embedding_length, shape.ssm_time_step_rank
    weights.matrix(f"{block}.attn_qkv.weight", shape.convolution_channels, width)
    weights.matrix(f"{block}.attn_gate.weight", shape.ssm_inner_size, width)
    weights.vector(
        f"{block}.ssm_conv1d.weight",
        weights.normal(shape.convolution_channels, shape.ssm_conv_kernel, scale=0.2),
    )
    weights.vector(f"{block}.ssm_dt.bias", weights.normal(rank, scale=0.1))
    weights.vector(f"{block}.ssm_a", -np.exp(weights.normal(rank, scale=0.1)))
    weights.matrix(f"{block}.ssm_beta.weight", rank, width)
    weights.matrix(f"{block}.ssm_alpha.weight", rank, width)
    weights.ones(f"{block}.ssm_norm.weight", shape.ssm_state_size)
    weights.matrix(f"{block}.ssm_out.weight", width, shape.ssm_inner_size)


def _hyperparameters(writer: Any, shape: HybridShape) -> None:
    writer.add_name("synthetic-hybrid")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.embedding_length)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward_length)
    writer.add_head_count(shape.head_count)
    writer.add_head_count_kv(shape.head_count_kv)
    writer.add_key_length(shape.head_length)
    writer.add_value_length(shape.head_length)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(16)
    writer.add_rope_dimension_sections([4, 2, 2, 0])
    writer.add_ssm_conv_kernel(shape.ssm_conv_kernel)
    writer.add_ssm_inner_size(shape.ssm_inner_size)
    writer.add_ssm_state_size(shape.ssm_state_size)
    writer.add_ssm_time_step_rank(shape.ssm_time_step_rank)
    writer.add_ssm_group_count(shape.ssm_group_count)
    writer.add_uint32("qwen35.full_attention_interval", shape.full_attention_interval)


def add_byte_level_tokenizer(writer: Any) -> int:
    """Add the byte-level vocabulary and its special tokens to ``writer``; the number of tokens."""
    tokens, types = byte_level_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["a b"])  # the reader wants one
    writer.add_bos_token_id(BEGIN_OF_TEXT)
    writer.add_eos_token_id(END_OF_TEXT)
    writer.add_add_bos_token(value=False)
    return len(tokens)


def write_hybrid_model(path: Path, shape: HybridShape, *, seed: int = 0) -> None:
    """Write a random model of ``shape`` to ``path``; the file appears whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")  # two tests may write it at once
    writer = gguf.GGUFWriter(partial, "qwen35")
    _hyperparameters(writer, shape)
    token_count = add_byte_level_tokenizer(writer)
    weights = _Weights(writer, seed)
    width = shape.embedding_length
    weights.matrix("token_embd.weight", token_count, width)
    weights.matrix("output.weight", token_count, width)
    weights.ones("output_norm.weight", width)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights.ones(f"{block}.attn_norm.weight", width)
        weights.ones(f"{block}.post_attention_norm.weight", width)
        (_delta_net if shape.is_recurrent(layer) else _attention)(weights, block, shape)
        weights.matrix(f"{block}.ffn_gate.weight", shape.feed_forward_length, width)
        weights.matrix(f"{block}.ffn_up.weight", shape.feed_forward_length, width)
        weights.matrix(f"{block}.ffn_down.weight", width, shape.feed_forward_length)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=False)
    writer.close()
    partial.chmod(0o644)
    os.replace(partial, path)  # noqa: PTH105  # atomic on one file system, and says so


def main() -> None:
    """Parse the command line and write the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shape = HybridShape(layers=arguments.layers)
    write_hybrid_model(arguments.path, shape, seed=arguments.seed)
    size_mb, state_mib = arguments.path.stat().st_size / 1e6, shape.state_bytes / 2**20
    print(f"{arguments.path}: {size_mb:.0f} MB, {state_mib:.2f} MiB of recurrent state a sequence")  # noqa: T201


if __name__ == "__main__":
    main()
