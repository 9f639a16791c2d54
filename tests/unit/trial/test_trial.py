"""The pool on and off in alternation: what legs show, and what ends a trial early."""

import itertools
import json
import random
from dataclasses import replace

import pytest

from llamapool.domain.trial import Leg, Measured, Result, Trial, advance, judge_legs
from llamapool.domain.tuning import TrialPolicy
from tests.simulator.trials import null_trial
from tests.unit.ttft.observed import seconds, tokens

POLICY = TrialPolicy(legs=7, leg_seconds=60, min_requests=20)
START = 1_764_590_400.0
TRIAL = Trial(id="t", why="asked for", started_at=START, setting="as it is", policy=POLICY)
PROMPTS = tokens(*[40] * 30)


def legs(
    on: list[float], off: list[float], *, ttft_on: float = 1.0, ttft_off: float = 1.0
) -> tuple[Leg, ...]:
    """Legs in alternation, from the checkpoint times of both arms."""
    pairs = itertools.zip_longest(on, off)
    arms = [(pool_on, value) for pair in pairs for pool_on, value in zip((True, False), pair, strict=True)]
    return tuple(
        Leg(
            pool_on=pool_on,
            requests=30,
            p90_seconds=ttft_on if pool_on else ttft_off,
            checkpoint_seconds=value,
            prompts=PROMPTS,
        )
        for pool_on, value in arms
        if value is not None
    )


def measured(trial: Trial, *, after: float = 60, ttft: float = 1.0, made: float = 0.01, requests: int = 30,
             length: int = 40) -> Measured:  # fmt: skip
    return Measured(
        trial=trial.id,
        leg=len(trial.legs),
        seconds=after,
        time_to_first_token=seconds(*[ttft] * requests),
        prompt_tokens=tokens(*[length] * requests),
        checkpoint_time=seconds(*[made] * requests),
    )


def step(trial: Trial, seen: Measured | None, **changes: object) -> Trial:
    known: dict[str, object] = {"setting": "as it is", "killed": False, "now": START + 60}
    return advance(trial, seen, **(known | changes))  # type: ignore[arg-type]


def run(trial: Trial, *, on: float, off: float) -> Trial:
    while trial.running:
        made = on if trial.pool_on else off
        trial = step(trial, measured(trial, made=made, ttft=1.0 + made))
    return trial


def test_a_pool_that_helps_is_found_to_help() -> None:
    assert run(TRIAL, on=0.01, off=0.09).result is Result.POOL_HELPS


def test_a_pool_that_harms_is_found_to_harm_and_the_figures_are_told() -> None:
    trial = run(TRIAL, on=0.09, off=0.01)
    assert trial.result is Result.POOL_HARMS
    assert "90 ms with the pool and 10 ms without" in trial.message


def test_no_difference_is_unclaimed() -> None:
    trial = run(TRIAL, on=0.05, off=0.05)
    assert trial.result is Result.INCONCLUSIVE
    assert "unclaimed" in trial.message


def test_the_pool_is_on_in_the_first_leg_and_every_second_one_after_it() -> None:
    trial, arms = TRIAL, []
    while trial.running:
        arms.append(trial.pool_on)
        trial = step(trial, measured(trial))
    assert arms == [True, False, True, False, True, False, True]


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        pytest.param(legs([9, 9, 9, 4], [5, 5, 5]), "one leg overlaps", id="overlap"),
        pytest.param(legs([5.2, 5.2, 5.2, 5.2], [5, 5, 5]), "too small an effect", id="small"),
        pytest.param(
            legs([9, 9, 9, 9], [5, 5, 5], ttft_on=1.0, ttft_off=2.0), "the first token contradicts", id="ttft"
        ),
        pytest.param(
            legs([5, 5, 5, 5], [9, 9, 9], ttft_on=2.0), "the first token contradicts", id="ttft, helps"
        ),
    ],
)
def test_legs_that_do_not_separate_cleanly_claim_nothing(seen: tuple[Leg, ...], reason: str) -> None:
    assert judge_legs(seen)[0] is Result.INCONCLUSIVE, reason


def test_a_leg_without_checkpoints_claims_nothing() -> None:
    seen = legs([9, 9, 9, 9], [5, 5, 5])
    assert judge_legs((replace(seen[0], checkpoint_seconds=None), *seen[1:]))[0] is Result.INCONCLUSIVE


def test_a_leg_lasts_until_its_time_is_over() -> None:
    assert step(TRIAL, measured(TRIAL, after=59)) == TRIAL
    assert len(step(TRIAL, measured(TRIAL, after=60)).legs) == 1


def test_what_was_measured_of_another_leg_or_trial_does_not_count() -> None:
    assert step(TRIAL, replace(measured(TRIAL), leg=1)) == TRIAL
    assert step(TRIAL, replace(measured(TRIAL), trial="earlier")) == TRIAL
    assert step(TRIAL, None) == TRIAL


def test_too_few_requests_in_a_leg_are_inconclusive() -> None:
    trial = step(TRIAL, measured(TRIAL, requests=19))
    assert (trial.result, "19 requests" in trial.message) == (Result.INCONCLUSIVE, True)


def test_a_mix_that_changes_in_mid_trial_is_inconclusive() -> None:
    first = step(TRIAL, measured(TRIAL))
    trial = step(first, measured(first, length=4000))
    assert (trial.result, "other lengths" in trial.message) == (Result.INCONCLUSIVE, True)


@pytest.mark.parametrize("changes", [{"setting": "one pod more"}, {"killed": True}, {"now": START + 9999}])
def test_restart_scaling_rollout_a_kill_and_silence_abort(changes: dict[str, object]) -> None:
    assert step(TRIAL, measured(TRIAL), **changes).result is Result.ABORTED


def test_harm_ends_the_leg_at_once() -> None:
    first = step(TRIAL, measured(TRIAL))
    trial = step(first, measured(first, after=10, ttft=3.0, requests=15))
    assert (trial.result, "went from" in trial.message) == (Result.ABORTED, True)


def test_longer_prompts_that_take_longer_are_another_mix_and_no_harm() -> None:
    first = step(TRIAL, measured(TRIAL))
    trial = step(first, measured(first, after=10, ttft=3.0, requests=15, length=4000))
    assert (trial.result, "other lengths" in trial.message) == (Result.INCONCLUSIVE, True)


def test_a_trial_is_read_back_as_it_was_written() -> None:
    for trial in (TRIAL, step(TRIAL, measured(TRIAL)), run(TRIAL, on=0.09, off=0.01)):
        assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial_as_written(trial)


def trial_as_written(trial: Trial) -> Trial:
    """The sum of a mix is not kept."""
    mixes = [replace(leg, prompts=replace(leg.prompts, total=None)) for leg in trial.legs]
    return replace(trial, legs=tuple(mixes))


def test_of_a_thousand_trials_without_an_effect_at_most_fifty_act() -> None:
    draw = random.Random(20261202)  # noqa: S311 - a simulation
    results = [null_trial(draw) for _ in range(1000)]
    acted = results.count(Result.POOL_HARMS)
    assert acted <= 50
    assert acted + results.count(Result.POOL_HELPS) <= 100
