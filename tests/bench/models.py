"""The models of the loads, written once each into the cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import cache
from tests.models import architectures, hybrid
from tests.models.architectures import TINY_MODELS, write_tiny_model

if TYPE_CHECKING:
    from tests.models.hybrid import HybridShape


def model_file(shape: HybridShape) -> Path:
    """A random model of that shape.

    Without a recurrent layer it is a `qwen3` of as many layers: upstream aborts on a hybrid one of that kind.
    """
    writers = [Path(module.__file__ or "").read_bytes() for module in (architectures, hybrid)]
    key = cache.digest(*writers, repr(shape).encode())[:12]
    return cache.entry(f"bench-model-{key}.gguf", lambda path: _write(path, shape))


def _write(path: Path, shape: HybridShape) -> None:
    if shape.state_bytes:
        hybrid.write_hybrid_model(path, shape)
    else:
        dense = TINY_MODELS["qwen3"]
        write_tiny_model(path, replace(dense, blocks=[dense.blocks[0]] * shape.layers))
