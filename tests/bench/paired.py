"""Ratios of arms that were measured in turns: medians over rounds, with bootstrap intervals. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Floats = NDArray[np.float64]

RESAMPLES = 4000
FAMILY_ERROR = 0.05
NEUTRAL = (0.95, 1.05)
LEAST_TO_CLAIM = 6
"""Rounds below which nothing is claimed: fewer lie all on one side by chance in more than 1 of 20 cases."""


class Verdict(StrEnum):
    """What an interval of a ratio allows to say."""

    SEPARATES = "separates"
    """It excludes 1."""
    UNCLAIMED = "unclaimed"


@dataclass(frozen=True)
class Estimate:
    """A statistic over rounds.

    Attributes:
        value: over the rounds as they are.
        low: lower end of its bootstrap interval.
        high: upper end.
        rounds: how many there were.
    """

    value: float
    low: float
    high: float
    rounds: int

    @property
    def verdict(self) -> Verdict:
        """What may be said of a ratio."""
        excluded = self.high < 1 or self.low > 1
        return Verdict.SEPARATES if excluded and self.rounds >= LEAST_TO_CLAIM else Verdict.UNCLAIMED

    @property
    def neutral(self) -> bool:
        """Whether the whole interval of a ratio lies within ±5 % of 1."""
        inside = NEUTRAL[0] <= self.low and self.high <= NEUTRAL[1]
        return inside and self.rounds >= LEAST_TO_CLAIM

    @property
    def settles_neutrality(self) -> bool:
        """Whether more rounds are needless: the interval lies within ±5 % of 1, or wholly outside of that."""
        outside = self.high < NEUTRAL[0] or NEUTRAL[1] < self.low
        return self.neutral or (outside and self.rounds >= LEAST_TO_CLAIM)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many rounds.

    Attributes:
        least: before the first look at the intervals.
        step: rounds from one look to the next.
        most: rounds, whatever the intervals say.
        seed: of prompts, orders and resampling.
    """

    least: int
    step: int
    most: int
    seed: int

    def looks_after(self, rounds: int) -> bool:
        """Whether the intervals are looked at after so many rounds."""
        return rounds >= self.least and (rounds - self.least) % self.step == 0

    @property
    def looks(self) -> int:
        """How often the intervals may be looked at."""
        return 1 + -(-(self.most - self.least) // self.step)

    @property
    def confidence(self) -> float:
        """Of each interval, for 95 % over all of the looks.

        Rounds are added until the interval decides, so each look is a chance to be wrong: by Bonferroni's
        inequality the chance over all of them stays at most 5 %.
        """
        return 1 - FAMILY_ERROR / self.looks


def ratio(arm: Sequence[float], against: Sequence[float], *, confidence: float, seed: int) -> Estimate:
    """The median of arm / against, taken round by round.

    Args:
        arm: one positive figure a round.
        against: as many, of the same rounds.
        confidence: of the interval, between 0 and 1.
        seed: of the resampling.

    Raises:
        ValueError: there are no rounds, or not as many of the one as of the other.
    """
    return _bootstrap(_columns(arm, against), _median_ratio, confidence, seed)


def avoided_share(
    arm: Sequence[float],
    against: Sequence[float],
    floor: Sequence[float],
    *,
    confidence: float,
    seed: int,
) -> Estimate:
    """The share of what could be avoided that was: the median of (against − arm) / (against − floor).

    Args:
        arm: seconds, one a round.
        against: seconds of the same rounds, above `floor`.
        floor: seconds that nothing can go below, of the same rounds.
        confidence: of the interval, between 0 and 1.
        seed: of the resampling.

    Raises:
        ValueError: there are no rounds, or not as many of each.
    """
    return _bootstrap(_columns(arm, against, floor), _median_avoided_share, confidence, seed)


def reached_share(
    arm: Sequence[float],
    against: Sequence[float],
    allowed: Sequence[float],
    *,
    confidence: float,
    seed: int,
) -> Estimate:
    """The share of the possible gain that was reached: (1 − median ratio) / (1 − median allowed ratio).

    Args:
        arm: one figure a round.
        against: of the same rounds.
        allowed: the ratio, below 1, that these rounds would show if all avoidable work were gone.
        confidence: of the interval, between 0 and 1.
        seed: of the resampling.

    Raises:
        ValueError: there are no rounds, or not as many of each.
    """
    return _bootstrap(_columns(arm, against, allowed), _reached_share, confidence, seed)


def quantile(values: Sequence[float], share: float) -> float | None:
    """A quantile, interpolated linearly between neighbours; None of nothing."""
    return float(np.quantile(values, share)) if values else None


def _columns(*figures: Sequence[float]) -> Floats:
    lengths = {len(each) for each in figures}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"rounds: {[len(each) for each in figures]} figures, want the same number, at least 1"
        )
    return np.array(figures, dtype=np.float64)


def _median_ratio(columns: Floats) -> Floats:
    arm, against = columns
    return np.asarray(np.median(arm / against, axis=-1))


def _median_avoided_share(columns: Floats) -> Floats:
    arm, against, floor = columns
    return np.asarray(np.median((against - arm) / (against - floor), axis=-1))


def _reached_share(columns: Floats) -> Floats:
    arm, against, allowed = columns
    return np.asarray((1 - np.median(arm / against, axis=-1)) / (1 - np.median(allowed, axis=-1)))


def _bootstrap(
    columns: Floats, statistic: Callable[[Floats], Floats], confidence: float, seed: int
) -> Estimate:
    """The percentile bootstrap: whole rounds are resampled, so that what belongs together stays so.

    Args:
        columns: shape (figures, rounds).
        statistic: reduces (figures, …, rounds) to (…).
        confidence: of the interval.
        seed: of the resampling.
    """
    rounds = columns.shape[1]
    chosen = np.random.default_rng(seed).integers(0, rounds, size=(RESAMPLES, rounds))
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(columns[:, chosen]), [tail, 1 - tail])
    return Estimate(float(statistic(columns)), float(low), float(high), rounds)
