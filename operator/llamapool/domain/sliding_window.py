"""Architectures without recurrent layers: with sliding-window attention in some layers, or with none.

Where some layers see only a window of tokens, what has left the window is gone, so a server makes checkpoints
of it as it does of recurrent state.

Source: `load_arch_hparams` of src/models/*.cpp, `load_swa_pattern` and `create_memory` (llama-model.cpp),
`set_swa_pattern` (llama-hparams.cpp) of llama.cpp b11434.
"""

from collections.abc import Callable
from dataclasses import dataclass

from llamapool.domain.gguf import GgufError
from llamapool.domain.hyperparameters import Hyperparameters
from llamapool.domain.sequence_memory import SequenceMemory, attention_row

_WINDOW = "attention.sliding_window"
_PATTERN = "attention.sliding_window_pattern"


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """How an architecture's file says which layers see a window, and how wide it is.

    Attributes:
        every: one layer in so many sees all tokens, unless the file says otherwise; None: the file must say.
        full_first: whether that is the first of the period, not the last.
        optional: whether a file without a window has full attention everywhere.
        window: the width where the file gives none; None: it must, or `optional` applies.
        fixed_window: the width whatever the file says.
        cached_layers: the first so many layers have keys and values of their own, later ones share them.
    """

    every: int | None = 4
    full_first: bool = False
    optional: bool = False
    window: int | None = None
    fixed_window: int | None = None
    cached_layers: Callable[[Hyperparameters], int] | None = None


def attention_only(parameters: Hyperparameters) -> SequenceMemory:
    """Keys and values of every token in every layer; such a model is served without checkpoints.

    Raises:
        GgufError: a key is absent or out of range.
    """
    return SequenceMemory(
        layers=parameters.layers,
        recurrent={},
        attention={layer: attention_row(parameters, layer) for layer in range(parameters.layers)},
    )


def _windowed(rule: _Rule) -> Callable[[Hyperparameters], SequenceMemory | None]:
    def build(parameters: Hyperparameters) -> SequenceMemory | None:
        window = parameters.whole(_WINDOW, 0 if rule.optional else rule.window)
        if window == 0:
            return attention_only(parameters) if rule.optional else None
        sliding = _sliding_layers(parameters, rule)
        cached = parameters.layers if rule.cached_layers is None else rule.cached_layers(parameters)
        layers = range(min(cached, parameters.layers))
        return SequenceMemory(
            layers=parameters.layers,
            recurrent={},
            attention={layer: attention_row(parameters, layer, sliding=sliding[layer]) for layer in layers},
            window=rule.fixed_window or window,
        )

    return build


def _sliding_layers(parameters: Hyperparameters, rule: _Rule) -> list[bool]:
    if parameters.is_array(_PATTERN):
        flags = [flag != 0 for flag in parameters.array(_PATTERN)]
        return flags + [False] * (parameters.layers - len(flags))
    if rule.every is None:
        raise GgufError(f"{parameters.architecture}.{_PATTERN} is not an array with one value a layer")
    every = parameters.whole(_PATTERN, rule.every)
    if every == 0:
        return [True] * parameters.layers
    full = 0 if rule.full_first else every - 1
    return [layer % every != full for layer in range(parameters.layers)]


def _gemma3n_cached(_: Hyperparameters) -> int:
    return 20


def _gemma4_cached(parameters: Hyperparameters) -> int:
    return parameters.layers_with_draft - parameters.whole("attention.shared_kv_layers", 0)


def _exaone4(parameters: Hyperparameters) -> SequenceMemory | None:
    """The window is the 32B's, told by its 64 layers; upstream's use of the key elsewhere is not computed."""
    if parameters.layers == 64:  # noqa: PLR2004  # upstream's own test
        return _windowed(_Rule(window=4096))(parameters)
    return None if parameters.whole(_WINDOW, 0) else attention_only(parameters)


def _llama4(parameters: Hyperparameters) -> SequenceMemory | None:
    """Chunks of 8,192 tokens, unless the file says that there are none."""
    if parameters.whole(_WINDOW, 1) == 0:
        return attention_only(parameters)
    return _windowed(_Rule(window=8192, fixed_window=8192))(parameters)


SLIDING_WINDOW: dict[str, Callable[[Hyperparameters], SequenceMemory | None]] = {
    "exaone4": _exaone4,
    "llama4": _llama4,
} | {
    architecture: _windowed(rule)
    for architecture, rule in {
        "afmoe": _Rule(optional=True),
        "cohere2": _Rule(),
        "cohere2moe": _Rule(full_first=True),
        "exaone-moe": _Rule(),
        "gemma2": _Rule(every=2, window=4096),
        "gemma3": _Rule(every=6, optional=True),
        "gemma3n": _Rule(every=5, cached_layers=_gemma3n_cached),
        "gemma4": _Rule(every=None, cached_layers=_gemma4_cached),
        "gpt-oss": _Rule(every=2),
        "granite_swa": _Rule(every=None),
        "laguna": _Rule(full_first=True, optional=True),
        "maple": _Rule(every=None),
        "mellum": _Rule(optional=True),
        "mimo2": _Rule(every=None),
        "muse-glimmer": _Rule(),
        "olmo2": _Rule(optional=True),
        "plamo3": _Rule(every=8, optional=True),
        "smallthinker": _Rule(full_first=True, optional=True, fixed_window=4096),
        "spark2_5": _Rule(every=None),
        "step35": _Rule(every=None),
    }.items()
}
"""What each architecture with sliding windows keeps."""

ATTENTION_ONLY = (
    "arcee",
    "arctic",
    "baichuan",
    "bailingmoe",
    "bailingmoe2",
    "bloom",
    "chatglm",
    "codeshell",
    "cogvlm",
    "command-r",
    "dbrx",
    "deci",
    "deepseek",
    "deepseek2",
    "dots1",
    "ernie4_5",
    "ernie4_5-moe",
    "exaone",
    "falcon",
    "gemma",
    "glm4",
    "glm4moe",
    "gpt2",
    "gptneox",
    "granite",
    "granitemoe",
    "grok",
    "grovemoe",
    "hunyuan-dense",
    "hunyuan-moe",
    "hunyuan_vl",
    "hy_v3",
    "internlm2",
    "jais",
    "jais2",
    "llama",
    "maincoder",
    "minicpm",
    "minicpm3",
    "minimax-m2",
    "mistral3",
    "mistral4",
    "mpt",
    "nemotron",
    "olmo",
    "olmoe",
    "openelm",
    "orion",
    "paddleocr",
    "pangu-embedded",
    "phi2",
    "phi3",
    "phimoe",
    "plamo",
    "qwen",
    "qwen2",
    "qwen2moe",
    "qwen2vl",
    "qwen3",
    "qwen3moe",
    "qwen3vl",
    "qwen3vlmoe",
    "refact",
    "seed_oss",
    "smollm3",
    "stablelm",
    "starcoder",
    "starcoder2",
    "talkie",
    "xverse",
)
"""Architectures that keep the keys and values of every token, in the widths that the common keys give."""
