"""The element types of ggml tensors: how many bytes a row of them takes.

Source: `enum ggml_type` (ggml.h) and the block structs (ggml-common.h) of llama.cpp b11434.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorType:
    """A type of tensor element; elements are stored in blocks.

    Attributes:
        name: ggml's name of it, as `--cache-type-k` takes it.
        block_elements: elements of one block; a row is a whole number of blocks.
        block_bytes: bytes of one block.
    """

    name: str
    block_elements: int
    block_bytes: int

    def row_bytes(self, elements: int) -> int:
        """Return the bytes of `elements` in a row.

        Raises:
            ValueError: the row is not a whole number of blocks.
        """
        blocks, rest = divmod(elements, self.block_elements)
        if rest:
            raise ValueError(
                f"a row of {elements} elements is not whole {self.name} blocks of {self.block_elements}"
            )
        return blocks * self.block_bytes


F32 = TensorType("f32", 1, 4)
F16 = TensorType("f16", 1, 2)

BY_ID: dict[int, TensorType] = {
    0: F32,
    1: F16,
    2: TensorType("q4_0", 32, 18),
    3: TensorType("q4_1", 32, 20),
    6: TensorType("q5_0", 32, 22),
    7: TensorType("q5_1", 32, 24),
    8: TensorType("q8_0", 32, 34),
    9: TensorType("q8_1", 32, 36),
    10: TensorType("q2_K", 256, 84),
    11: TensorType("q3_K", 256, 110),
    12: TensorType("q4_K", 256, 144),
    13: TensorType("q5_K", 256, 176),
    14: TensorType("q6_K", 256, 210),
    15: TensorType("q8_K", 256, 292),
    16: TensorType("iq2_xxs", 256, 66),
    17: TensorType("iq2_xs", 256, 74),
    18: TensorType("iq3_xxs", 256, 98),
    19: TensorType("iq1_s", 256, 50),
    20: TensorType("iq4_nl", 32, 18),
    21: TensorType("iq3_s", 256, 110),
    22: TensorType("iq2_s", 256, 82),
    23: TensorType("iq4_xs", 256, 136),
    24: TensorType("i8", 1, 1),
    25: TensorType("i16", 1, 2),
    26: TensorType("i32", 1, 4),
    27: TensorType("i64", 1, 8),
    28: TensorType("f64", 1, 8),
    29: TensorType("iq1_m", 256, 56),
    30: TensorType("bf16", 1, 2),
    34: TensorType("tq1_0", 256, 54),
    35: TensorType("tq2_0", 256, 66),
    39: TensorType("mxfp4", 32, 17),
    40: TensorType("nvfp4", 64, 36),
    41: TensorType("q1_0", 128, 18),
    42: TensorType("q2_0", 64, 18),
}
"""The types that a file may hold, by the number it holds them under; removed numbers are absent."""

BY_NAME = {tensor_type.name: tensor_type for tensor_type in BY_ID.values()}
