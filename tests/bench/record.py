"""The record of a run, build/bench/pool.json: figures for each load and arm, and the comparisons. Pure."""

from __future__ import annotations

from functools import reduce
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, Any

from llamapool.domain.histogram import Histogram
from tests.bench import comparisons
from tests.bench.arms import ARMS
from tests.bench.errors import BenchError
from tests.bench.measurements import seconds
from tests.bench.paired import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.loads import Load
    from tests.bench.measurements import Batch, Round
    from tests.bench.paired import Plan

_TTFT_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def of_load(load: Load, arms: Sequence[str], rounds: Sequence[Round], plan: Plan) -> dict[str, Any]:
    """One load's entry: its arms, what memcpy took in the same rounds, and what ours reached."""
    measured = [arm for arm in arms if any(arm in each.batches for each in rounds)]
    memcpy_bytes_per_second = median(each.memcpy_bytes_per_second for each in rounds)
    entry = {
        "load": load.name,
        "what": load.what,
        "slots": load.slots,
        "layers": load.shape.layers,
        "neutral": load.neutral,
        "rounds": len(rounds),
        "checkpoint_bytes": load.shape.state_bytes,
        "memcpy_bytes_per_second": memcpy_bytes_per_second,
        "memcpy_seconds": load.shape.state_bytes / memcpy_bytes_per_second,
        "arms": {
            arm: of_arm([each.batches[arm] for each in rounds if arm in each.batches]) for arm in measured
        },
    }
    return entry | comparisons.shares(rounds, plan)


def of_arm(batches: Sequence[Batch]) -> dict[str, Any]:
    """One arm's figures over all of its batches; null where there was nothing of the kind."""
    ttft = [each for batch in batches for each in batch.ttft_seconds]
    checkpoints = [each for batch in batches for each in batch.checkpoints]
    saves = [each for batch in batches for each in batch.saves]
    turns = batches[0].turns
    figures = {
        "requests": len(ttft),
        "ttft_seconds": _quantiles(ttft, _TTFT_SHARES),
        "ttft_histogram_seconds": _histogram_quantiles(batches),
        "checkpoints": len(checkpoints),
        "checkpoint_seconds": _quantiles(seconds(checkpoints), {"p50": 0.5, "p90": 0.9}),
        "saves": len(saves),
        "save_seconds": _quantiles(seconds(saves), {"p50": 0.5, "p99": 0.99}),
        "save_bytes": quantile([each.size_bytes for each in saves], 0.5),
        "save_blocked_share": sum(seconds(saves)) / sum(batch.wall_seconds for batch in batches),
        "page_faults_per_checkpoint": sum(batch.page_faults for batch in batches) / len(checkpoints)
        if checkpoints
        else None,
        "peak_rss_bytes": max(batch.peak_rss_bytes for batch in batches),
        "requests_per_second": median(batch.requests_per_second for batch in batches),
    }
    if turns > 1:
        by_turn = [
            [each for batch in batches for each in batch.ttft_seconds[turn::turns]] for turn in range(turns)
        ]
        figures["ttft_p50_seconds_by_turn"] = [quantile(each, 0.5) for each in by_turn]
    return figures


def join(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The record of several runs: each load as the last run of it showed, no result if one of them is none.

    Raises:
        BenchError: they were made on different machines or with different releases of upstream.
    """
    joined = records[0]
    for record in records[1:]:
        for name, of in (("machine", _kind_of_machine), ("upstream", itemgetter("upstream"))):
            if of(record) != of(joined):
                raise BenchError(
                    f"{name}: {of(record)} at {record['at']}, want that of {joined['at']}: {of(joined)}"
                )
        again = {load["load"] for load in record["loads"]}
        joined = record | {
            "loads": [load for load in joined["loads"] if load["load"] not in again] + record["loads"],
            "comparisons": [each for each in joined["comparisons"] if each["load"] not in again]
            + record["comparisons"],
            "arms": joined["arms"] | record["arms"],
            "quick": joined["quick"] or record["quick"],
            "quiet": joined["quiet"] and record["quiet"],
        }
    return joined


def _kind_of_machine(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record["machine"][name] for name in ("processor", "cores", "memory_gib", "virtual")}


def describe_arms(arms: Sequence[str]) -> dict[str, str]:
    """The arms in plain words."""
    return {arm: ARMS[arm].what for arm in arms}


def _quantiles(values: Sequence[float], shares: dict[str, float]) -> dict[str, float | None]:
    return {name: quantile(values, share) for name, share in shares.items()}


def _histogram_quantiles(batches: Sequence[Batch]) -> dict[str, float] | None:
    observed = [batch.histogram for batch in batches if batch.histogram]
    if not observed:
        return None
    total = reduce(Histogram.plus, observed)
    found = {name: total.quantile(share) for name, share in _TTFT_SHARES.items()}
    return {name: each.seconds for name, each in found.items() if each}
