"""The models of the loads, written once each into the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import cache
from tests.models import hybrid

if TYPE_CHECKING:
    from tests.models.hybrid import HybridShape


def model_file(shape: HybridShape) -> Path:
    """A random model of that shape."""
    writer = Path(hybrid.__file__).read_bytes()
    key = hashlib.sha256(writer + repr(shape).encode()).hexdigest()[:12]

    def write(path: Path) -> None:
        hybrid.write_hybrid_model(path, shape)

    return cache.entry(f"bench-model-{key}.gguf", write)
