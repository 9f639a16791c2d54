"""What a model keeps for its sequences, and how large a context checkpoint of one is, to the byte.

A checkpoint holds what cannot be rolled back: recurrent state, and the keys and values within a sliding
window. Keys and values of full attention stay in the context.

Source: `state_write` of llama-memory-recurrent.cpp, llama-memory-hybrid.cpp, llama-memory-hybrid-iswa.cpp and
llama-kv-cache.cpp, `state_seq_get_data` of llama-context.cpp, in llama.cpp b11434.
"""

from dataclasses import dataclass

from llamapool.domain.hyperparameters import Hyperparameters
from llamapool.domain.tensor_types import F16, F32, TensorType

_SEQUENCE_BYTES = 4 + 4  # magic number, sequence id
_RECURRENT_HEADER_BYTES = 4 + (4 + 4) + (4 + 4)  # cells; position and ids of the one cell; layout, layers
_ROW_BYTES = 4 + 8  # type and size of a row
_HISTORY_ROW_BYTES = 8  # its size; it has the type of the row before it
_WINDOW_HEADER_BYTES = 4  # streams
_STREAM_BYTES = 4  # cells
_CELL_BYTES = 4 + 4 + 4  # position, number of ids, the id
_CELLS_HEADER_BYTES = 4 * 4  # layout, layers, rotations of keys and of values


@dataclass(frozen=True, kw_only=True)
class CacheTypes:
    """How the context stores keys and values (`--cache-type-k`, `--cache-type-v`)."""

    key: TensorType = F16
    value: TensorType = F16


@dataclass(frozen=True, kw_only=True)
class RecurrentRow:
    """The state that a recurrent layer keeps for one sequence, in float32 elements.

    Attributes:
        convolution: of the rolling window (convolution, token shift); 0: it has none.
        state: of the recurrent state proper; 0: it has none.
        embedding_history: of the window of a per-layer embedding; None: the layer has none.
    """

    convolution: int
    state: int
    embedding_history: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the state."""
        return F32.row_bytes(self.convolution + self.state + (self.embedding_history or 0))

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes that it takes in a checkpoint: the state, and what is written before each part of it."""
        history = 0 if self.embedding_history is None else _HISTORY_ROW_BYTES
        return self.size_bytes + 2 * _ROW_BYTES + history


@dataclass(frozen=True, kw_only=True)
class AttentionRow:
    """What an attention layer keeps for one token, in elements of the cache's key and value types.

    Attributes:
        key: width of the keys.
        value: width of the values; None: none are cached (multi-head latent attention).
        sliding: whether only the tokens within the window are kept.
        index: width of the keys of a sparse-attention indexer, in the key type; 0: it has none.
    """

    key: int
    value: int | None
    sliding: bool = False
    index: int = 0

    def token_bytes(self, types: CacheTypes) -> int:
        """Return the bytes that a token takes in the context, the indexer's keys included.

        Raises:
            ValueError: a width is not a whole number of blocks of its type.
        """
        keys = types.key.row_bytes(self.key) + types.key.row_bytes(self.index)
        return keys + (0 if self.value is None else types.value.row_bytes(self.value))


@dataclass(frozen=True, kw_only=True)
class SequenceMemory:
    """What a model keeps for its sequences, layer by layer.

    Attributes:
        layers: layers that every token passes through, draft layers excluded.
        recurrent: by layer, the recurrent state.
        attention: by layer, the keys and values; it may name layers beyond `layers` (draft layers whose cache
            upstream allocates with the others).
        window: tokens of sliding-window attention that a checkpoint holds at most; 0: there is none.
    """

    layers: int
    recurrent: dict[int, RecurrentRow]
    attention: dict[int, AttentionRow]
    window: int = 0

    @property
    def has_checkpoints(self) -> bool:
        """Whether a server makes checkpoints of its sequences at all."""
        return bool(self.recurrent) or self.window > 0

    @property
    def recurrent_bytes(self) -> int:
        """Bytes of recurrent state of one sequence, without what a checkpoint adds."""
        return sum(row.size_bytes for row in self.recurrent.values())

    def checkpoint_bytes(
        self, types: CacheTypes, *, window_tokens: int | None = None, streams: int = 1
    ) -> int:
        """Return the size of a context checkpoint's data; 0 where none is made.

        Args:
            types: how the context stores keys and values; it matters to sliding windows alone.
            window_tokens: tokens in the window when it is made; None: the window is full.
            streams: of the context's cache: one where it is unified, else one a slot.

        Raises:
            ValueError: a width is not a whole number of blocks of its type.
        """
        size_bytes = 0
        if self.window:
            size_bytes += self._window_bytes(types, window_tokens, streams)
        if self.recurrent:
            rows = sum(row.checkpoint_bytes for row in self.recurrent.values())
            size_bytes += _RECURRENT_HEADER_BYTES + rows
        return size_bytes + _SEQUENCE_BYTES if size_bytes else 0

    def _window_bytes(self, types: CacheTypes, window_tokens: int | None, streams: int) -> int:
        rows = [row for row in self.attention.values() if row.sliding]
        tokens = self.window if window_tokens is None else min(window_tokens, self.window)
        size_bytes = _WINDOW_HEADER_BYTES + streams * _STREAM_BYTES
        if tokens:
            headers = sum(_ROW_BYTES * (1 if row.value is None else 2) for row in rows)
            token_bytes = _CELL_BYTES + sum(row.token_bytes(types) for row in rows)
            size_bytes += _CELLS_HEADER_BYTES + headers + tokens * token_bytes
        return size_bytes


def attention_row(parameters: Hyperparameters, layer: int, *, sliding: bool = False) -> AttentionRow:
    """Return what `layer` keeps for a token, in the widths that the common keys give.

    Raises:
        GgufError: a key is absent or out of range.
    """
    heads = parameters.head_count_kv[layer]
    value = heads * parameters.head_length("value", sliding=sliding)
    return AttentionRow(
        key=heads * parameters.head_length("key", sliding=sliding),
        value=None if parameters.has_latent_attention else value,
        sliding=sliding,
    )
