"""The header of a GGUF file is read as it was written, or refused with the part and value that is wrong."""

from __future__ import annotations

import io
import math
import struct
import tracemalloc
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamapool.domain.gguf import (
    MAX_HEADER_BYTES,
    GgufError,
    GgufTruncatedError,
    OmittedArray,
    read_header,
)
from llamapool.domain.tensor_types import BY_ID
from tests.unit.gguf.writing import ARRAY, TEXT, UINT32, File, Tensor, text

if TYPE_CHECKING:
    from pathlib import Path

    from llamapool.domain.gguf import GgufHeader


def read(file: File | bytes) -> GgufHeader:
    return read_header(io.BytesIO(file.header() if isinstance(file, File) else file))


# Time says nothing here: the machine may be busy.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

_values = st.one_of(
    st.booleans(),
    st.integers(-(2**31), 2**32 - 1),
    st.floats(width=32, allow_nan=False),
    st.text(),
    st.lists(st.integers(0, 2**32 - 1), max_size=50),
)
_names = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=20)
_tensors = st.lists(
    st.builds(Tensor, _names, st.lists(st.integers(1, 99), min_size=1, max_size=4).map(tuple)),
    max_size=5,
    unique_by=lambda tensor: tensor.name,
)
_keys = _names.filter(lambda key: key != "general.alignment")
_files = st.builds(
    File,
    metadata=st.dictionaries(_keys, _values, max_size=8),
    tensors=_tensors,
    version=st.sampled_from((2, 3)),
)


@untimed
@given(file=_files)
def test_metadata_and_tensors_come_back_as_written(file: File) -> None:
    header = read(file)
    expected = {key: tuple(v) if isinstance(v, list) else v for key, v in file.metadata.items()}
    assert dict(header.metadata) == expected
    assert [(tensor.name, tensor.shape) for tensor in header.tensors] == [
        (tensor.name, tensor.shape) for tensor in file.tensors
    ]
    assert [tensor.size_bytes for tensor in header.tensors] == [
        math.prod(tensor.shape) * 4 for tensor in file.tensors
    ]


@untimed
@given(file=_files, data=st.data())
def test_a_header_cut_at_any_byte_is_an_error(file: File, data: st.DataObject) -> None:
    whole = file.header()
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(GgufTruncatedError, match=f"the file ends at byte {length}, within "):
        read(whole[:length])


@untimed
@given(noise=st.binary(max_size=300))
def test_noise_after_a_valid_beginning_is_read_or_refused_but_never_crashes(noise: bytes) -> None:
    try:
        header = read(b"GGUF" + struct.pack("<I", 3) + noise)
    except GgufError:
        return
    assert header.version == 3


@untimed
@given(file=_files, data=st.data())
def test_a_flipped_bit_is_read_or_refused_but_never_crashes(file: File, data: st.DataObject) -> None:
    changed = bytearray(file.header())
    position = data.draw(st.integers(0, 8 * len(changed) - 1))
    changed[position // 8] ^= 1 << position % 8
    try:
        read(bytes(changed))
    except GgufError:
        return


class _Dribble(io.RawIOBase):
    """Gives one byte a time, as a slow connection may."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def read(self, size: int = -1, /) -> bytes:
        return self._content.read(min(size, 1))


def test_a_source_may_give_less_than_asked() -> None:
    file = File(metadata={"a": "text", "b": ["x", "yy"]}, tensors=[Tensor("t", (3,))])
    assert read_header(_Dribble(file.header())) == read(file)


def test_what_the_gguf_package_writes_is_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    writer: Any = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_token_list([f"token {index}" for index in range(5000)])
    writer.add_token_scores([0.5] * 5000)
    writer.add_array("llama.pattern", [1, 0, 1])
    for name, shape in (("a.weight", (4, 256)), ("b.weight", (7,))):
        writer.add_tensor(name, np.zeros(shape, dtype=np.float16))
    blocks = np.zeros((4, 210), dtype=np.uint8)
    writer.add_tensor("c.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q6_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    with path.open("rb") as source:
        header = read_header(source)
    reference: Any = gguf.GGUFReader(path)

    assert header.metadata["tokenizer.ggml.tokens"] == OmittedArray("text", 5000)
    assert header.metadata["tokenizer.ggml.scores"] == OmittedArray("float32", 5000)
    assert header.metadata["llama.pattern"] == (1, 0, 1)
    assert header.data_offset_bytes == reference.data_offset
    assert [(t.name, list(t.shape), t.size_bytes) for t in header.tensors] == [
        (t.name, [int(n) for n in t.shape], t.n_bytes) for t in reference.tensors
    ]
    assert header.file_bytes <= path.stat().st_size < header.file_bytes + header.alignment_bytes


def test_every_type_has_the_block_size_of_the_gguf_package() -> None:
    known = {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    common = set(known) & set(BY_ID) - {9}  # q8_1 is never stored, and the package has an old size of it
    assert len(common) > 30
    assert {kind: (BY_ID[kind].block_elements, BY_ID[kind].block_bytes) for kind in common} == {
        kind: known[kind] for kind in common
    }


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (File(magic=b"GGML"), "begins with b'GGML', not with b'GGUF'"),
        (File(version=1), "version is 1, not 2 or 3"),
        (File(version=0x03000000), "big-endian"),
        (File(metadata={"general.alignment": 0}), "general.alignment is 0, not a power of two"),
        (File(metadata={"general.alignment": 48}), "general.alignment is 48, not a power of two"),
        (File(metadata={"general.alignment": "32"}), "general.alignment is '32', not a power of two"),
        (File(raw_metadata=text("k") + struct.pack("<I", 99), metadata_count=1), "'k' has type 99"),
        (File(raw_metadata=text(b"\xff"), metadata_count=1), "key of metadata entry 0 is not UTF-8"),
        (File(tensors=[Tensor("t", (4,)), Tensor("t", (4,))]), "tensor 't' appears twice"),
        (File(tensors=[Tensor("t", (4,), offset=64)]), "tensor 't' begins at 64, not at 0"),
        (File(tensors=[Tensor("t", (4,), type=4)]), "tensor 't' has the element type 4"),
        (File(tensors=[Tensor("t", (5,), type=2)]), "rows of 5 elements, not whole blocks of q4_0"),
        (File(tensors=[Tensor("t", (4, 0))]), r"tensor 't' has the shape \(4, 0\)"),
        (File(tensors=[Tensor("t", (2**40, 2**40))]), "which no tensor can have"),
        (File(tensors=[Tensor("t", ())]), "tensor 't' has 0 dimensions, not 1 to 4"),
        (File(tensors=[Tensor("t", (1,) * 5)]), "tensor 't' has 5 dimensions, not 1 to 4"),
        (File(tensors=[Tensor("t" * 64, (1,))]), "length of the name of tensor 0 is 64; at most 63"),
    ],
)
def test_a_wrong_header_is_refused_by_part_and_value(file: File, message: str) -> None:
    with pytest.raises(GgufError, match=message):
        read(file)


def test_a_key_that_appears_twice_is_refused() -> None:
    entry = text("k") + struct.pack("<II", UINT32, 1)
    with pytest.raises(GgufError, match="key 'k' appears twice"):
        read(File(raw_metadata=entry + entry, metadata_count=2))


@pytest.mark.parametrize(
    "hostile",
    [
        File(tensor_count=2**63),
        File(metadata_count=2**63),
        File(raw_metadata=struct.pack("<Q", 2**63), metadata_count=1),
        File(raw_metadata=text("k") + struct.pack("<IQ", TEXT, 2**40), metadata_count=1),
        File(raw_metadata=text("k") + struct.pack("<IIQ", ARRAY, UINT32, 2**62), metadata_count=1),
        File(raw_metadata=text("k") + struct.pack("<IIQ", ARRAY, UINT32, 2**26), metadata_count=1),
        File(raw_metadata=text("k") + struct.pack("<IIQQ", ARRAY, TEXT, 2**20, 2**60), metadata_count=1),
        File(raw_metadata=text("k") + struct.pack("<IIQ", ARRAY, ARRAY, 2**20), metadata_count=1),
    ],
)
def test_a_hostile_count_or_length_is_refused_without_the_memory_it_claims(hostile: File) -> None:
    content = hostile.header()
    tracemalloc.start()
    try:
        with pytest.raises(GgufError):
            read(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


class _Endless(io.RawIOBase):
    """A header that never ends: one text after another."""

    def __init__(self) -> None:
        self._head: bytes = File(
            raw_metadata=text("k") + struct.pack("<IIQ", ARRAY, TEXT, MAX_HEADER_BYTES), metadata_count=1
        ).header()
        self.given = 0

    def read(self, size: int = -1, /) -> bytes:
        given = self._head + text("x" * 65528) * (max(size, 0) // 65536 + 1)
        self._head = b""
        self.given += len(given)
        return given


def test_a_header_without_end_is_refused_at_the_limit() -> None:
    source = _Endless()
    with pytest.raises(GgufError, match=f"beyond the first {MAX_HEADER_BYTES} bytes"):
        read_header(source)
    assert source.given < MAX_HEADER_BYTES + (1 << 20)
