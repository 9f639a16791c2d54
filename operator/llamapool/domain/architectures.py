"""What each architecture keeps for a sequence: which layers hold recurrent state, which hold keys and values.

One entry for each architecture that the pinned upstream serves with context checkpoints (recurrent, hybrid,
sliding-window) or with plain attention. An architecture that is not here is unknown: its figures are measured
by the server, never guessed.

Source: `load_arch_hparams` of src/models/*.cpp, `llama_hparams::n_embd_r` and `n_embd_s` (llama-hparams.cpp),
`llama_model::create_memory` (llama-model.cpp) of llama.cpp b11434.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from llamapool.domain.gguf import GgufError
from llamapool.domain.hyperparameters import Hyperparameters
from llamapool.domain.sequence_memory import RecurrentRow, SequenceMemory, attention_row
from llamapool.domain.sliding_window import ATTENTION_ONLY, SLIDING_WINDOW, attention_only

Flags = Sequence[bool]
_Row = Callable[[Hyperparameters], RecurrentRow]
_Build = Callable[[Hyperparameters], SequenceMemory | None]


def sequence_memory(parameters: Hyperparameters) -> SequenceMemory | None:
    """Return what a model of `parameters` keeps for its sequences; None: the architecture is not known.

    Raises:
        GgufError: the architecture is known, and a key it needs is absent or out of range.
    """
    build = _ARCHITECTURES.get(parameters.architecture)
    return None if build is None else build(parameters)


def known_architectures() -> frozenset[str]:
    """The values of `general.architecture` whose figures are computed."""
    return frozenset(_ARCHITECTURES)


# The recurrent state of one layer.


def _ssm(parameters: Hyperparameters, *, grouped: bool = True) -> RecurrentRow:
    inner, state = parameters.whole("ssm.inner_size"), parameters.whole("ssm.state_size")
    groups = parameters.whole("ssm.group_count") if grouped else 0
    window = max(0, parameters.whole("ssm.conv_kernel") - 1)
    return RecurrentRow(convolution=window * (inner + 2 * groups * state), state=state * inner)


def _mamba(parameters: Hyperparameters) -> RecurrentRow:
    return _ssm(parameters, grouped=False)


def _rwkv(parameters: Hyperparameters) -> RecurrentRow:
    width = parameters.embedding_length
    return RecurrentRow(
        convolution=parameters.whole("token_shift_count", 2) * width,
        state=width * parameters.whole("wkv.head_size"),
    )


def _short_convolution(parameters: Hyperparameters) -> RecurrentRow:
    kernel = parameters.whole("shortconv.l_cache")
    return RecurrentRow(convolution=parameters.embedding_length * max(0, kernel - 1), state=0)


def _delta_attention(parameters: Hyperparameters) -> RecurrentRow:
    heads, width = parameters.head_count[0], parameters.whole("kda.head_dim")
    window = (parameters.whole("ssm.conv_kernel") or 4) - 1
    return RecurrentRow(convolution=3 * window * heads * width, state=width * width * heads)


def _linear_attention(parameters: Hyperparameters) -> RecurrentRow:
    width = parameters.head_length("key")
    return RecurrentRow(convolution=0, state=width * width * parameters.head_count[0])


# Which layers are recurrent.


def _without_heads(parameters: Hyperparameters) -> Flags:
    return [heads == 0 for heads in parameters.head_count_kv[: parameters.layers]]


def _all_but_every(interval: int) -> Callable[[Hyperparameters], Flags]:
    def recurrent(parameters: Hyperparameters) -> Flags:
        if parameters.has("attention.recurrent_layers"):
            return [flag != 0 for flag in parameters.per_layer("attention.recurrent_layers")]
        every = parameters.whole("full_attention_interval", interval)
        if every == 0:
            raise GgufError(f"{parameters.architecture}.full_attention_interval is 0, not 1 or more")
        return [(layer + 1) % every != 0 for layer in range(parameters.layers)]

    return recurrent


# Whole architectures.


def _recurrent(row: _Row) -> Callable[[Hyperparameters], SequenceMemory]:
    def build(parameters: Hyperparameters) -> SequenceMemory:
        one = row(parameters)
        return SequenceMemory(
            layers=parameters.layers, recurrent=dict.fromkeys(range(parameters.layers), one), attention={}
        )

    return build


def _hybrid(
    row: _Row,
    recurrent_layers: Callable[[Hyperparameters], Flags],
    *,
    caches_draft: bool = True,
) -> Callable[[Hyperparameters], SequenceMemory]:
    """Recurrent in some layers, attention in all others; `caches_draft`: in the draft layers as well."""

    def build(parameters: Hyperparameters) -> SequenceMemory:
        one, flags = row(parameters), list(recurrent_layers(parameters))
        recurrent = {layer: one for layer in range(parameters.layers) if flags[layer]}
        last = parameters.layers_with_draft if caches_draft else parameters.layers
        attention = {
            layer: attention_row(parameters, layer) for layer in range(last) if layer not in recurrent
        }
        return SequenceMemory(layers=parameters.layers, recurrent=recurrent, attention=attention)

    return build


def _falcon_h1(parameters: Hyperparameters) -> SequenceMemory:
    """A recurrent and an attention part in every layer."""
    one = _ssm(parameters)
    return SequenceMemory(
        layers=parameters.layers,
        recurrent=dict.fromkeys(range(parameters.layers), one),
        attention={layer: attention_row(parameters, layer) for layer in range(parameters.layers_with_draft)},
    )


def _nemotron_h(parameters: Hyperparameters) -> SequenceMemory:
    """A layer is one of three: recurrent, attention, or (with a width of its own) feed-forward only."""
    one, widths, heads = _ssm(parameters), parameters.feed_forward_length, parameters.head_count_kv
    recurrent = {layer: one for layer in range(parameters.layers) if heads[layer] == 0 and widths[layer] == 0}
    attention = {
        layer: attention_row(parameters, layer)
        for layer in range(parameters.layers_with_draft)
        if layer not in recurrent and widths[layer] == 0
    }
    return SequenceMemory(layers=parameters.layers, recurrent=recurrent, attention=attention)


def _qwen4exp(parameters: Hyperparameters) -> SequenceMemory:
    """Gated delta-net layers and attention with a sparse indexer; some layers keep an embedding history."""
    plain = _hybrid(_ssm, _all_but_every(4), caches_draft=False)(parameters)
    pooled = any(parameters.per_layer("attention.compress_ratios", 0))
    index = parameters.whole("attention.indexer.key_length") * (2 if pooled else 1)
    history_layers = parameters.array("ple.layers")
    history = 0
    if history_layers:
        history = (
            max(0, parameters.whole("ple.conv_kernel") - 1)
            * parameters.whole("ple.ngram_size")
            * parameters.whole("hyper_connection.count")
            * parameters.embedding_length
        )
    return replace(
        plain,
        recurrent={
            layer: replace(row, embedding_history=history if layer in history_layers else None)
            for layer, row in plain.recurrent.items()
        },
        attention={layer: replace(row, index=index) for layer, row in plain.attention.items()},
    )


def _glm5_next(parameters: Hyperparameters) -> SequenceMemory:
    """Delta attention, and latent attention of which some layers have a sparse indexer of three key slots."""
    plain = _hybrid(_delta_attention, _without_heads, caches_draft=False)(parameters)
    indexed = parameters.per_layer("attention.indexer.types", 1, layers=parameters.layers)
    index = 3 * parameters.whole("attention.indexer.key_length")
    return replace(
        plain,
        attention={
            layer: replace(row, index=index) if indexed[layer] else row
            for layer, row in plain.attention.items()
        },
    )


def _lfm2(parameters: Hyperparameters) -> SequenceMemory:
    """Short convolutions and attention, whose window, where the file has one, holds in every such layer."""
    plain = _hybrid(_short_convolution, _without_heads)(parameters)
    window = parameters.whole("attention.sliding_window", 0)
    if window == 0:
        return plain
    attention = {
        layer: attention_row(parameters, layer, sliding=layer < parameters.layers)
        for layer in plain.attention
    }
    return replace(plain, attention=attention, window=window)


_WITH_RECURRENT_STATE: dict[str, _Build] = {
    "arwkv7": _recurrent(_rwkv),
    "bailingmoe3": _hybrid(_delta_attention, _without_heads),
    "falcon-h1": _falcon_h1,
    "glm5-next": _glm5_next,
    "granitehybrid": _hybrid(_ssm, _without_heads),
    "jamba": _hybrid(_mamba, _without_heads),
    "kimi-k3": _hybrid(_delta_attention, _without_heads),
    "kimi-linear": _hybrid(_delta_attention, _without_heads),
    "lfm2": _lfm2,
    "lfm2moe": _hybrid(_short_convolution, _without_heads),
    "mamba": _recurrent(_mamba),
    "mamba2": _recurrent(_ssm),
    "minimax-01": _hybrid(_linear_attention, _all_but_every(8), caches_draft=False),
    "nemotron_h": _nemotron_h,
    "nemotron_h_moe": _nemotron_h,
    "plamo2": _hybrid(_ssm, _without_heads),
    "qwen35": _hybrid(_ssm, _all_but_every(4), caches_draft=False),
    "qwen35moe": _hybrid(_ssm, _all_but_every(4), caches_draft=False),
    "qwen3next": _hybrid(_ssm, _all_but_every(4), caches_draft=False),
    "qwen4exp": _qwen4exp,
    "rwkv6": _recurrent(_rwkv),
    "rwkv6qwen2": _recurrent(_rwkv),
    "rwkv7": _recurrent(_rwkv),
}
"""The recurrent and hybrid architectures; `deepseek4`, whose state is compressed keys, is not computed."""

_ARCHITECTURES: dict[str, _Build] = (
    dict.fromkeys(ATTENTION_ONLY, attention_only) | SLIDING_WINDOW | _WITH_RECURRENT_STATE
)
