"""The facts of a model that a memory plan needs, from the headers of its GGUF files alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from llamapool.domain.architectures import sequence_memory
from llamapool.domain.gguf import GgufError, GgufHeader, OmittedArray, TensorInfo
from llamapool.domain.hyperparameters import Hyperparameters
from llamapool.domain.sequence_memory import CacheTypes, SequenceMemory
from llamapool.domain.tensor_types import BY_NAME

_LAYER = re.compile(r"blk\.(\d+)\.")
_INPUT_TENSORS = ("token_embd", "token_types", "position_embd", "per_layer_token_embd")
_OUTPUT_WEIGHT = "output.weight"
_REPACKED_TYPES = frozenset({"q4_0", "q4_K", "iq4_nl", "mxfp4"})
_REPACKED_ROWS = 8
_EXPERT_DIMENSIONS = 3


@dataclass(frozen=True, kw_only=True)
class WeightBytes:
    """The weights of one part of a model.

    Attributes:
        total: bytes in the file.
        repacked: those of them that the CPU backend copies into a layout of its own while loading (4-bit
            matrices, on x86-64 with AVX2), and so holds in memory though the file is memory-mapped.
    """

    total: int = 0
    repacked: int = 0

    def __add__(self, other: "WeightBytes") -> "WeightBytes":
        """Return the weights of both parts."""
        return WeightBytes(total=self.total + other.total, repacked=self.repacked + other.repacked)


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The weights of a model by where upstream places them.

    Attributes:
        input: embeddings of the tokens; they stay in host memory.
        layers: each repeating layer, by its number; draft layers included.
        output: all others; they are offloaded with the last layer.
        tied_output: the embeddings once more, where they serve as the output matrix too; not part of the file
            size, and held a second time where they are repacked or offloaded.
        tensors: how many there are.
        converted_row_bytes: most bytes of a row that a matrix is multiplied by, in the type that its own
            elements ask for.
    """

    input: WeightBytes
    layers: dict[int, WeightBytes]
    output: WeightBytes
    tied_output: WeightBytes
    tensors: int
    converted_row_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes of all weights in the file."""
        return self.input.total + self.output.total + sum(layer.total for layer in self.layers.values())


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What the headers of a model's files say.

    Attributes:
        architecture: `general.architecture`.
        parameters: its hyperparameters.
        memory: what it keeps for its sequences; None: the architecture is not known, and the server's own
            figures are the first.
        weights: by place; None: only the first of several files was read.
        vocabulary: tokens; 0 where the file has none.
        file_bytes: length of the files whose headers were read, at least.
    """

    architecture: str
    parameters: Hyperparameters = field(repr=False)
    memory: SequenceMemory | None
    weights: Weights | None
    vocabulary: int
    file_bytes: int

    @property
    def layers(self) -> int:
        """Layers, draft layers included."""
        return self.parameters.layers_with_draft

    @property
    def recurrent_layers(self) -> int | None:
        """Layers with recurrent state; None: not known."""
        return None if self.memory is None else len(self.memory.recurrent)

    @property
    def context_length(self) -> int:
        """Tokens of context that the model was trained on."""
        return self.parameters.context_length

    @property
    def state_bytes(self) -> int | None:
        """Size of one context checkpoint's data, at the default cache types and with every window full.

        0: none is made. None: not known, will be measured.
        """
        return None if self.memory is None else self.memory.checkpoint_bytes(CacheTypes())

    def summary(self) -> dict[str, str | int | None]:
        """Return the facts that status keeps; None: not known, will be measured."""
        return {
            "architecture": self.architecture,
            "layers": self.layers,
            "state_bytes": self.state_bytes,
            "weights_bytes": None if self.weights is None else self.weights.total_bytes,
            "kv_bytes_per_token": self.kv_bytes_per_token(),
            "context_length": self.context_length,
        }

    def kv_bytes_per_token(self, types: CacheTypes | None = None) -> int | None:
        """Return what each token of the context takes; layers with a sliding window, of bounded size, aside.

        None: not known, will be measured.

        Raises:
            ValueError: a width is not a whole number of blocks of its type.
        """
        if self.memory is None:
            return None
        rows = [row for row in self.memory.attention.values() if not row.sliding]
        return sum(row.token_bytes(types or CacheTypes()) for row in rows)


def facts_of(headers: Sequence[GgufHeader]) -> ModelFacts:
    """Return the facts of a model of one or more files, from their headers in order.

    The first header alone gives everything but the weights of a model that is split.

    Raises:
        GgufError: a header lacks a key that its architecture needs, or the headers are not of one model.
    """
    first = headers[0]
    parameters = Hyperparameters.of(first.metadata)
    _ = parameters.layers, parameters.context_length  # absent in what is not a model, such as a projector
    tensors = _all_tensors(headers)
    experts_used = max(parameters.per_layer("expert_used_count", 0))
    return ModelFacts(
        architecture=parameters.architecture,
        parameters=parameters,
        memory=sequence_memory(parameters),
        weights=None if tensors is None else _weights(tensors, experts_used),
        vocabulary=_vocabulary(first),
        file_bytes=sum(header.file_bytes for header in headers),
    )


def split_count(header: GgufHeader) -> int:
    """Return the number of files that the model is split into, 1 where it is whole.

    Raises:
        GgufError: `split.count` is not a whole number from 1 to 65,535.
    """
    count = header.metadata.get("split.count", 1)
    if not isinstance(count, int) or not 0 <= count < 1 << 16:
        raise GgufError(f"split.count is {count!r}, not a whole number up to 65535")
    return max(1, count)


def _all_tensors(headers: Sequence[GgufHeader]) -> list[TensorInfo] | None:
    if len(headers) != split_count(headers[0]):
        if len(headers) == 1:
            return None
        raise GgufError(f"split.count is {split_count(headers[0])}; {len(headers)} files were read")
    tensors = [tensor for header in headers for tensor in header.tensors]
    expected = headers[0].metadata.get("split.tensors.count", len(tensors))
    if len(headers) > 1 and expected != len(tensors):
        raise GgufError(f"split.tensors.count is {expected!r}; the files have {len(tensors)} tensors")
    return tensors


def _vocabulary(header: GgufHeader) -> int:
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, OmittedArray):
        return tokens.length
    size = header.metadata.get(f"{header.metadata['general.architecture']}.vocab_size", 0)
    return size if isinstance(size, int) else 0


def _weights(tensors: Sequence[TensorInfo], experts_used: int) -> Weights:
    layers: dict[int, WeightBytes] = {}
    inputs = outputs = tied = WeightBytes()
    has_output = any(tensor.name == _OUTPUT_WEIGHT for tensor in tensors)
    for tensor in tensors:
        size = WeightBytes(total=tensor.size_bytes, repacked=_repacked_bytes(tensor))
        if match := _LAYER.match(tensor.name):
            layer = int(match[1])
            layers[layer] = layers.get(layer, WeightBytes()) + size
        elif tensor.name.startswith(_INPUT_TENSORS):
            inputs += WeightBytes(total=size.total)  # looked up by row, never multiplied: not repacked
            if tensor.name == "token_embd.weight" and not has_output:
                tied += size
        else:
            outputs += size
    return Weights(
        input=inputs,
        layers=layers,
        output=outputs,
        tied_output=tied,
        tensors=len(tensors),
        converted_row_bytes=max(
            (_converted_row_bytes(tensor, experts_used) for tensor in tensors), default=0
        ),
    )


def _converted_row_bytes(tensor: TensorInfo, experts_used: int) -> int:
    """Source: `vec_dot_type` of ggml-cpu.c's type traits: floats as they are, blocks by 8-bit blocks."""
    if len(tensor.shape) == 1 or tensor.type.name == "f32":
        return 0
    rows = max(1, experts_used) if len(tensor.shape) == _EXPERT_DIMENSIONS else 1
    if tensor.type.block_elements == 1:
        return rows * tensor.type.row_bytes(tensor.shape[0])
    return rows * BY_NAME["q8_0"].row_bytes(-(-tensor.shape[0] // 32) * 32)


def _repacked_bytes(tensor: TensorInfo) -> int:
    """Source: `ggml_repack_get_optimal_repack_type` (ggml-cpu/repack.cpp) of b11434, for AVX2."""
    is_matrix = len(tensor.shape) > 1 and tensor.shape[1] % _REPACKED_ROWS == 0
    return tensor.size_bytes if is_matrix and tensor.type.name in _REPACKED_TYPES else 0
