"""The header of a GGUF file: its metadata and what its tensors are, read from the front of a byte stream.

Nothing behind the header is touched, so a model of any size costs some megabytes of reading. Long arrays
(vocabularies, merges) are counted and passed over, not kept. What is read is bounded: a header that claims
more than any real one holds is refused, whatever it claims.

Source of the format: ggml/src/gguf.cpp of llama.cpp b11434, versions 2 and 3, little-endian.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from llamapool.domain.tensor_types import BY_ID, TensorType
from llamapool.errors import LlamapoolError

MAX_HEADER_BYTES = 128 << 20
"""Longest header that is read; a vocabulary of 262,144 tokens with its merges takes about 15 MB."""
MAX_METADATA_ENTRIES = 1 << 16
MAX_TENSORS = 1 << 16
MAX_ARRAY_KEPT = 4096
"""Longest array whose values are kept; upstream knows at most 512 layers."""
MAX_KEY_BYTES = 1 << 10
MAX_TEXT_BYTES = 16 << 20
MAX_TENSOR_NAME_BYTES = 63
MAX_DIMENSIONS = 4

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT_BYTES = 32
_MAX_ALIGNMENT_BYTES = 1 << 20
_MAX_TENSOR_ELEMENTS = (1 << 63) - 1
_LEAST_READ_BYTES, _MOST_READ_BYTES = 1 << 16, 1 << 20


class GgufError(LlamapoolError, ValueError):
    """A file that is not GGUF, or whose header contradicts itself; the message names part and value."""


class GgufTruncatedError(GgufError):
    """The bytes end before the header, or the data it describes, does."""


class ByteSource(Protocol):
    """The front of a file, in order."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""


@dataclass(frozen=True)
class OmittedArray:
    """An array too long to keep, or of texts: what it holds, and how many of them."""

    type: str
    length: int


Scalar = bool | int | float | str
Value = Scalar | tuple[bool | int | float, ...] | OmittedArray


@dataclass(frozen=True, kw_only=True)
class TensorInfo:
    """One tensor as the header describes it.

    Attributes:
        name: such as `blk.0.attn_q.weight`.
        shape: elements of each dimension, the row length first (ggml's order, the reverse of numpy's).
        type: how its elements are stored.
        offset_bytes: where its data begins, from the start of the data.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset_bytes: int

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of its data."""
        return self.type.row_bytes(self.shape[0]) * math.prod(self.shape[1:])


@dataclass(frozen=True, kw_only=True)
class GgufHeader:
    """What a GGUF file says about itself.

    Attributes:
        version: of the format, 2 or 3.
        metadata: the key-value pairs.
        tensors: in the order of the file.
        data_offset_bytes: where the tensors' data begins: the length of the header, padded.
        alignment_bytes: every tensor begins at a multiple of it.
    """

    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset_bytes: int
    alignment_bytes: int

    @property
    def file_bytes(self) -> int:
        """Length that the file has at least: up to the end of its last tensor."""
        if not self.tensors:
            return self.data_offset_bytes
        last = self.tensors[-1]
        return self.data_offset_bytes + last.offset_bytes + last.size_bytes


class _Reader:
    """Takes numbers and texts from a source, through a small buffer, and never more than the bound."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._buffer = b""
        self._at = 0
        self._passed = 0

    @property
    def position(self) -> int:
        return self._passed + self._at

    def take(self, size: int, what: str) -> bytes:
        while len(self._buffer) - self._at < size:
            self._fill(what, size)
        start, self._at = self._at, self._at + size
        return self._buffer[start : self._at]

    def skip(self, size: int, what: str) -> None:
        while (held := len(self._buffer) - self._at) < size:
            size -= held
            self._at = len(self._buffer)
            self._fill(what, size)
        self._at += size

    def _fill(self, what: str, size: int) -> None:
        missing = size - (len(self._buffer) - self._at)
        if self.position + size > MAX_HEADER_BYTES:
            raise GgufError(f"{what} ends beyond the first {MAX_HEADER_BYTES} bytes; no header is that long")
        more = self._source.read(min(max(missing, _LEAST_READ_BYTES), _MOST_READ_BYTES))
        if not more:
            end = self._passed + len(self._buffer)
            raise GgufTruncatedError(f"the file ends at byte {end}, within {what}")
        self._passed += self._at
        self._buffer = self._buffer[self._at :] + more
        self._at = 0

    def number(self, form: struct.Struct, what: str) -> int | float:
        value: int | float = form.unpack(self.take(form.size, what))[0]
        return value

    def whole(self, form: struct.Struct, what: str) -> int:
        return int(self.number(form, what))

    def count(self, what: str, most: int) -> int:
        value = self.whole(_U64, what)
        if value > most:
            raise GgufError(f"{what} is {value}; at most {most} are read")
        return value

    def text(self, what: str, most: int) -> str:
        length = self.count(f"length of {what}", most)
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError as error:
            raise GgufError(f"{what} is not UTF-8") from error

    def skip_texts(self, count: int, what: str) -> None:
        """Pass over `count` texts; a vocabulary has some hundred thousand of them, so the loop is tight."""
        for _ in range(count):
            if len(self._buffer) - self._at < _U64.size:
                length = self.whole(_U64, what)
            else:
                length = _U64.unpack_from(self._buffer, self._at)[0]
                self._at += _U64.size
            if length <= len(self._buffer) - self._at:
                self._at += length
            else:
                self.skip(length, what)


_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_NUMBERS: dict[int, tuple[str, struct.Struct]] = {
    0: ("uint8", struct.Struct("<B")),
    1: ("int8", struct.Struct("<b")),
    2: ("uint16", struct.Struct("<H")),
    3: ("int16", struct.Struct("<h")),
    4: ("uint32", _U32),
    5: ("int32", struct.Struct("<i")),
    6: ("float32", struct.Struct("<f")),
    7: ("bool", struct.Struct("<?")),
    10: ("uint64", _U64),
    11: ("int64", struct.Struct("<q")),
    12: ("float64", struct.Struct("<d")),
}
_TEXT, _ARRAY = 8, 9


def read_header(source: ByteSource) -> GgufHeader:
    """Read the header of a GGUF file from its first byte on, and little beyond its last.

    Raises:
        GgufTruncatedError: the source ends within the header.
        GgufError: the bytes are not GGUF, of a version or byte order that is not read, or contradict each
            other.
    """
    reader = _Reader(source)
    magic = reader.take(len(_MAGIC), "the magic number")
    if magic != _MAGIC:
        raise GgufError(f"the file begins with {magic!r}, not with {_MAGIC!r}; it is not GGUF")
    version = reader.whole(_U32, "the version")
    if version not in _VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        hint = "; the file is big-endian, and only little-endian is read" if swapped in _VERSIONS else ""
        raise GgufError(f"version is {version}, not 2 or 3{hint}")
    tensor_count = reader.count("tensor count", MAX_TENSORS)
    entry_count = reader.count("metadata count", MAX_METADATA_ENTRIES)
    metadata = _read_metadata(reader, entry_count)
    alignment_bytes = _alignment_bytes(metadata)
    tensors = _read_tensors(reader, tensor_count, alignment_bytes)
    return GgufHeader(
        version=version,
        metadata=metadata,
        tensors=tensors,
        data_offset_bytes=_padded(reader.position, alignment_bytes),
        alignment_bytes=alignment_bytes,
    )


def _read_metadata(reader: _Reader, count: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for index in range(count):
        key = reader.text(f"the key of metadata entry {index}", MAX_KEY_BYTES)
        if key in metadata:
            raise GgufError(f"key {key!r} appears twice")
        metadata[key] = _read_value(reader, key)
    return metadata


def _read_value(reader: _Reader, key: str) -> Value:
    kind = reader.whole(_U32, f"the type of {key!r}")
    if kind == _TEXT:
        return reader.text(f"the value of {key!r}", MAX_TEXT_BYTES)
    if kind == _ARRAY:
        return _read_array(reader, key)
    return reader.number(_number_form(kind, key)[1], f"the value of {key!r}")


def _read_array(reader: _Reader, key: str) -> Value:
    what = f"the array {key!r}"
    kind = reader.whole(_U32, f"the element type of {key!r}")
    length = reader.count(f"the length of {key!r}", MAX_HEADER_BYTES)
    if kind == _TEXT:
        reader.skip_texts(length, what)
        return OmittedArray("text", length)
    name, form = _number_form(kind, key)
    if length > MAX_ARRAY_KEPT:
        reader.skip(length * form.size, what)
        return OmittedArray(name, length)
    return tuple(value for (value,) in form.iter_unpack(reader.take(length * form.size, what)))


def _number_form(kind: int, key: str) -> tuple[str, struct.Struct]:
    try:
        return _NUMBERS[kind]
    except KeyError:
        raise GgufError(f"{key!r} has type {kind}, which the format does not define here") from None


def _alignment_bytes(metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT_BYTES)
    if (
        not isinstance(alignment, int)
        or not 0 < alignment <= _MAX_ALIGNMENT_BYTES
        or alignment & (alignment - 1)
    ):
        raise GgufError(
            f"general.alignment is {alignment!r}, not a power of two up to {_MAX_ALIGNMENT_BYTES}"
        )
    return alignment


def _read_tensors(reader: _Reader, count: int, alignment_bytes: int) -> tuple[TensorInfo, ...]:
    tensors: list[TensorInfo] = []
    names: set[str] = set()
    expected_bytes = 0
    for index in range(count):
        tensor = _read_tensor(reader, index)
        if tensor.name in names:
            raise GgufError(f"tensor {tensor.name!r} appears twice")
        if tensor.offset_bytes != expected_bytes:
            raise GgufError(
                f"tensor {tensor.name!r} begins at {tensor.offset_bytes}, not at {expected_bytes}"
            )
        names.add(tensor.name)
        tensors.append(tensor)
        expected_bytes += _padded(tensor.size_bytes, alignment_bytes)
    return tuple(tensors)


def _read_tensor(reader: _Reader, index: int) -> TensorInfo:
    name = reader.text(f"the name of tensor {index}", MAX_TENSOR_NAME_BYTES)
    what = f"tensor {name!r}"
    dimensions = reader.whole(_U32, f"the dimensions of {what}")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise GgufError(f"{what} has {dimensions} dimensions, not 1 to {MAX_DIMENSIONS}")
    shape = tuple(reader.whole(_U64, f"the shape of {what}") for _ in range(dimensions))
    if not 0 < math.prod(shape) <= _MAX_TENSOR_ELEMENTS:
        raise GgufError(f"{what} has the shape {shape}, which no tensor can have")
    kind = reader.whole(_U32, f"the type of {what}")
    if kind not in BY_ID:
        raise GgufError(
            f"{what} has the element type {kind}, which is unknown or was removed from the format"
        )
    offset_bytes = reader.whole(_U64, f"the offset of {what}")
    if shape[0] % BY_ID[kind].block_elements:
        raise GgufError(f"{what} has rows of {shape[0]} elements, not whole blocks of {BY_ID[kind].name}")
    return TensorInfo(name=name, shape=shape, type=BY_ID[kind], offset_bytes=offset_bytes)


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
