"""When a trial begins, what it does to the limits, and what is made of its result."""

from dataclasses import replace
from typing import Any

import pytest

from llamapool.domain.conditions import Outcome, PoolMode, TuningMode
from llamapool.domain.policy import Calm
from llamapool.domain.trial import Measured, Result
from llamapool.domain.ttft import Traffic
from llamapool.domain.tuning import TrialPolicy, Tuning
from tests.unit.builders import MIB
from tests.unit.policy.kills import Model, box, end
from tests.unit.ttft.observed import seconds, tokens

TRIAL = TrialPolicy(legs=7, leg_seconds=60, min_requests=20)
ASKED = Tuning(ttft=TuningMode.RECOMMEND, trial=TRIAL, target_p90_seconds=1.0)
AUTO = Tuning(ttft=TuningMode.AUTO, trial=TRIAL, target_p90_seconds=1.0)
PLANNED = 4


def traffic(ttft: float, checkpoint: float) -> Traffic:
    return Traffic(
        time_to_first_token=seconds(*[ttft] * 50),
        prompt_tokens=tokens(*[40] * 50),
        checkpoint_time=seconds(*[checkpoint] * 50),
    )


SLOW_BY_CHECKPOINTS, SLOW_OTHERWISE, FAST = traffic(2.0, 0.5), traffic(2.0, 0.01), traffic(0.1, 0.01)


def trial_of(model: Model) -> Any:
    assert model.facts.record is not None
    assert model.facts.record.trial is not None
    return model.facts.record.trial


def leg(model: Model, made: float, **seen: Any) -> None:
    """One whole leg of the trial that runs."""
    trial = trial_of(model)
    measured = Measured(
        trial=trial.id,
        leg=len(trial.legs),
        seconds=60,
        time_to_first_token=seconds(*[1 + made] * 30),
        prompt_tokens=tokens(*[40] * 30),
        checkpoint_time=seconds(*[made] * 30),
    )
    model.look(after=60, measured=measured, trial_request="now", **seen)


def run(model: Model, *, on: float, off: float) -> list[int]:
    """All legs; the cap in each, in buffers."""
    caps = []
    while trial_of(model).running:
        caps.append(model.cap_buffers)
        leg(model, on if trial_of(model).pool_on else off)
    return caps


def test_a_trial_that_was_asked_for_alternates_the_cap_and_puts_it_back() -> None:
    model = Model(ASKED)
    model.look(trial_request="now")
    assert run(model, on=0.01, off=0.09) == [PLANNED, 0, PLANNED, 0, PLANNED, 0, PLANNED]
    assert (model.cap_buffers, model.reasons) == (PLANNED, ["TrialStarted", "TrialPoolHelps"])


def test_a_trial_is_two_decisions_and_not_one_a_leg() -> None:
    model = Model(ASKED)
    model.look(trial_request="now")
    identity = trial_of(model).id
    leg(model, 0.01)
    assert (model.limits.pool_cap_bytes, model.limits.decision) == (0, identity)
    assert model.reasons == ["TrialStarted"]


def test_one_request_starts_one_trial_and_a_new_one_another() -> None:
    model = Model(ASKED)
    model.look(trial_request="now")
    run(model, on=0.05, off=0.05)
    model.look(trial_request="now")
    assert not trial_of(model).running
    model.look(trial_request="")
    model.look(trial_request="now")
    assert trial_of(model).running


def test_a_harmful_pool_is_told_and_left_on_where_tuning_only_recommends() -> None:
    model = Model(ASKED)
    model.look(trial_request="now")
    run(model, on=0.09, off=0.01)
    assert (model.cap_buffers, model.reasons[-1]) == (PLANNED, "TrialPoolHarms")
    assert model.decisions[0].outcome is Outcome.RECOMMENDED
    assert model.decisions[0].evidence["leg2"].startswith("pool off: 30 requests")  # type: ignore[union-attr]


def test_a_harmful_pool_is_turned_off_in_auto_and_retried_later() -> None:
    model = Model(AUTO)
    model.look(trial_request="now")
    run(model, on=0.09, off=0.01)
    assert (model.cap_buffers, model.decisions[0].outcome) == (0, Outcome.APPLIED)
    model.look_calmly(after=3700)
    assert (model.cap_buffers, model.reasons[-1]) == (2, "PoolRetried")


def test_a_harmful_pool_of_a_pod_without_a_limit_is_retried_too() -> None:
    model = Model(AUTO)
    unlimited = (model.pod(limit=None),)
    model.look(pods=unlimited)
    model.facts = replace(model.facts, pods=unlimited)
    assert model.limits.pool_cap_bytes is None
    model.look(trial_request="now")
    while trial_of(model).running:
        leg(model, 0.09 if trial_of(model).pool_on else 0.01)
    assert model.limits.pool_cap_bytes == 0
    model.look(after=3700, calm=Calm(spare_bytes=None, pool_wanted=True))
    assert (model.limits.pool_cap_bytes, model.reasons[-1]) == (None, "PoolRetried")
    assert "no memory limit" in model.decisions[0].message


def test_no_difference_leaves_the_pool_on() -> None:
    model = Model(AUTO)
    model.look(trial_request="now")
    run(model, on=0.05, off=0.05)
    assert (model.cap_buffers, model.reasons[-1]) == (PLANNED, "TrialInconclusive")


def test_a_breach_by_checkpoints_starts_a_trial_in_auto() -> None:
    model = Model(AUTO)
    model.look(traffic=SLOW_BY_CHECKPOINTS)
    assert model.reasons == ["TrialStarted"]
    assert trial_of(model).running


def test_a_breach_is_told_once_and_again_only_after_it_was_over() -> None:
    model = Model(ASKED)
    for seen in (SLOW_BY_CHECKPOINTS, SLOW_BY_CHECKPOINTS, FAST, FAST, SLOW_BY_CHECKPOINTS):
        model.look(traffic=seen)
    assert model.reasons == ["TTFTBreached", "TTFTBreached"]
    assert "annotate" in model.decisions[0].message


def test_a_breach_that_checkpoints_have_no_part_in_starts_nothing_and_does_not_blame_the_pool() -> None:
    model = Model(AUTO)
    model.look(traffic=SLOW_OTHERWISE)
    assert model.reasons == ["TTFTBreached"]
    assert "not to blame" in model.decisions[0].message
    assert model.cap_buffers == PLANNED


def test_off_does_nothing_about_a_breach_and_refuses_a_trial() -> None:
    model = Model(Tuning(ttft=TuningMode.OFF, target_p90_seconds=1.0))
    model.look(traffic=SLOW_BY_CHECKPOINTS)
    assert model.reasons == []
    model.look(trial_request="now")
    assert model.reasons == ["TrialRefused"]
    assert "spec.tuning.ttft is Off" in model.decisions[0].message


def test_a_pool_that_is_off_cannot_be_tried() -> None:
    model = Model(ASKED, mode=PoolMode.OFF)
    model.look(trial_request="now")
    assert model.reasons == ["TrialRefused"]


@pytest.mark.parametrize("leg_done", [0, 1])
def test_a_kill_ends_the_trial_and_puts_the_cap_back_before_it_is_answered(leg_done: int) -> None:
    model = Model(ASKED)
    model.look(trial_request="now")
    for _ in range(leg_done):
        leg(model, 0.01)
    model.look(end(box=box(live=2, pooled=0)), trial_request="now")
    assert trial_of(model).result is Result.ABORTED
    assert model.cap_buffers == PLANNED
    assert sorted(model.reasons) == ["MemoryOutsideState", "TrialAborted", "TrialStarted"]


def test_a_resize_ends_the_trial_and_the_plan_of_the_new_limit_holds() -> None:
    model = Model(ASKED)
    model.look(trial_request="now")
    leg(model, 0.01)
    model.look(pods=(model.pod(limit=1024 * MIB),), trial_request="now")
    assert (trial_of(model).result, model.cap_buffers) == (Result.ABORTED, 2)


def test_a_trial_goes_on_after_the_operator_was_restarted() -> None:
    model = Model(ASKED)
    model.look(trial_request="now")
    leg(model, 0.01)
    for _ in range(10):
        model.look(trial_request="now")  # nothing measured yet: the new operator begins the leg anew
    assert (trial_of(model).running, model.cap_buffers) == (True, 0)
