"""How a server lays out its context: flags, and the cells and streams that follow from them.

Source: `llama_context::llama_context` (llama-context.cpp), `llama_kv_cache_iswa` (llama-kv-cache-iswa.cpp) of
llama.cpp b11434.
"""

from dataclasses import dataclass, field

from llamapool.domain.sequence_memory import CacheTypes, SequenceMemory

_CELL_MULTIPLE = 256


@dataclass(frozen=True, kw_only=True)
class ContextFlags:
    """The flags of llama-server that decide what it keeps in memory; the defaults are upstream's.

    Attributes:
        slots: sequences served at once (`--parallel`).
        context_tokens: of all slots together (`--ctx-size`); 0: as many as the model was trained on.
        unified: whether the slots share one cache (`--kv-unified`).
        cache_types: of keys and values (`--cache-type-k`, `--cache-type-v`).
        micro_batch_tokens: computed at once (`--ubatch-size`).
        full_windows: whether sliding windows are kept whole (`--swa-full`).
        gpu_layers: offloaded, the last ones first (`--gpu-layers`); None: all.
        offload_cache: whether the cache of offloaded layers is offloaded (`--kv-offload`).
        mmap: whether the weights are memory-mapped (`--mmap`).
        repack: whether the CPU backend may copy weights into a layout of its own (`--repack`).
    """

    slots: int = 4
    context_tokens: int = 0
    unified: bool = False
    cache_types: CacheTypes = field(default_factory=CacheTypes)
    micro_batch_tokens: int = 512
    full_windows: bool = False
    gpu_layers: int | None = 0
    offload_cache: bool = True
    mmap: bool = True
    repack: bool = True


@dataclass(frozen=True, kw_only=True)
class ContextLayout:
    """The cells of a context.

    Attributes:
        streams: caches that the context is divided into.
        cells: of each stream, for layers with full attention.
        window_cells: of each stream, for layers with a sliding window.
        batch_tokens: the most that is computed at once.
    """

    streams: int
    cells: int
    window_cells: int
    batch_tokens: int


def context_layout(flags: ContextFlags, memory: SequenceMemory, trained_tokens: int) -> ContextLayout:
    """Return the cells that a server with `flags` allocates.

    Args:
        flags: of the server.
        memory: what the model keeps for its sequences.
        trained_tokens: context that the model was trained on.
    """
    tokens = _padded(flags.context_tokens or trained_tokens)
    streams = 1 if flags.unified else flags.slots
    cells = tokens if flags.unified else _padded(max(1, tokens // flags.slots))
    window_cells = cells
    if not flags.full_windows:
        sequences = flags.slots if flags.unified else 1
        window_cells = _padded(min(cells, memory.window * sequences + flags.micro_batch_tokens))
    return ContextLayout(
        streams=streams,
        cells=cells,
        window_cells=window_cells,
        batch_tokens=min(cells * streams, flags.micro_batch_tokens),
    )


def _padded(cells: int) -> int:
    return -(-cells // _CELL_MULTIPLE) * _CELL_MULTIPLE
