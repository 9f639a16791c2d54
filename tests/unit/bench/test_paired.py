"""Ratios of rounds, their intervals, and what may be said of them."""

from typing import Any

import numpy as np
import pytest

from tests.bench.paired import Estimate, Plan, Verdict, avoided_share, quantile, ratio, reached_share

SETTINGS: dict[str, Any] = {"confidence": 0.95, "seed": 7}


def test_a_ratio_is_the_median_of_the_rounds_ratios_and_not_the_ratio_of_medians() -> None:
    # The last round is three times as slow for both: drift, which the ratio must not see.
    assert ratio([1, 1, 6], [2, 2, 6], **SETTINGS).value == 0.5
    assert np.median([1, 1, 6]) / np.median([2, 2, 6]) == 0.5
    assert ratio([1, 4, 30], [2, 5, 60], **SETTINGS).value == 0.5


def test_drift_that_hits_both_arms_of_a_round_does_not_widen_the_interval() -> None:
    drift = [1.0, 3.0, 0.5, 2.0, 10.0]
    estimate = ratio([0.7 * each for each in drift], drift, **SETTINGS)
    assert (estimate.low, estimate.high) == pytest.approx((0.7, 0.7))


def test_the_interval_covers_the_true_ratio_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    covered = 0
    for seed in range(200):
        rounds = random.lognormal(np.log(0.8), 0.1, size=12)
        estimate = ratio(rounds.tolist(), [1.0] * 12, confidence=0.95, seed=seed)
        covered += estimate.low <= 0.8 <= estimate.high
    assert 0.90 <= covered / 200 <= 1.0


def test_two_arms_that_are_the_same_are_seldom_told_apart() -> None:
    random = np.random.default_rng(5)
    claims = 0
    for seed in range(200):
        rounds = random.lognormal(0, 0.1, size=12)
        estimate = ratio(rounds.tolist(), [1.0] * 12, confidence=0.95, seed=seed)
        claims += estimate.verdict is Verdict.SEPARATES
    assert claims / 200 <= 0.1


def test_the_same_seed_gives_the_same_interval() -> None:
    arm, against = [1.0, 2.0, 4.0, 3.0], [2.0, 3.0, 3.0, 5.0]
    assert ratio(arm, against, **SETTINGS) == ratio(arm, against, **SETTINGS)


def test_a_wider_confidence_gives_a_wider_interval() -> None:
    arm, against = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [1.0] * 6
    narrow = ratio(arm, against, confidence=0.5, seed=7)
    wide = ratio(arm, against, confidence=0.99, seed=7)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_avoided_share_is_1_at_the_floor_and_0_at_the_other() -> None:
    assert avoided_share([8.0], [60.0], [8.0], **SETTINGS).value == 1
    assert avoided_share([60.0], [60.0], [8.0], **SETTINGS).value == 0
    assert avoided_share([34.0], [60.0], [8.0], **SETTINGS).value == 0.5


def test_the_reached_share_is_the_gain_over_the_gain_that_was_allowed() -> None:
    assert reached_share([0.8], [1.0], [0.75], **SETTINGS).value == pytest.approx(0.8)


def test_figures_of_different_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[1, 2\] figures, want the same number"):
        ratio([1.0], [1.0, 2.0], **SETTINGS)


def test_no_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ratio([], [], **SETTINGS)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.7, 0.8, Verdict.SEPARATES),
        (1.1, 1.2, Verdict.SEPARATES),
        (0.9, 1.1, Verdict.UNCLAIMED),
        (0.9, 1.0, Verdict.UNCLAIMED),
    ],
)
def test_a_ratio_separates_only_if_its_interval_excludes_1(low: float, high: float, verdict: Verdict) -> None:
    assert Estimate(1.0, low, high, 8).verdict is verdict


@pytest.mark.parametrize(
    ("low", "high", "neutral", "settled"),
    [
        (0.96, 1.04, True, True),
        (0.94, 1.04, False, False),
        (0.80, 0.90, False, True),
        (1.06, 1.20, False, True),
    ],
)
def test_a_control_is_settled_inside_5_percent_or_wholly_outside(
    low: float, high: float, *, neutral: bool, settled: bool
) -> None:
    estimate = Estimate(1.0, low, high, 8)
    assert (estimate.neutral, estimate.settles_neutrality) == (neutral, settled)


def test_too_few_rounds_claim_nothing_however_narrow_their_interval() -> None:
    assert Estimate(0.7, 0.69, 0.71, 5).verdict is Verdict.UNCLAIMED
    assert not Estimate(1.0, 0.99, 1.01, 5).neutral
    assert not Estimate(0.7, 0.69, 0.71, 5).settles_neutrality


def test_each_look_costs_its_part_of_the_error() -> None:
    plan = Plan(least=8, step=4, most=24, seed=1)
    looks = [rounds for rounds in range(1, 25) if plan.looks_after(rounds)]
    assert looks == [8, 12, 16, 20, 24]
    assert plan.looks == 5
    assert plan.confidence == pytest.approx(0.99)


def test_a_plan_of_a_fixed_number_of_rounds_looks_once() -> None:
    assert Plan(least=3, step=1, most=3, seed=1).confidence == pytest.approx(0.95)


def test_a_quantile_of_nothing_is_none() -> None:
    assert quantile([], 0.5) is None
    assert quantile([1.0, 3.0], 0.5) == 2.0
