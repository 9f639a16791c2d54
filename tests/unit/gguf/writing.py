"""GGUF bytes for the tests of the reader, written field by field so that each can be made wrong."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UINT32, INT32, FLOAT32, BOOL, TEXT, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10
_FORMS = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?", UINT64: "<Q"}

Written = bool | int | float | str | list[int] | list[str]


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value(written: Written) -> bytes:
    """Type and value: whole numbers as uint32, or as int32 where negative."""
    if isinstance(written, list):
        if written and isinstance(written[0], str):
            return struct.pack("<IIQ", ARRAY, TEXT, len(written)) + b"".join(map(text, map(str, written)))
        return struct.pack(f"<IIQ{len(written)}I", ARRAY, UINT32, len(written), *map(int, written))
    if isinstance(written, str):
        return struct.pack("<I", TEXT) + text(written)
    if isinstance(written, bool):
        kind = BOOL
    elif isinstance(written, float):
        kind = FLOAT32
    else:
        kind = INT32 if written < 0 else UINT32
    return struct.pack("<I", kind) + struct.pack(_FORMS[kind], written)


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    type: int = 0
    size: int | None = None
    offset: int | None = None

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * 4 if self.size is None else self.size


@dataclass(frozen=True, kw_only=True)
class File:
    metadata: Mapping[str, Written] = field(default_factory=dict)
    tensors: Sequence[Tensor] = ()
    version: int = 3
    magic: bytes = b"GGUF"
    alignment: int = 32
    metadata_count: int | None = None
    tensor_count: int | None = None
    raw_metadata: bytes = b""

    def with_metadata(self, **changes: Written) -> File:
        return replace(self, metadata={**self.metadata, **changes})

    def header(self) -> bytes:
        entries = b"".join(text(key) + value(written) for key, written in self.metadata.items())
        infos, offset = b"", 0
        for tensor in self.tensors:
            infos += text(tensor.name) + struct.pack("<I", len(tensor.shape))
            infos += struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape)
            infos += struct.pack("<IQ", tensor.type, offset if tensor.offset is None else tensor.offset)
            offset += -(-tensor.data_bytes // self.alignment) * self.alignment
        counts = (
            len(self.tensors) if self.tensor_count is None else self.tensor_count,
            len(self.metadata) if self.metadata_count is None else self.metadata_count,
        )
        return self.magic + struct.pack("<IQQ", self.version, *counts) + entries + self.raw_metadata + infos
