"""What one arm showed in one batch, and the figures that are compared. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from llamapool.domain.histogram import Histogram
from tests.bench.paired import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One checkpoint or one prompt save, by the stopwatch in the server.

    Attributes:
        size_bytes: of the state that had to be copied: a checkpoint's data, or the sequence's own state.
        seconds: for which it blocked the server's thread.
    """

    size_bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of requests to one arm.

    Attributes:
        ttft_seconds: from sending a request to its first token, by the client's stopwatch.
        turns: how many of these belong to one conversation; 1 where each prompt stands alone.
        wall_seconds: from the first request to the last answer.
        checkpoints: made in the batch.
        saves: of prompts to the cache in the batch.
        page_faults: minor ones of the server in the batch.
        peak_rss_bytes: the most memory that the server has had resident so far.
        histogram: the server's own of the time to first token, over this batch; None where it has none.
    """

    ttft_seconds: tuple[float, ...]
    turns: int
    wall_seconds: float
    checkpoints: tuple[Timed, ...]
    saves: tuple[Timed, ...]
    page_faults: int
    peak_rss_bytes: int
    histogram: Histogram | None

    @property
    def requests_per_second(self) -> float:
        """Answers a second."""
        return len(self.ttft_seconds) / self.wall_seconds


def joined(batches: Sequence[Batch]) -> Batch:
    """Batches of the same prompts to one arm, as one.

    Raises:
        ValueError: there are none.
    """
    if not batches:
        raise ValueError("batches: none, want at least 1")
    histograms = [each.histogram for each in batches if each.histogram]
    return Batch(
        ttft_seconds=tuple(seconds for each in batches for seconds in each.ttft_seconds),
        turns=batches[0].turns,
        wall_seconds=sum(each.wall_seconds for each in batches),
        checkpoints=tuple(timed for each in batches for timed in each.checkpoints),
        saves=tuple(timed for each in batches for timed in each.saves),
        page_faults=sum(each.page_faults for each in batches),
        peak_rss_bytes=max(each.peak_rss_bytes for each in batches),
        histogram=reduce(Histogram.plus, histograms) if histograms else None,
    )


@dataclass(frozen=True, kw_only=True)
class Round:
    """A batch of the same prompts for every arm, one after another in random order.

    Attributes:
        batches: by the name of the arm.
        memcpy_bytes_per_second: of resident memory, measured in this round.
    """

    batches: Mapping[str, Batch]
    memcpy_bytes_per_second: float

    def allowed_ratio(self, name: str) -> float:
        """What the arm's wall time would shrink to, as a ratio, if no checkpoint and no save took longer than
        one memcpy of its bytes.

        With the slots always busy the time to first token is proportional to the wall time, so this bounds
        the ratio of either. Unmapping is not in it: less of it may take the ratio below this one.
        """
        batch = self.batches[name]
        avoidable = sum(
            max(0.0, each.seconds - each.size_bytes / self.memcpy_bytes_per_second)
            for each in (*batch.checkpoints, *batch.saves)
        )
        return 1 - avoidable / batch.wall_seconds

    def memcpy_seconds(self, timed: Sequence[Timed]) -> float:
        """One memcpy of the median size of these.

        Raises:
            ValueError: there are none.
        """
        return statistics.median(each.size_bytes for each in timed) / self.memcpy_bytes_per_second


def seconds(timed: Sequence[Timed]) -> list[float]:
    """Their times."""
    return [each.seconds for each in timed]


TTFT_P50 = "ttft_p50_seconds"
CHECKPOINT_P50 = "checkpoint_p50_seconds"
METRICS: Mapping[str, Callable[[Batch], float | None]] = {
    TTFT_P50: lambda batch: quantile(batch.ttft_seconds, 0.5),
    "ttft_p90_seconds": lambda batch: quantile(batch.ttft_seconds, 0.9),
    CHECKPOINT_P50: lambda batch: quantile(seconds(batch.checkpoints), 0.5),
    "save_p50_seconds": lambda batch: quantile(seconds(batch.saves), 0.5),
    "save_total_seconds": lambda batch: sum(seconds(batch.saves)) or None,
    "requests_per_second": lambda batch: batch.requests_per_second,
}
"""Figures of a batch that are compared; None where the batch has nothing of the kind."""
