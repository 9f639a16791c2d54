"""Predicted against measured memory, on real servers under real limits: writes build/bench/plan.json.

    python -m tests.bench.plan [--shapes N]

For each shape of the grid a pooled server is started under the smallest limit that the plan calls fitting,
and every slot converses at once until the state budget is full. For every third shape a stock server is
started under a limit that base and one checkpoint a slot exceed by more than a tenth: it has to be killed.
`LLAMAPOOL_SERVER_BINARY` and `LLAMAPOOL_UPSTREAM_BINARY` name servers that are built already.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from llamapool.adapters.gguf_header import read_model_facts
from llamapool.domain.conditions import PoolMode
from llamapool.domain.context import ContextFlags
from llamapool.domain.facts_message import FetchedModel
from llamapool.domain.memory import PoolPolicy, least_limit_bytes, make_plan, mapped_bytes
from llamapool.domain.sequence_memory import CacheTypes
from llamapool.domain.server_flags import ServerFlags
from llamapool.domain.sizing import predict_need
from llamapool.domain.tensor_types import BY_NAME
from tests.bench.limited import LimitedServer, memory_cgroup
from tests.bench.machine import describe
from tests.bench.models import model_file
from tests.models.hybrid import HybridShape
from tests.support.llama_server import binary

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = Path("build/bench/plan.json")
TOLERATED_BYTES, TOLERATED_SHARE = 32 << 20, 0.05
WRONG = ("base_off", "state_off", "peak_above_plan", "unmeasured", "killed", "survived")
"""The counts of a summary that have to be 0."""
OVER = Fraction(112, 100)
_TURNS, _MOST_STOCK_TURNS = 3, 8
_MESSAGE = "Tell me more about the sea, and about the ships that sail on it by night. "
_CACHE_MIB = 512
_BESIDE_TOKENS = 64
"""More than upstream keeps for a batch of its own at the end of a prompt, for the checkpoint before it."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One combination of the grid; `context_tokens` are a slot's."""

    layers: int
    slots: int
    context_tokens: int
    cache_type: str
    mmap: bool
    cache: bool

    @property
    def flags(self) -> ContextFlags:
        kind = BY_NAME[self.cache_type]
        return ContextFlags(
            slots=self.slots,
            context_tokens=self.slots * self.context_tokens,
            cache_types=CacheTypes(key=kind, value=kind),
            mmap=self.mmap,
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        return (
            *("--parallel", str(self.slots), "--ctx-size", str(self.slots * self.context_tokens)),
            *("--cache-type-k", self.cache_type, "--cache-type-v", self.cache_type),
            *("--load-mode", "mmap" if self.mmap else "none"),
            *("--cache-ram", str(_CACHE_MIB if self.cache else 0)),
        )


def grid() -> Iterator[Shape]:
    """24 shapes: every number of layers with every number of slots, each with two other combinations."""
    index = 0
    for slots in (1, 2, 4, 8):
        for layers in (16, 32, 64):
            for half in (0, 1):
                yield Shape(
                    layers=layers,
                    slots=slots,
                    context_tokens=(1024, 4096, 16384)[index % 3],
                    cache_type=("f16", "q8_0")[(index // 2 + half) % 2],
                    mmap=bool((index // 3 + half) % 2),
                    cache=bool((index // 4 + half) % 2),
                )
                index += 1


def main() -> None:
    """Run the grid, or some shapes spread over it; exits with 1 if a figure is not what the plan says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", type=int, default=0, help="so many, spread over the grid; 0: all")
    asked = parser.parse_args().shapes
    shapes = list(grid())
    if asked:
        shapes = shapes[:: max(1, len(shapes) // asked)][:asked]
    pooled, stock = binary(), binary(upstream=True)
    points: list[dict[str, Any]] = []
    with memory_cgroup("llamapool-bench-plan") as cgroup, TemporaryDirectory() as scratch:
        for number, shape in enumerate(shapes):
            points.append(_fitting(shape, pooled, cgroup, Path(scratch)))
            _tell(points[-1])
            if number % 3 == 0:
                points.append(_too_small(shape, stock, cgroup, Path(scratch)))
                _tell(points[-1])
            record = {"machine": describe(), "summary": summary(points), "points": points}
            RECORD.parent.mkdir(parents=True, exist_ok=True)
            RECORD.write_text(json.dumps(record, indent=2) + "\n")
    found = summary(points)
    print(json.dumps(found, indent=2))  # noqa: T201
    sys.exit(any(found[name] for name in WRONG))


def summary(points: list[dict[str, Any]]) -> dict[str, Any]:
    """What was held: counts of points, and of those that were not as planned."""
    fitting = [point for point in points if point["fits"]]
    measured = [(each["predicted"], each["measured"]) for each in fitting if each["measured"] is not None]
    errors = [abs(said["base_bytes"] - seen["base_bytes"]) for said, seen in measured]
    shares = [error / seen["base_bytes"] for error, (_, seen) in zip(errors, measured, strict=True)]
    return {
        "fitting": len(fitting),
        "too_small": len(points) - len(fitting),
        "base_error_bytes_max": max(errors, default=None),
        "base_error_share_max": max(shares, default=None),
        "base_off": sum(
            error > TOLERATED_BYTES and share > TOLERATED_SHARE
            for error, share in zip(errors, shares, strict=True)
        ),
        "state_off": sum(said["state_bytes"] != seen["state_bytes"] for said, seen in measured),
        "peak_above_plan": sum(said["peak_bytes"] < seen["peak_bytes"] for said, seen in measured),
        "unmeasured": len(fitting) - len(measured),
        "killed": sum(not point["survived"] for point in fitting),
        "survived": sum(point["survived"] for point in points if not point["fits"]),
    }


def _fitting(shape: Shape, binary: Path, cgroup: Path, scratch: Path) -> dict[str, Any]:
    predicted, model = _predicted(shape)
    policy = PoolPolicy(mode=PoolMode.AUTO, cap_bytes=None, limit_percent=Fraction("6.25"), slots=shape.slots)
    unlimited = make_plan(
        policy=policy,
        limit_bytes=None,
        base_bytes=None,
        checkpoint_bytes=predicted["state_bytes"],
        predicted_base_bytes=predicted["base_bytes"],
    )
    limit_bytes = least_limit_bytes(unlimited, shape.slots)
    plan = make_plan(
        policy=policy,
        limit_bytes=limit_bytes,
        base_bytes=None,
        checkpoint_bytes=predicted["state_bytes"],
        predicted_base_bytes=predicted["base_bytes"],
    )
    predicted["peak_bytes"] = plan.base_bytes + plan.state_budget_bytes  # type: ignore[operator]  # both known
    with LimitedServer(
        binary,
        model,
        *shape.arguments,
        cgroup=cgroup,
        limit_bytes=limit_bytes or 0,
        scratch=scratch,
    ) as running:
        answered = running.ready() and _converse(running, shape.slots, _TURNS)
        measured = running.figures()
    return {
        "shape": asdict(shape),
        "limit_bytes": limit_bytes,
        "predicted": predicted,
        "measured": measured,
        "fits": True,
        "survived": answered and running.end is None,
        "end": running.end,
    }


def _too_small(shape: Shape, binary: Path, cgroup: Path, scratch: Path) -> dict[str, Any]:
    predicted, model = _predicted(shape)
    need_bytes = predicted["base_bytes"] + shape.slots * predicted["state_bytes"]
    limit_bytes = int(need_bytes / OVER)
    with LimitedServer(
        binary,
        model,
        *shape.arguments,
        cgroup=cgroup,
        limit_bytes=limit_bytes,
        scratch=scratch,
    ) as running:
        survived = running.ready() and _converse(running, shape.slots, _MOST_STOCK_TURNS)
    return {
        "shape": asdict(shape),
        "limit_bytes": limit_bytes,
        "predicted": predicted,
        "measured": None,
        "fits": False,
        "survived": survived or running.end not in ("killed", "refused"),
        "end": running.end,
    }


def _predicted(shape: Shape) -> tuple[dict[str, Any], Path]:
    model = model_file(HybridShape(layers=shape.layers))
    facts = FetchedModel(sha256=None, facts=read_model_facts(str(model)))
    need = predict_need(facts, ServerFlags(context=shape.flags))
    if need.base_bytes is None or need.checkpoint_bytes is None:
        raise RuntimeError(f"{model}: {need.unknown}")
    predicted = {
        "base_bytes": need.base_bytes,
        "state_bytes": need.checkpoint_bytes,
        "peak_bytes": need.base_bytes + shape.slots * mapped_bytes(need.checkpoint_bytes),
    }
    return predicted, model


def _converse(running: LimitedServer, slots: int, turns: int) -> bool:
    """Fill a micro batch, which touches all of the compute buffer, then let a conversation grow in every slot
    at once; whether every answer came.
    """
    if not running.complete("x" * (ContextFlags().micro_batch_tokens + _BESIDE_TOKENS)):
        return False
    with ThreadPoolExecutor(slots) as pool:
        for turn in range(1, turns + 1):
            prompts = [f"{slot}: " + _MESSAGE * (turn * 2) for slot in range(slots)]
            if not all(pool.map(running.complete, prompts)):
                return False
    return True


def _tell(point: dict[str, Any]) -> None:
    mib = {
        name: {key: round(value / 2**20, 1) for key, value in (point[name] or {}).items()}
        for name in ("predicted", "measured")
    }
    what = "fits" if point["fits"] else "too small"
    shape = " ".join(map(str, point["shape"].values()))
    print(time.strftime("%H:%M:%S"), shape, what, point["end"] or "survived", mib, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
