"""Write a tiny random model of any hybrid or recurrent architecture that llama-server serves.

    python -m tests.models.architectures FOLDER [ARCHITECTURE ...]

Each is a few hundred kilobytes, with the layers, keys and tensors that upstream's loader asks for, so that a
stock llama-server loads it and answers; what it says is noise.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from gguf.quants import quantize

from tests.models.catalogue import (
    attention_hybrids,
    delta_attention_models,
    mamba_hybrids,
    plain_models,
    recurrent_models,
    sliding_window_models,
)
from tests.models.hybrid import add_byte_level_tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.models.tiny import TinyModel

TINY_MODELS = {
    model.architecture: model
    for model in (
        *recurrent_models(),
        *mamba_hybrids(),
        *attention_hybrids(),
        *delta_attention_models(),
        *sliding_window_models(),
        *plain_models(),
    )
}
"""By architecture: with recurrent state, then `gemma3` with a sliding window, `qwen3` with neither."""


def _values(name: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Values with which activations stay finite: norms are one, decay rates below zero, the rest is small."""
    if "norm" in name or "time_mix_ln.weight" in name:
        return np.zeros(shape) if name.endswith(".bias") else np.ones(shape)
    if name.endswith("ssm_a"):
        return -np.exp(random.standard_normal(shape) * 0.1)
    return random.standard_normal(shape) * 0.05


def _is_matrix(name: str, shape: tuple[int, ...]) -> bool:
    return name.endswith(".weight") and len(shape) > 1 and not any(part in name for part in ("norm", "conv"))


def write_tiny_model(path: Path, model: TinyModel, *, seed: int = 0, four_bits: bool = False) -> None:
    """Write `model` to `path`; the file appears whole or not at all.

    Args:
        path: of the file.
        model: what to write.
        seed: of its weights.
        four_bits: whether matrices are stored as q4_0, which the CPU backend repacks; else all is float32.
    """
    partial = path.with_name(f".{path.name}.partial")
    writer: Any = gguf.GGUFWriter(partial, model.architecture)
    writer.add_name(f"tiny-{model.architecture}")
    for name, value in model.all_keys.items():
        key = f"{model.architecture}.{name}"
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)
    add_byte_level_tokenizer(writer)
    random = np.random.default_rng(seed)
    for name, shape in model.tensors.items():
        values = _values(name, shape[::-1], random).astype(np.float32)
        if four_bits and _is_matrix(name, shape):
            kind = gguf.GGMLQuantizationType.Q4_0
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=False)
    writer.close()
    os.replace(partial, path)  # noqa: PTH105  # atomic on one file system, and says so


def main() -> None:
    """Parse the command line and write the models."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE", choices=[[], *TINY_MODELS])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for architecture in arguments.architectures or TINY_MODELS:
        path = arguments.folder / f"{architecture}.gguf"
        write_tiny_model(path, TINY_MODELS[architecture])
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main()
