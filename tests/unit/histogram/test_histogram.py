"""Quantiles over a window, across restarts and replicas."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamapool.domain.histogram import Histogram, HistogramWindow

BOUNDS = (0.1, 1.0, 10.0, math.inf)


def histogram(*counts: float) -> Histogram:
    """From the number of observations in each bucket, not cumulative."""
    return Histogram(BOUNDS, tuple(sum(counts[: index + 1]) for index in range(len(BOUNDS))))


def quantile_of(observed: Histogram | None, share: float) -> str:
    assert observed is not None
    return str(observed.quantile(share))


def test_a_quantile_is_interpolated_within_its_bucket() -> None:
    assert quantile_of(histogram(0, 10, 0, 0), 0.5) == "0.55s"


def test_without_observations_there_is_no_quantile() -> None:
    assert histogram(0, 0, 0, 0).quantile(0.9) is None


def test_a_quantile_beyond_the_top_bucket_is_said_to_be_at_least_its_bound() -> None:
    assert quantile_of(histogram(1, 1, 1, 7), 0.9) == "≥10s"


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.floats(0.01, 0.99))
def test_a_quantile_lies_in_the_bucket_that_holds_its_rank(counts: list[int], share: float) -> None:
    observed = histogram(*counts)
    quantile = observed.quantile(share)
    if quantile is None:
        assert sum(counts) == 0
        return
    rank = share * sum(counts)
    index = next(i for i, total in enumerate(observed.cumulative_counts) if total >= rank and counts[i])
    assert quantile.at_least == (index == 3)
    if not quantile.at_least:
        assert (0.0, *BOUNDS)[index] <= quantile.seconds <= BOUNDS[index]


def test_the_first_scrape_of_a_server_is_only_a_baseline() -> None:
    window = HistogramWindow(300)
    window.add("a", histogram(5, 0, 0, 0), now_seconds=0)
    assert window.total(now_seconds=0) is None


def test_what_was_observed_between_scrapes_is_summed_over_servers() -> None:
    window = HistogramWindow(300)
    for server in ("a", "b"):
        window.add(server, histogram(5, 0, 0, 0), now_seconds=0)
        window.add(server, histogram(5, 2, 0, 0), now_seconds=5)
    assert window.total(now_seconds=5) == histogram(0, 4, 0, 0)


def test_a_counter_that_went_back_counts_from_zero() -> None:
    window = HistogramWindow(300)
    window.add("a", histogram(5, 0, 0, 0), now_seconds=0)
    window.add("a", histogram(0, 3, 0, 0), now_seconds=5)
    assert window.total(now_seconds=5) == histogram(0, 3, 0, 0)


def test_what_is_older_than_the_window_is_gone() -> None:
    window = HistogramWindow(300)
    window.add("a", histogram(0, 0, 0, 0), now_seconds=0)
    window.add("a", histogram(1, 0, 0, 0), now_seconds=10)
    window.add("a", histogram(1, 1, 0, 0), now_seconds=200)
    assert window.total(now_seconds=311) == histogram(0, 1, 0, 0)
    assert window.total(now_seconds=501) is None


def test_a_server_that_comes_back_after_being_gone_starts_with_a_baseline() -> None:
    window = HistogramWindow(300)
    window.add("a", histogram(1, 0, 0, 0), now_seconds=0)
    window.keep(set())
    window.add("a", histogram(9, 0, 0, 0), now_seconds=5)
    assert window.total(now_seconds=5) is None


def test_servers_of_other_buckets_are_not_mixed_in() -> None:
    other = (0.5, math.inf)
    window = HistogramWindow(300)
    for now, count in ((0, 0.0), (5, 2.0)):
        window.add("old", Histogram(other, (count, count)), now_seconds=now)
        window.add("new", histogram(count, 0, 0, 0), now_seconds=now)
    assert window.total(now_seconds=5) == histogram(2, 0, 0, 0)


def test_histograms_of_different_buckets_cannot_be_subtracted() -> None:
    with pytest.raises(ValueError, match="different buckets"):
        histogram(1, 0, 0, 0).since(Histogram((1.0, math.inf), (0.0, 0.0)))
