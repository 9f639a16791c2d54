"""Histograms as servers make them, from single observations."""

import bisect
import math
from collections.abc import Iterable

from llamapool.domain.histogram import Histogram

SECONDS = (*(0.001 * 1.25**power for power in range(60)), math.inf)
TOKENS = (*(float(1 << power) for power in range(21)), math.inf)


def histogram(bounds: tuple[float, ...], values: Iterable[float]) -> Histogram:
    """What a server reports of these observations."""
    counts, total = [0.0] * len(bounds), 0.0
    for value in values:
        counts[bisect.bisect_left(bounds, value)] += 1
        total += value
    cumulative, so_far = [], 0.0
    for count in counts:
        so_far += count
        cumulative.append(so_far)
    return Histogram(bounds, tuple(cumulative), total)


def seconds(*values: float) -> Histogram:
    return histogram(SECONDS, values)


def tokens(*values: float) -> Histogram:
    return histogram(TOKENS, values)
