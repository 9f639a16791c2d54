"""The tensors of RWKV layers, versions 6 and 7, in their own form and in Qwen's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.models.blocks import FEED_FORWARD, WIDTH, Tensors, feed_forward, norms, weights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.models.blocks import Value

HEAD_SIZE, RANK = 32, 16

VERSION_6_KEYS: Mapping[str, Value] = {
    "wkv.head_size": HEAD_SIZE,
    "time_mix_extra_dim": RANK,
    "time_decay_extra_dim": RANK,
}
VERSION_7_KEYS: Mapping[str, Value] = {
    "wkv.head_size": HEAD_SIZE,
    "attention.decay_lora_rank": RANK,
    "attention.iclr_lora_rank": RANK,
    "attention.value_residual_mix_lora_rank": RANK,
    "attention.gate_lora_rank": RANK,
}


def _biased_norms(*names: str) -> Tensors:
    return {f"{name}.{part}": (WIDTH,) for name in names for part in ("weight", "bias")}


def embedding_norms() -> Tensors:
    """What RWKV has beside the layers: a norm of the embeddings, and a bias of the output's."""
    return _biased_norms("token_embd_norm", "output_norm")


def _projections(*names: str) -> dict[str, tuple[int, ...]]:
    return {f"time_mix_{name}": (WIDTH, WIDTH) for name in names}


def time_mix_6(*, bonus: bool = True) -> Tensors:
    """The time mix of version 6; `bonus`: the current token's own weight, which Qwen's form has not."""
    first = {"time_mix_first": (HEAD_SIZE, WIDTH // HEAD_SIZE)} if bonus else {}
    return weights(
        {
            **first,
            "time_mix_w1": (WIDTH, 5 * RANK),
            "time_mix_w2": (RANK, WIDTH, 5),
            "time_mix_lerp_x": (WIDTH, 1, 1),
            "time_mix_lerp_fused": (WIDTH, 1, 1, 5),
            "time_mix_decay": (WIDTH,),
            "time_mix_decay_w1": (WIDTH, RANK),
            "time_mix_decay_w2": (RANK, WIDTH),
            **_projections("key", "value", "receptance", "gate", "output"),
        }
    )


def time_mix_7() -> Tensors:
    low_rank: dict[str, tuple[int, ...]] = {}
    for name in "wav":
        low_rank |= {
            f"time_mix_{name}0": (WIDTH,),
            f"time_mix_{name}1": (WIDTH, RANK),
            f"time_mix_{name}2": (RANK, WIDTH),
        }
    return weights(
        {
            **low_rank,
            "time_mix_g1": (WIDTH, RANK),
            "time_mix_g2": (RANK, WIDTH),
            "time_mix_lerp_fused": (WIDTH, 1, 1, 6),
            **{f"time_mix_{name}": (WIDTH,) for name in ("k_k", "k_a", "r_k")},
            **_projections("key", "value", "receptance", "output"),
        }
    )


def layer_6() -> list[Tensors]:
    channel_mix = weights(
        {
            "channel_mix_lerp_k": (WIDTH, 1, 1),
            "channel_mix_lerp_r": (WIDTH, 1, 1),
            "channel_mix_key": (WIDTH, FEED_FORWARD),
            "channel_mix_value": (FEED_FORWARD, WIDTH),
            "channel_mix_receptance": (WIDTH, WIDTH),
        }
    )
    return [_biased_norms("attn_norm", "attn_norm_2", "time_mix_ln"), time_mix_6(), channel_mix]


def layer_7() -> list[Tensors]:
    channel_mix = weights(
        {
            "channel_mix_lerp_k": (WIDTH, 1, 1),
            "channel_mix_key": (WIDTH, FEED_FORWARD),
            "channel_mix_value": (FEED_FORWARD, WIDTH),
        }
    )
    return [_biased_norms("attn_norm", "attn_norm_2", "time_mix_ln"), time_mix_7(), channel_mix]


def layer_6_qwen() -> list[Tensors]:
    return [norms("attn_norm", "ffn_norm"), time_mix_6(bonus=False), feed_forward()]


def layer_7_qwen() -> list[Tensors]:
    return [norms("attn_norm", "ffn_norm"), time_mix_7(), feed_forward()]
