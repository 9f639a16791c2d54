"""A tiny random model as a value: its keys, and the names and shapes of its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.models.blocks import FEED_FORWARD, HEADS_KV, WIDTH, Tensors, Value, layers, norms, weights
from tests.models.hybrid import byte_level_vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONTEXT_LENGTH = 4096


@dataclass(frozen=True, kw_only=True)
class TinyModel:
    """A model of one architecture.

    Attributes:
        architecture: `general.architecture`.
        keys: its hyperparameters, without the prefix; those that every model has are added.
        blocks: the tensors of each layer.
        others: the tensors beside the layers.
    """

    architecture: str
    keys: Mapping[str, Value]
    blocks: Sequence[Sequence[Tensors]]
    others: Tensors

    @property
    def tensors(self) -> Tensors:
        return {**self.others, **layers(self.blocks)}

    @property
    def all_keys(self) -> Mapping[str, Value]:
        return {
            "context_length": CONTEXT_LENGTH,
            "embedding_length": WIDTH,
            "feed_forward_length": FEED_FORWARD,
            "block_count": len(self.blocks),
            "attention.layer_norm_rms_epsilon": 1e-5,
            "attention.layer_norm_epsilon": 1e-5,
            **self.keys,
        }


def embeddings(*extra: Tensors, output_norm: str = "output_norm") -> Tensors:
    vocabulary = len(byte_level_vocabulary()[0])
    tensors = weights({"token_embd": (WIDTH, vocabulary), "output": (WIDTH, vocabulary)}) | norms(output_norm)
    for part in extra:
        tensors |= part
    return tensors


def heads_by_layer(recurrent: Sequence[bool]) -> dict[str, Value]:
    """Key-value heads by layer; a layer without is recurrent."""
    return {"attention.head_count_kv": [0 if flag else HEADS_KV for flag in recurrent]}


THREE_OF_FOUR = (True, True, True, False)
PRE_NORMS = norms("attn_norm", "ffn_norm")


def mixed(recurrent: Tensors, full: Tensors, *common: Tensors) -> list[list[Tensors]]:
    return [[recurrent if flag else full, *common] for flag in THREE_OF_FOUR]
