"""What a server needs beside state is predicted within 5 % or 32 MiB, whatever its flags."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llamapool.adapters.gguf_header import read_model_facts
from llamapool.domain.context import ContextFlags
from llamapool.domain.prediction import predict_base
from llamapool.domain.sequence_memory import CacheTypes
from llamapool.domain.tensor_types import BY_NAME
from tests.models.architectures import TINY_MODELS, write_tiny_model
from tests.models.hybrid import HybridShape, write_hybrid_model
from tests.support.llama_server import running

if TYPE_CHECKING:
    from tests.support.llama_server import LlamaServer

TOLERATED_BYTES, TOLERATED_SHARE = 32 << 20, 0.05
ALWAYS = ("--cache-ram", "0", "--ctx-checkpoints", "0", "--verbosity", "4")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A model, by its layers or its architecture, and the flags it is served with."""

    layers: int = 16
    architecture: str | None = None
    flags: ContextFlags = field(default_factory=ContextFlags)

    def __str__(self) -> str:
        flags = self.flags
        what = self.architecture or f"{self.layers} layers"
        memory = "mmap" if flags.mmap else "read"
        cache = f"{flags.cache_types.key.name}/{flags.cache_types.value.name}"
        sizes = f"{flags.slots}x{flags.context_tokens // flags.slots} tokens by {flags.micro_batch_tokens}"
        return f"{what}, {sizes}, {cache}, {memory}"

    def write(self, path: Path) -> None:
        if self.architecture is None:
            write_hybrid_model(path, HybridShape(layers=self.layers))
        else:
            write_tiny_model(path, TINY_MODELS[self.architecture])

    @property
    def arguments(self) -> tuple[str, ...]:
        flags = self.flags
        return (
            *("--parallel", str(flags.slots), "--ctx-size", str(flags.context_tokens)),
            *(
                "--ubatch-size",
                str(flags.micro_batch_tokens),
                "--load-mode",
                "mmap" if flags.mmap else "none",
            ),
            *("--cache-type-k", flags.cache_types.key.name, "--cache-type-v", flags.cache_types.value.name),
            *(("--kv-unified",) if flags.unified else ()),
        )


def context(slots: int, tokens: int, **others: bool | int | CacheTypes) -> ContextFlags:
    return ContextFlags(slots=slots, context_tokens=slots * tokens, **others)  # type: ignore[arg-type]


EIGHT_BITS = CacheTypes(key=BY_NAME["q8_0"], value=BY_NAME["q8_0"])
SHAPES = [
    Shape(flags=context(1, 2048)),
    Shape(flags=context(4, 1024)),
    Shape(flags=context(4, 1024, mmap=False)),
    Shape(flags=context(2, 16384, cache_types=EIGHT_BITS, micro_batch_tokens=256)),
    Shape(flags=context(2, 4096, unified=True)),
    Shape(flags=context(1, 4096, micro_batch_tokens=1024)),
    Shape(layers=4, flags=context(16, 1024)),
    *(
        Shape(architecture=architecture, flags=context(2, 2048))
        for architecture in (
            "mamba2",
            "jamba",
            "granitehybrid",
            "qwen35moe",
            "kimi-linear",
            "rwkv7",
            "gemma3",
        )
    ),
]


def unreclaimable_bytes(server: LlamaServer) -> int:
    """Anonymous and shared memory of the process, and its page tables."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return 1024 * sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem", "VmPTE"))


def saturate(server: LlamaServer, flags: ContextFlags) -> None:
    """Fill a micro batch from one slot, then compute for all slots at once."""
    server.complete("x" * (flags.micro_batch_tokens + 50))
    with ThreadPoolExecutor(flags.slots) as pool:
        list(pool.map(lambda slot: server.complete(f"{slot} " * 100, tokens=8), range(flags.slots)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_base_is_predicted(tmp_path: Path, shape: Shape) -> None:
    model = tmp_path / "model.gguf"
    shape.write(model)
    prediction = predict_base(read_model_facts(str(model)), shape.flags)
    assert prediction is not None
    with running(model, tmp_path, *ALWAYS, *shape.arguments) as server:
        saturate(server, shape.flags)
        measured_bytes = unreclaimable_bytes(server)
    error_bytes = prediction.total - measured_bytes
    mib = {"predicted": prediction.total / 2**20, "measured": measured_bytes / 2**20}
    assert abs(error_bytes) <= max(TOLERATED_BYTES, TOLERATED_SHARE * measured_bytes), (mib, prediction)
    print(f"{shape}: {mib['predicted']:.1f} MiB predicted, {mib['measured']:.1f} measured")  # noqa: T201


REPACKED = re.compile(r"CPU_REPACK model buffer size = +([\d.]+) MiB")


@pytest.mark.parametrize("architecture", ["lfm2", "qwen35moe"])
def test_what_the_cpu_repacks_of_mapped_weights_is_predicted(tmp_path: Path, architecture: str) -> None:
    model = tmp_path / "model.gguf"
    write_tiny_model(model, TINY_MODELS[architecture], four_bits=True)
    flags = context(1, 512)
    prediction = predict_base(read_model_facts(str(model)), flags)
    assert prediction is not None
    with running(model, tmp_path, *ALWAYS, *Shape(flags=flags).arguments) as server:
        repacked_mib = REPACKED.findall(server.whole_log())
    assert repacked_mib == [f"{prediction.weights / 2**20:.2f}"]
