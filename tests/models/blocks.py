"""The tensors of the layers that hybrid and recurrent models are made of, by name and shape.

Shapes are in ggml's order, the row length first. Names and shapes are those that `load_arch_tensors` of
llama.cpp b11434 asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Tensors = dict[str, tuple[int, ...]]
Value = bool | int | float | list[int]

WIDTH, FEED_FORWARD, EXPERTS = 64, 96, 2
HEADS, HEADS_KV, HEAD = 2, 1, 32
LATENT, ROPE = 32, 16
CONVOLUTION = 4
SHORT_CONVOLUTION = 3

ATTENTION_KEYS: Mapping[str, Value] = {
    "attention.head_count": HEADS,
    "attention.head_count_kv": HEADS_KV,
    "attention.key_length": HEAD,
    "attention.value_length": HEAD,
    "rope.dimension_count": ROPE,
    "rope.freq_base": 10_000.0,
}
LATENT_KEYS: Mapping[str, Value] = {
    **ATTENTION_KEYS,
    "attention.key_length": LATENT + ROPE,
    "attention.value_length": LATENT,
    "attention.key_length_mla": HEAD + ROPE,
    "attention.value_length_mla": HEAD,
    "attention.kv_lora_rank": LATENT,
}
MAMBA_KEYS: Mapping[str, Value] = {
    "ssm.conv_kernel": CONVOLUTION,
    "ssm.inner_size": 2 * WIDTH,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 4,
}
MAMBA2_KEYS: Mapping[str, Value] = {**MAMBA_KEYS, "ssm.time_step_rank": 8, "ssm.group_count": 2}
DELTA_NET_KEYS: Mapping[str, Value] = {
    "ssm.conv_kernel": CONVOLUTION,
    "ssm.inner_size": 64,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 4,
    "ssm.group_count": 2,
}
DELTA_ATTENTION_KEYS: Mapping[str, Value] = {"ssm.conv_kernel": CONVOLUTION, "kda.head_dim": HEAD}
EXPERT_KEYS: Mapping[str, Value] = {
    "expert_count": EXPERTS,
    "expert_used_count": EXPERTS,
    "expert_feed_forward_length": FEED_FORWARD,
    "expert_shared_feed_forward_length": FEED_FORWARD,
    "expert_shared_count": 1,
    "expert_gating_func": 2,  # sigmoid
}


def _whole(keys: Mapping[str, Value], *names: str) -> list[int]:
    values = [keys[name] for name in names]
    assert all(isinstance(value, int) for value in values)
    return [int(value) for value in values if isinstance(value, int)]


def weights(shapes: Mapping[str, tuple[int, ...]]) -> Tensors:
    return {f"{name}.weight": shape for name, shape in shapes.items()}


def norms(*names: str, width: int = WIDTH) -> Tensors:
    return weights(dict.fromkeys(names, (width,)))


def layer(number: int, *parts: Tensors) -> Tensors:
    return {f"blk.{number}.{name}": shape for part in parts for name, shape in part.items()}


def layers(blocks: Iterable[Iterable[Tensors]]) -> Tensors:
    tensors: Tensors = {}
    for number, parts in enumerate(blocks):
        tensors |= layer(number, *parts)
    return tensors


def attention(*, gated: bool = False) -> Tensors:
    queries, keys = HEADS * HEAD, HEADS_KV * HEAD
    return weights(
        {
            "attn_q": (WIDTH, 2 * queries if gated else queries),
            "attn_k": (WIDTH, keys),
            "attn_v": (WIDTH, keys),
            "attn_output": (queries, WIDTH),
        }
    )


def query_key_norms() -> Tensors:
    return norms("attn_q_norm", "attn_k_norm", width=HEAD)


def fused_attention() -> Tensors:
    return weights(
        {
            "attn_qkv": (WIDTH, (HEADS + 2 * HEADS_KV) * HEAD),
            "attn_q_norm": (HEAD, HEADS),
            "attn_k_norm": (HEAD, HEADS_KV),
            "attn_output": (HEADS * HEAD, WIDTH),
        }
    )


def latent_attention() -> Tensors:
    return weights(
        {
            "attn_q": (WIDTH, HEADS * (HEAD + ROPE)),
            "attn_kv_a_mqa": (WIDTH, LATENT + ROPE),
            "attn_kv_a_norm": (LATENT,),
            "attn_k_b": (HEAD, LATENT, HEADS),
            "attn_v_b": (LATENT, HEAD, HEADS),
            "attn_output": (HEADS * HEAD, WIDTH),
        }
    )


def feed_forward() -> Tensors:
    return weights(
        {
            "ffn_gate": (WIDTH, FEED_FORWARD),
            "ffn_up": (WIDTH, FEED_FORWARD),
            "ffn_down": (FEED_FORWARD, WIDTH),
        }
    )


def experts(*, shared: bool = False, shared_gate: bool = False, biased: bool = False) -> Tensors:
    tensors = weights(
        {
            "ffn_gate_inp": (WIDTH, EXPERTS),
            "ffn_gate_exps": (WIDTH, FEED_FORWARD, EXPERTS),
            "ffn_up_exps": (WIDTH, FEED_FORWARD, EXPERTS),
            "ffn_down_exps": (FEED_FORWARD, WIDTH, EXPERTS),
        }
    )
    if shared:
        tensors |= {name.replace(".", "_shexp."): shape for name, shape in feed_forward().items()}
    if shared_gate:
        tensors |= norms("ffn_gate_inp_shexp")
    if biased:
        tensors |= {"exp_probs_b.bias": (EXPERTS,)}
    return tensors


def mamba(*, normed: bool = False) -> Tensors:
    inner, state, rank = _whole(MAMBA_KEYS, "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank")
    tensors = {
        **weights(
            {
                "ssm_in": (WIDTH, 2 * inner),
                "ssm_conv1d": (CONVOLUTION, inner),
                "ssm_x": (inner, rank + 2 * state),
                "ssm_dt": (rank, inner),
                "ssm_out": (inner, WIDTH),
            }
        ),
        "ssm_conv1d.bias": (inner,),
        "ssm_dt.bias": (inner,),
        "ssm_a": (state, inner),
        "ssm_d": (inner,),
    }
    if normed:
        tensors |= weights({"ssm_dt_norm": (rank,), "ssm_b_norm": (state,), "ssm_c_norm": (state,)})
    return tensors


def mamba2() -> Tensors:
    inner, state, heads, groups = _whole(
        MAMBA2_KEYS, "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank", "ssm.group_count"
    )
    channels = inner + 2 * groups * state
    return {
        **weights(
            {
                "ssm_in": (WIDTH, inner + channels + heads),
                "ssm_conv1d": (CONVOLUTION, channels),
                "ssm_norm": (inner // groups, groups),
                "ssm_out": (inner, WIDTH),
            }
        ),
        "ssm_conv1d.bias": (channels,),
        "ssm_dt.bias": (heads,),
        "ssm_a": (1, heads),
        "ssm_d": (1, heads),
    }


def plamo_mamba() -> Tensors:
    inner, state, heads = _whole(MAMBA_KEYS, "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank")
    rank = 64  # upstream's least
    return {
        **weights(
            {
                "ssm_in": (WIDTH, 2 * inner),
                "ssm_conv1d": (CONVOLUTION, inner),
                "ssm_x": (inner, rank + 2 * state),
                "ssm_dt": (rank, heads),
                "ssm_out": (inner, WIDTH),
            }
        ),
        "ssm_dt.bias": (heads,),
        "ssm_a": (heads,),
        "ssm_d": (heads,),
        "ssm_dt_norm": (rank,),
        "ssm_b_norm": (state,),
        "ssm_c_norm": (state,),
    }


def delta_net(*, fused_rates: bool = False) -> Tensors:
    inner, state, heads, groups = _whole(
        DELTA_NET_KEYS, "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank", "ssm.group_count"
    )
    channels = inner + 2 * groups * state
    rates = {"ssm_ba": (WIDTH, 2 * heads)}
    if not fused_rates:
        rates = {"ssm_beta": (WIDTH, heads), "ssm_alpha": (WIDTH, heads)}
    return {
        **weights(
            {
                "attn_qkv": (WIDTH, channels),
                "attn_gate": (WIDTH, inner),
                "ssm_conv1d": (CONVOLUTION, channels),
                "ssm_norm": (state,),
                "ssm_out": (inner, WIDTH),
                **rates,
            }
        ),
        "ssm_dt.bias": (heads,),
        "ssm_a": (heads,),
    }


def delta_attention() -> Tensors:
    inner = HEADS * HEAD
    convolutions = {f"ssm_conv1d_{part}": (CONVOLUTION, 1, inner) for part in "qkv"}
    projections = {f"attn_{part}": (WIDTH, inner) for part in "qkv"}
    gates = {f"ssm_{gate}_a": (WIDTH, HEAD) for gate in "fg"} | {
        f"ssm_{gate}_b": (HEAD, inner) for gate in "fg"
    }
    return {
        **weights(
            {
                **convolutions,
                **projections,
                **gates,
                "ssm_beta": (WIDTH, HEADS),
                "ssm_norm": (HEAD,),
                "attn_output": (inner, WIDTH),
            }
        ),
        "ssm_dt.bias": (inner,),
        "ssm_a": (1, HEADS),
    }


def delta_attention_of(architecture: str) -> Tensors:
    """Delta attention with the gates of a family: through a narrow layer, or at full rank."""
    inner, tensors = HEADS * HEAD, delta_attention()
    if architecture == "bailingmoe3":
        narrow = ("ssm_f_b.weight", "ssm_g_b.weight")
        tensors |= weights({"ssm_f_a": (WIDTH, inner), "ssm_g_a": (WIDTH, inner)})
    else:
        narrow = ("ssm_g_a.weight", "ssm_g_b.weight")
        tensors |= weights({"ssm_g": (WIDTH, inner)}) | {"ssm_a": (HEADS,)}
    return {name: shape for name, shape in tensors.items() if name not in narrow}


def linear_attention() -> Tensors:
    inner = HEADS * HEAD
    return weights(
        {
            "attn_qkv": (WIDTH, 3 * inner),
            "attn_norm_2": (inner,),
            "attn_gate": (WIDTH, inner),
            "attn_output": (inner, WIDTH),
        }
    )


def short_convolution() -> Tensors:
    return weights(
        {
            "shortconv.in_proj": (WIDTH, 3 * WIDTH),
            "shortconv.conv": (SHORT_CONVOLUTION, WIDTH),
            "shortconv.out_proj": (WIDTH, WIDTH),
        }
    )
