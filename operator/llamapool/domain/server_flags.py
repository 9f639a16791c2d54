"""What the flags of a llama-server mean for its memory: read from its command line.

Spellings are those of upstream release b11434, common/arg.cpp.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llamapool.domain.context import ContextFlags
from llamapool.domain.sequence_memory import CacheTypes
from llamapool.domain.tensor_types import BY_NAME
from llamapool.errors import InvalidFieldError

_CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
_LOAD_MODES = {"auto": True, "mmap": True, "none": False, "dio": False, "mlock": False}
_SHORT = {
    "-c": "--ctx-size",
    "-np": "--parallel",
    "-ngl": "--gpu-layers",
    "--n-gpu-layers": "--gpu-layers",
    "-b": "--batch-size",
    "-ub": "--ubatch-size",
    "-ctk": "--cache-type-k",
    "-ctv": "--cache-type-v",
    "-kvu": "--kv-unified",
    "-no-kvu": "--no-kv-unified",
    "-kvo": "--kv-offload",
    "-nkvo": "--no-kv-offload",
    "-nr": "--no-repack",
    "-lm": "--load-mode",
    "--embeddings": "--embedding",
    "--reranking": "--rerank",
}
_SWITCHES: dict[str, dict[str, Any]] = {
    "--kv-unified": {"unified": True},
    "--no-kv-unified": {"unified": False},
    "--kv-offload": {"offload_cache": True},
    "--no-kv-offload": {"offload_cache": False},
    "--swa-full": {"full_windows": True},
    "--repack": {"repack": True},
    "--no-repack": {"repack": False},
}
_VALUED = (
    *("--batch-size", "--ubatch-size", "--ctx-size", "--parallel", "--gpu-layers"),
    *("--load-mode", "--cache-type-k", "--cache-type-v"),
)
_COUNTS = {
    "--ctx-size": "context_tokens",
    "--parallel": "slots",
    "--ubatch-size": "micro_batch_tokens",
}
_UNPREDICTED = (
    *("-ot", "--override-tensor", "-cmoe", "--cpu-moe", "-ncmoe", "--n-cpu-moe", "-lzm", "--lazy-mode"),
    *("--lora", "--lora-scaled", "--control-vector", "--control-vector-scaled", "--rpc", "--no-host"),
    "--override-kv",
)
"""Flags that move or add memory in ways that the prediction does not follow."""


@dataclass(frozen=True, kw_only=True)
class ServerFlags:
    """What decides a server's memory.

    Attributes:
        context: of its context.
        embedding: whether it only embeds or reranks: prompts are never continued, so none is worth caching.
        unpredicted: flags for which no prediction is made, as written.
    """

    context: ContextFlags = field(default_factory=ContextFlags)
    embedding: bool = False
    unpredicted: tuple[str, ...] = ()


def read_flags(
    arguments: Sequence[str], *, start: ContextFlags | None = None, field_name: str = "spec.server.extraArgs"
) -> ServerFlags:
    """Read a command line.

    Args:
        arguments: of llama-server; flags that do not matter to memory are passed over.
        start: what holds where the command line says nothing; None: upstream's defaults.
        field_name: where the arguments come from, for errors.

    Raises:
        InvalidFieldError: a flag that matters lacks its value, or has one that upstream refuses.
    """
    flags = ServerFlags(context=start or ContextFlags())
    batch_tokens = None
    words = iter(arguments)
    for word in words:
        name, equals, attached = word.partition("=")
        name = "--" + name[2:].replace("_", "-") if name.startswith("--") else name
        name = _SHORT.get(name, name)
        if name in _SWITCHES:
            flags = replace(flags, context=replace(flags.context, **_SWITCHES[name]))
        elif name in ("--embedding", "--rerank"):
            flags = replace(flags, embedding=True)
        elif name in _UNPREDICTED:
            flags = replace(flags, unpredicted=(*flags.unpredicted, name))
        elif name in _VALUED:
            value = attached if equals else _next(words, name, field_name)
            if name == "--batch-size":
                batch_tokens = _count(value, name, field_name)
            else:
                flags = _with(flags, name, value, field_name)
    if batch_tokens is not None and batch_tokens < flags.context.micro_batch_tokens:
        flags = replace(flags, context=replace(flags.context, micro_batch_tokens=batch_tokens))
    return flags


def gpu_layers(value: str | None, *, has_gpu: bool) -> int | None:
    """Return how many layers are offloaded; None: all.

    Args:
        value: of `--gpu-layers`, a number, `auto` or `all`; None: not given, which is `auto`.
        has_gpu: whether the server has a device. Without one nothing is offloaded, whatever the flag says.
    """
    if not has_gpu:
        return 0
    return int(value) if value is not None and value.isdecimal() else None


def _with(flags: ServerFlags, name: str, value: str, field_name: str) -> ServerFlags:
    context = flags.context
    if name in _COUNTS:
        changed: dict[str, Any] = {_COUNTS[name]: _count(value, name, field_name)}
        context = replace(context, **changed)
    elif name == "--gpu-layers":
        if value not in ("auto", "all"):
            _count(value, name, field_name)
        context = replace(context, gpu_layers=gpu_layers(value, has_gpu=True))
    elif name == "--load-mode":
        if value == "mmap+mlock":  # mapped and locked, and what is repacked is there twice
            return replace(flags, unpredicted=(*flags.unpredicted, f"{name} {value}"))
        if value not in _LOAD_MODES:
            raise InvalidFieldError(field_name, f"{name} {value}", f"must be one of {', '.join(_LOAD_MODES)}")
        context = replace(context, mmap=_LOAD_MODES[value])
    elif name in ("--cache-type-k", "--cache-type-v"):
        if value not in _CACHE_TYPES:
            raise InvalidFieldError(
                field_name, f"{name} {value}", f"must be one of {', '.join(_CACHE_TYPES)}"
            )
        types = context.cache_types
        keys = BY_NAME[value] if name == "--cache-type-k" else types.key
        values = BY_NAME[value] if name == "--cache-type-v" else types.value
        context = replace(context, cache_types=CacheTypes(key=keys, value=values))
    return replace(flags, context=context)


def _next(words: Iterator[str], name: str, field_name: str) -> str:
    value = next(words, None)
    if value is None:
        raise InvalidFieldError(field_name, name, "needs a value after it")
    return value


def _count(value: str, name: str, field_name: str) -> int:
    if not value.isdecimal():
        raise InvalidFieldError(field_name, f"{name} {value}", "must be a whole number, 0 or more")
    return int(value)
