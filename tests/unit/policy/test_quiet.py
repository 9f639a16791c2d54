"""Before a kill, and after: the predictive step, the way back up, and what is forgotten."""

from dataclasses import replace

import pytest

from llamapool.domain.conditions import PoolMode, TuningMode
from llamapool.domain.facts import Resize
from llamapool.domain.policy import Calm, Rise
from llamapool.domain.tuning import Tuning
from tests.unit.builders import BUFFER, GIB, MIB
from tests.unit.policy.kills import BASE, LIMIT, QUICK, Model, box, end

HOUR = 3600.0
NEAR = LIMIT - 100 * MIB


def rise(**figures: int | None) -> Rise:
    values: dict[str, int | None] = {"live": 2, "pooled": 4, "unreclaimable_bytes": NEAR, **figures}
    return Rise(pod_name="model-1", now=box(**values), bytes_per_second=8 * MIB)


def test_memory_that_will_reach_the_limit_within_a_minute_is_answered_before_it_does() -> None:
    model = Model()
    model.look(rises=(rise(),))
    assert (model.cap_buffers, model.reasons) == (2, ["PoolHalved"])
    assert "rises by 8Mi a second" in model.decisions[0].message


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(rise(unreclaimable_bytes=LIMIT - GIB), id="far from the limit"),
        pytest.param(replace(rise(), bytes_per_second=1 * MIB), id="slow"),
        pytest.param(replace(rise(), bytes_per_second=-8 * MIB), id="falling"),
        pytest.param(rise(pooled=0), id="no step frees anything"),
        pytest.param(rise(limit_bytes=None), id="no limit"),
    ],
)
def test_memory_that_is_no_danger_or_that_no_step_can_help_is_left_alone(seen: Rise) -> None:
    model = Model()
    model.look(rises=(seen,))
    assert model.reasons == []


def test_a_predictive_step_waits_for_the_cooldown_like_any_other() -> None:
    model = Model()
    model.look(rises=(rise(),))
    model.look(rises=(rise(pooled=2),))
    assert model.reasons == ["PoolHalved"]


def test_a_predictive_step_is_recommended_once_and_not_at_every_look() -> None:
    model = Model(Tuning(memory=TuningMode.RECOMMEND))
    for _ in range(5):
        model.look(rises=(rise(),))
    assert (model.cap_buffers, model.reasons) == (4, ["PoolHalved"])


def taken_back(steps: int) -> Model:
    model = Model(QUICK)
    for number in range(steps):
        pooled = (4, 2, 0)[number]
        model.look(end(number, box=box(pooled=pooled)))
    return model


def test_after_a_quiet_hour_the_last_step_is_taken_back_first() -> None:
    model = taken_back(3)
    model.look_calmly(after=HOUR - 10)
    assert model.reasons[-1] == "StateBudgetLowered"
    model.look_calmly(after=20)
    assert (model.limits.state_budget_bytes, model.cap_buffers) == (None, 0)
    assert model.reasons[-1] == "StateBudgetRaised"


def test_each_step_up_needs_twice_the_quiet_of_the_one_before() -> None:
    model = taken_back(2)
    model.look_calmly(after=HOUR + 10)
    assert (model.cap_buffers, model.reasons[-1]) == (2, "PoolRetried")
    model.look_calmly(after=HOUR + 10)
    assert model.cap_buffers == 2
    model.look_calmly(after=HOUR)
    assert (model.cap_buffers, model.reasons[-1]) == (4, "PoolRestored")


def test_a_retry_that_fails_is_followed_by_a_longer_quiet() -> None:
    model = taken_back(2)
    model.look_calmly(after=HOUR + 10)
    model.look(end(7, box=box(pooled=2)))
    assert model.cap_buffers == 0
    model.look_calmly(after=HOUR + 10)
    assert model.cap_buffers == 0
    model.look_calmly(after=HOUR)
    assert model.cap_buffers == 2


def test_the_pool_grows_back_only_where_buffers_are_missed() -> None:
    model = taken_back(1)
    model.look_calmly(after=HOUR + 10, wanted=False)
    assert model.cap_buffers == 2
    model.look_calmly(after=10)
    assert model.cap_buffers == 4


def test_a_ceiling_above_what_a_lowered_limit_leaves_goes_though_the_pool_fills_all_room() -> None:
    model = Model(QUICK)
    model.look(end(box=box(pooled=0)))
    assert model.reasons == ["StateBudgetLowered"]
    full = Calm(spare_bytes=BUFFER // 2, pool_wanted=True)
    smaller = (model.pod(limit=LIMIT // 2),)
    model.look(pods=smaller, after=HOUR + 10, calm=full)
    assert (model.limits.state_budget_bytes, model.reasons[-1]) == (None, "StateBudgetRaised")


def test_a_ceiling_that_holds_something_back_stays_while_no_buffer_is_to_spare() -> None:
    model = Model(QUICK)
    model.look(end(box=box(pooled=0)))
    ceiling_bytes = model.limits.state_budget_bytes
    model.look(after=HOUR + 10, calm=Calm(spare_bytes=BUFFER // 2, pool_wanted=True))
    assert ceiling_bytes is not None
    assert model.limits.state_budget_bytes == ceiling_bytes


def test_without_every_pods_metrics_nothing_steps_up() -> None:
    model = taken_back(1)
    model.look(after=100 * HOUR, calm=None)
    assert model.cap_buffers == 2


def test_a_degraded_model_recovers_after_a_quiet_hour() -> None:
    model = Model()
    model.look(end(box=box(live=2, pooled=0)))
    model.look(after=HOUR + 10)
    assert model.reasons == ["MemoryOutsideState", "TroublePassed"]
    assert model.facts.record is not None
    assert model.facts.record.ladder.pristine


def test_a_raised_limit_gives_again_what_was_taken_back() -> None:
    model = taken_back(3)
    model.look(pods=(model.pod(limit=2 * LIMIT),))
    assert (model.limits.state_budget_bytes, model.reasons[-1]) == (None, "TuningReset")
    assert model.cap_buffers >= 4


def test_another_model_gives_again_what_was_taken_back() -> None:
    model = taken_back(2)
    model.look(shape="another")
    assert (model.cap_buffers, model.reasons[-1]) == (4, "TuningReset")


@pytest.mark.parametrize("mode", [TuningMode.OFF, TuningMode.RECOMMEND])
def test_tuning_that_is_switched_off_gives_again_what_it_took(mode: TuningMode) -> None:
    model = taken_back(2)
    model.tune(memory=mode)
    model.look()
    assert (model.cap_buffers, model.reasons[-1]) == (4, "TuningReset")


def test_a_cap_that_is_fixed_later_holds_whatever_was_taken_back() -> None:
    model = taken_back(2)
    fixed = replace(model.facts.policy, mode=PoolMode.FIXED, cap_bytes=8 * BUFFER)
    model.facts = replace(model.facts, policy=fixed)
    model.look()
    assert model.cap_buffers == 8


def test_a_shrink_is_trimmed_for_before_the_kubelet_carries_it_out() -> None:
    model = Model()
    wanted = GIB
    shrinking = replace(
        model.pod(), resize=Resize(limit_bytes=wanted, refused=False, message="usage above the new limit")
    )
    model.look(pods=(shrinking,))
    budget = wanted - 256 * MIB - BASE
    assert model.limits.state_budget_bytes == budget
    assert model.cap_buffers == budget // BUFFER
    model.look(pods=(model.pod(limit=wanted),))
    assert model.limits.state_budget_bytes is None
    assert model.cap_buffers == budget // BUFFER


def test_a_larger_limit_counts_only_once_it_is_there() -> None:
    model = Model(slots=40)
    before = model.limits
    growing = replace(model.pod(), resize=Resize(limit_bytes=2 * LIMIT, refused=False, message=""))
    model.look(pods=(growing,))
    assert model.limits == before
    model.look(pods=(model.pod(limit=2 * LIMIT),))
    assert model.cap_buffers == 40


def test_a_refused_shrink_leaves_the_limit_that_is_set() -> None:
    model = Model()
    before = model.limits
    refused = replace(model.pod(), resize=Resize(limit_bytes=GIB, refused=True, message="not enough"))
    model.look(pods=(refused,))
    assert model.limits == before
