"""The tiny models, one for each architecture: what its loader in llama.cpp b11434 asks for."""

from __future__ import annotations

from tests.models import rwkv
from tests.models.blocks import (
    ATTENTION_KEYS,
    DELTA_ATTENTION_KEYS,
    DELTA_NET_KEYS,
    EXPERT_KEYS,
    FEED_FORWARD,
    HEAD,
    HEADS,
    LATENT_KEYS,
    MAMBA2_KEYS,
    MAMBA_KEYS,
    SHORT_CONVOLUTION,
    WIDTH,
    Value,
    attention,
    delta_attention,
    delta_attention_of,
    delta_net,
    experts,
    feed_forward,
    fused_attention,
    latent_attention,
    linear_attention,
    mamba,
    mamba2,
    norms,
    plamo_mamba,
    query_key_norms,
    short_convolution,
    weights,
)
from tests.models.tiny import PRE_NORMS, THREE_OF_FOUR, TinyModel, embeddings, heads_by_layer, mixed

WINDOW = 48


def recurrent_models() -> list[TinyModel]:
    of_qwen = {**ATTENTION_KEYS, "token_shift_count": 1}
    return [
        TinyModel(
            architecture="mamba",
            keys=MAMBA_KEYS,
            blocks=[[norms("attn_norm"), mamba()]] * 3,
            others=embeddings(),
        ),
        TinyModel(
            architecture="mamba2",
            keys=MAMBA2_KEYS,
            blocks=[[norms("attn_norm"), mamba2()]] * 3,
            others=embeddings(),
        ),
        TinyModel(
            architecture="rwkv6",
            keys=rwkv.VERSION_6_KEYS,
            blocks=[rwkv.layer_6()] * 3,
            others=embeddings(rwkv.embedding_norms()),
        ),
        TinyModel(
            architecture="rwkv6qwen2",
            keys={**of_qwen, "attention.head_count_kv": HEADS, **rwkv.VERSION_6_KEYS},
            blocks=[rwkv.layer_6_qwen()] * 3,
            others=embeddings(),
        ),
        TinyModel(
            architecture="rwkv7",
            keys=rwkv.VERSION_7_KEYS,
            blocks=[rwkv.layer_7()] * 3,
            others=embeddings(rwkv.embedding_norms()),
        ),
        TinyModel(
            architecture="arwkv7",
            keys={**of_qwen, **rwkv.VERSION_7_KEYS},
            blocks=[rwkv.layer_7_qwen()] * 3,
            others=embeddings(),
        ),
    ]


def mamba_hybrids() -> list[TinyModel]:
    heads = heads_by_layer(THREE_OF_FOUR)
    return [
        TinyModel(
            architecture="jamba",
            keys={**ATTENTION_KEYS, **MAMBA_KEYS, **heads},
            blocks=mixed(mamba(normed=True), attention(), PRE_NORMS, feed_forward()),
            others=embeddings(),
        ),
        TinyModel(
            architecture="falcon-h1",
            keys={**ATTENTION_KEYS, **MAMBA2_KEYS},
            blocks=[
                [norms("attn_norm"), {"ffn_norm": (WIDTH,)}, mamba2(), attention(), feed_forward()],
            ]
            * 3,
            others=embeddings(),
        ),
        TinyModel(
            architecture="granitehybrid",
            keys={**ATTENTION_KEYS, **MAMBA2_KEYS, **heads},
            blocks=mixed(mamba2(), attention(), PRE_NORMS, feed_forward()),
            others=embeddings(),
        ),
        *(
            TinyModel(
                architecture=architecture,
                keys={
                    **ATTENTION_KEYS,
                    **MAMBA2_KEYS,
                    **heads_by_layer((True, False, True, True)),
                    "feed_forward_length": [0, 0, FEED_FORWARD, 0],
                },
                blocks=[
                    [norms("attn_norm"), part]
                    for part in (
                        mamba2(),
                        attention(),
                        {name: shape for name, shape in feed_forward().items() if "gate" not in name},
                        mamba2(),
                    )
                ],
                others=embeddings(),
            )
            for architecture in ("nemotron_h", "nemotron_h_moe")
        ),
        TinyModel(
            architecture="plamo2",
            keys={**ATTENTION_KEYS, **MAMBA_KEYS, "ssm.group_count": 0, **heads},
            blocks=mixed(
                plamo_mamba(),
                fused_attention(),
                PRE_NORMS,
                {"post_attention_norm": (WIDTH,), "post_ffw_norm": (WIDTH,)},
                weights({"ffn_up": (WIDTH, 2 * FEED_FORWARD), "ffn_down": (FEED_FORWARD, WIDTH)}),
            ),
            others=embeddings(),
        ),
    ]


def attention_hybrids() -> list[TinyModel]:
    heads = heads_by_layer(THREE_OF_FOUR)
    sections: dict[str, Value] = {"rope.dimension_sections": [4, 2, 2, 0]}
    qwen_norms = norms("attn_norm", "post_attention_norm")
    qwen_attention = attention(gated=True) | query_key_norms()
    shared = experts(shared=True, shared_gate=True)
    short = {"shortconv.l_cache": SHORT_CONVOLUTION}
    normed_attention = attention() | query_key_norms()
    return [
        TinyModel(
            architecture="qwen3next",
            keys={**ATTENTION_KEYS, **DELTA_NET_KEYS, **EXPERT_KEYS},
            blocks=mixed(delta_net(fused_rates=True), qwen_attention, qwen_norms, shared),
            others=embeddings(),
        ),
        TinyModel(
            architecture="qwen35",
            keys={**ATTENTION_KEYS, **DELTA_NET_KEYS, **sections},
            blocks=mixed(delta_net(), qwen_attention, qwen_norms, feed_forward()),
            others=embeddings(),
        ),
        TinyModel(
            architecture="qwen35moe",
            keys={**ATTENTION_KEYS, **DELTA_NET_KEYS, **EXPERT_KEYS, **sections},
            blocks=mixed(delta_net(), qwen_attention, qwen_norms, shared),
            others=embeddings(),
        ),
        TinyModel(
            architecture="kimi-linear",
            keys={
                **LATENT_KEYS,
                **DELTA_ATTENTION_KEYS,
                **EXPERT_KEYS,
                **heads,
                "leading_dense_block_count": 1,
            },
            blocks=[
                [
                    delta_attention() if recurrent else latent_attention(),
                    PRE_NORMS,
                    experts(shared=True, biased=True) if number else feed_forward(),
                ]
                for number, recurrent in enumerate(THREE_OF_FOUR)
            ],
            others=embeddings(),
        ),
        TinyModel(
            architecture="minimax-01",
            keys={
                **ATTENTION_KEYS,
                **EXPERT_KEYS,
                "full_attention_interval": 4,
                "residual_scale": 1.0,
            },
            blocks=mixed(linear_attention(), attention(), PRE_NORMS, experts()),
            others=embeddings(),
        ),
        TinyModel(
            architecture="lfm2",
            keys={**ATTENTION_KEYS, **short, **heads},
            blocks=mixed(short_convolution(), normed_attention, PRE_NORMS, feed_forward()),
            others=embeddings(output_norm="token_embd_norm"),
        ),
        TinyModel(
            architecture="lfm2moe",
            keys={**ATTENTION_KEYS, **short, **EXPERT_KEYS, **heads, "leading_dense_block_count": 0},
            blocks=mixed(
                short_convolution(),
                normed_attention,
                PRE_NORMS,
                experts(biased=True),
            ),
            others=embeddings(output_norm="token_embd_norm"),
        ),
    ]


def delta_attention_models() -> list[TinyModel]:
    """Kimi K3 and Ling 3, whose delta attention has gates of their own; feed-forward parts are dense."""
    keys: dict[str, Value] = {
        **LATENT_KEYS,
        **DELTA_ATTENTION_KEYS,
        **EXPERT_KEYS,
        **heads_by_layer(THREE_OF_FOUR),
        "leading_dense_block_count": 4,
        "kda.gate_lower_bound": -5.0,
    }
    scores = norms("attn_res_score", "ffn_res_score")
    situ: dict[str, Value] = {
        "attn_res.block_size": 2,
        "activation.situ_beta": 1.0,
        "activation.situ_linear_beta": 0.0,
    }
    ling_attention = latent_attention() | weights({"attn_gate": (WIDTH, HEADS)})
    return [
        TinyModel(
            architecture="bailingmoe3",
            keys=keys,
            blocks=mixed(delta_attention_of("bailingmoe3"), ling_attention, PRE_NORMS, feed_forward()),
            others=embeddings(),
        ),
        TinyModel(
            architecture="kimi-k3",
            keys={**keys, **situ},
            blocks=mixed(
                delta_attention_of("kimi-k3"), latent_attention(), PRE_NORMS, scores, feed_forward()
            ),
            others=embeddings(norms("output_res_score")),
        ),
    ]


def sliding_window_models() -> list[TinyModel]:
    window: dict[str, Value] = {"attention.sliding_window": WINDOW}
    return [
        TinyModel(
            architecture="gemma3",
            keys={**ATTENTION_KEYS, **window, "attention.sliding_window_pattern": 2},
            blocks=[
                [
                    norms("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"),
                    attention() | query_key_norms(),
                    feed_forward(),
                ]
            ]
            * 4,
            others=embeddings(),
        ),
    ]


def plain_models() -> list[TinyModel]:
    """Full attention in every layer: served without checkpoints."""
    return [
        TinyModel(
            architecture="qwen3",
            keys={**ATTENTION_KEYS, "rope.dimension_count": HEAD},
            blocks=[[PRE_NORMS, attention() | query_key_norms(), feed_forward()]] * 3,
            others=embeddings(),
        ),
    ]
