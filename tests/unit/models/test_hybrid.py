"""The random models that tests and the demo serve are what their shapes say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gguf
import pytest

from tests.models.hybrid import HybridShape, write_hybrid_model

if TYPE_CHECKING:
    from pathlib import Path


def test_sixty_four_layers_have_the_recurrent_state_of_a_27b() -> None:
    assert HybridShape(layers=64).state_bytes == 156_893_184


def test_a_model_without_recurrent_layers_has_no_state() -> None:
    assert HybridShape(full_attention_interval=1).state_bytes == 0


@pytest.mark.parametrize("layers", [4, 8])
def test_one_layer_in_four_is_full_attention(tmp_path: Path, layers: int) -> None:
    path = tmp_path / "model.gguf"
    write_hybrid_model(path, HybridShape(layers=layers))
    names = [tensor.name for tensor in gguf.GGUFReader(path).tensors]
    attention = [name for name in names if name.endswith("attn_q.weight")]
    assert attention == [f"blk.{layer}.attn_q.weight" for layer in range(3, layers, 4)]
    assert sum(name.endswith("ssm_conv1d.weight") for name in names) == layers - len(attention)


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first.gguf", tmp_path / "second.gguf"
    for path in (first, second):
        write_hybrid_model(path, HybridShape(layers=4), seed=3)
    assert first.read_bytes() == second.read_bytes()


def test_no_partial_file_is_left_behind(tmp_path: Path) -> None:
    write_hybrid_model(tmp_path / "model.gguf", HybridShape(layers=4))
    assert [path.name for path in tmp_path.iterdir()] == ["model.gguf"]
