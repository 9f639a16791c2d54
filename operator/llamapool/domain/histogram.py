"""Quantiles of a Prometheus histogram over a sliding window, summed over replicas, safe across restarts."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Histogram:
    """A classic Prometheus histogram.

    Attributes:
        upper_bounds: ascending, in the histogram's unit, the last one infinite.
        cumulative_counts: observations at or below each bound; as many as there are bounds.
        total: sum of all observations; None: not known.
    """

    upper_bounds: tuple[float, ...]
    cumulative_counts: tuple[float, ...]
    total: float | None = None

    @property
    def count(self) -> float:
        """Number of observations."""
        return self.cumulative_counts[-1] if self.cumulative_counts else 0.0

    @property
    def mean(self) -> float | None:
        """Mean of the observations; None where there is none, or their sum is not known."""
        return None if self.total is None or not self.count else self.total / self.count

    def plus(self, other: Self) -> "Histogram":
        """Return the sum of two histograms with the same bounds.

        Raises:
            ValueError: the bounds differ.
        """
        pairs = zip(self.cumulative_counts, other.cumulative_counts, strict=True)
        self._require_bounds_of(other)
        total = None if self.total is None or other.total is None else self.total + other.total
        return Histogram(self.upper_bounds, tuple(mine + its for mine, its in pairs), total)

    def since(self, earlier: Self) -> "Histogram":
        """Return what was observed after `earlier`; all of it where a counter went back (a restart).

        Raises:
            ValueError: the bounds differ.
        """
        self._require_bounds_of(earlier)
        pairs = list(zip(self.cumulative_counts, earlier.cumulative_counts, strict=True))
        if any(now < before for now, before in pairs):
            return self
        total = None if self.total is None or earlier.total is None else max(0.0, self.total - earlier.total)
        return Histogram(self.upper_bounds, tuple(now - before for now, before in pairs), total)

    def quantile(self, share: float) -> "Quantile | None":
        """Return the quantile, interpolated linearly within its bucket; None without observations.

        Args:
            share: between 0 and 1, such as 0.9.
        """
        if not self.count:
            return None
        rank = share * self.count
        below, lower_bound = 0.0, 0.0
        for upper_bound, cumulative in zip(self.upper_bounds, self.cumulative_counts, strict=True):
            if cumulative >= rank and cumulative > below:
                if upper_bound == float("inf"):
                    break
                part = (rank - below) / (cumulative - below)
                return Quantile(lower_bound + part * (upper_bound - lower_bound), at_least=False)
            below, lower_bound = cumulative, upper_bound
        return Quantile(max((b for b in self.upper_bounds if b != float("inf")), default=0.0), at_least=True)

    def _require_bounds_of(self, other: Self) -> None:
        if self.upper_bounds != other.upper_bounds:
            raise ValueError(f"histograms of different buckets: {self.upper_bounds} and {other.upper_bounds}")


@dataclass(frozen=True)
class Quantile:
    """A quantile of durations.

    Attributes:
        seconds: its value.
        at_least: the true value lies beyond the top bucket, so `seconds` is only a lower bound.
    """

    seconds: float
    at_least: bool

    def __str__(self) -> str:
        """Write it for people: three significant digits, such as 0.42s or ≥600s."""
        return f"{'≥' if self.at_least else ''}{self.seconds:.3g}s"


class HistogramWindow:
    """What a set of servers observed over the last `length_seconds`.

    The first histogram of a server is its baseline and counts nothing by itself: its observations are of
    unknown age.
    """

    def __init__(self, length_seconds: float) -> None:
        self._length_seconds = length_seconds
        self._last: dict[Hashable, Histogram] = {}
        self._increments: deque[tuple[float, Histogram]] = deque()

    def add(self, server: Hashable, histogram: Histogram, *, now_seconds: float) -> None:
        """Take in one scrape of one server.

        Args:
            server: identifies it; a restarted container may keep its identity.
            histogram: its histogram, cumulative since its start.
            now_seconds: time of the scrape on any clock that never goes back.
        """
        last = self._last.get(server)
        self._last[server] = histogram
        if last is None or last.upper_bounds != histogram.upper_bounds:
            return
        increment = histogram.since(last)
        if increment.count:
            self._increments.append((now_seconds, increment))

    def keep(self, servers: set[Hashable]) -> None:
        """Forget the baselines of all other servers; what they observed stays in the window."""
        self._last = {server: last for server, last in self._last.items() if server in servers}

    def total(self, *, now_seconds: float) -> Histogram | None:
        """Return everything observed in the window; None where nothing was."""
        while self._increments and self._increments[0][0] < now_seconds - self._length_seconds:
            self._increments.popleft()
        total: Histogram | None = None
        for _, increment in reversed(self._increments):
            if total is None:
                total = increment
            elif increment.upper_bounds == total.upper_bounds:  # an older server image had other buckets
                total = total.plus(increment)
        return total
