"""What is done about a kill: one bounded step, or none and the reason why."""

from dataclasses import replace
from typing import Any

import pytest

from llamapool.domain.conditions import Outcome, PoolMode
from llamapool.domain.facts import ServerSample
from tests.unit.builders import BUFFER, GIB, MIB
from tests.unit.policy.kills import LIMIT, OFF, QUICK, RECOMMENDING, Model, box, end

COOLDOWN = 300


def test_before_any_kill_the_cap_is_the_plans() -> None:
    assert Model().cap_buffers == 4


def test_a_kill_with_a_pool_that_mattered_halves_the_cap() -> None:
    model = Model()
    model.look(end(box=box()))
    assert (model.cap_buffers, model.reasons) == (2, ["PoolHalved"])
    entry = model.decisions[0]
    assert (entry.before, entry.after) == ({"poolCapBytes": 4 * BUFFER}, {"poolCapBytes": 2 * BUFFER})
    assert entry.evidence["poolHeldBytes"] == 4 * BUFFER
    assert "halved" in entry.message


def test_the_ladder_goes_by_single_steps_to_off_to_a_lower_budget_and_then_degraded() -> None:
    model = Model(QUICK)
    model.look(end(1, box=box()))
    model.look(end(2, box=box(pooled=2)))
    assert (model.cap_buffers, model.limits.state_budget_bytes) == (0, None)
    model.look(end(3, box=box(pooled=0)))
    assert model.limits.state_budget_bytes == 9 * BUFFER
    model.look(end(4, box=box(live=4, pooled=0)))
    assert model.reasons == ["PoolHalved", "PoolTurnedOff", "StateBudgetLowered", "NoStepLeft"]
    assert model.facts.record is not None
    assert model.facts.record.ladder.trouble is not None
    written = model.limits
    for number in range(5, 15):
        model.look(end(number, box=box(live=4, pooled=0)))
    assert model.limits == written


def test_a_pool_that_held_little_is_not_blamed_but_the_state_is() -> None:
    model = Model()
    model.look(end(box=replace(box(pooled=1), limit_bytes=16 * GIB)))
    assert (model.cap_buffers, model.reasons) == (4, ["StateBudgetLowered"])


def test_the_state_budget_goes_down_by_the_overage_in_whole_buffers() -> None:
    model = Model()
    over = LIMIT - 256 * MIB + 3 * BUFFER  # three buffers over what the plan allows
    model.look(end(box=box(live=20, pooled=0, unreclaimable_bytes=over)))
    assert model.limits.state_budget_bytes == 17 * BUFFER


def test_the_state_budget_never_falls_below_one_buffer_a_slot() -> None:
    model = Model(QUICK)
    for number in range(30):
        model.look(end(number, box=box(live=6, pooled=0, unreclaimable_bytes=LIMIT)))
    assert model.limits.state_budget_bytes == 4 * BUFFER


def test_a_kill_with_nothing_to_blame_changes_no_limit_and_says_what_is() -> None:
    model = Model()
    written = model.limits
    model.look(end(box=box(live=2, pooled=0, unreclaimable_bytes=3 * GIB)))
    assert model.limits == written
    assert model.reasons == ["MemoryOutsideState"]
    assert "other 2372Mi" in model.decisions[0].message
    assert "memory-backed volumes" in model.decisions[0].message


def test_a_kill_far_from_the_limit_says_that_the_node_may_have_been_short_instead() -> None:
    model = Model(QUICK)
    model.look(end(1, box=box(live=2, pooled=0)))  # 3.3 GiB of 4 GiB were free
    assert "SystemOOM" in model.decisions[0].message
    model.look(end(2, box=box(live=2, pooled=0, unreclaimable_bytes=LIMIT - 512 * MIB)))
    assert "SystemOOM" not in model.decisions[0].message


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        pytest.param(end(box=box(phase="loading")), "LoadingOOM", id="loading"),
        pytest.param(end(init=True, container="fetch"), "InitOOM", id="init"),
        pytest.param(end(box=box(), pod_failure="Evicted"), "Evicted", id="eviction"),
        pytest.param(end(limit_bytes=None), "NodeOOM", id="node"),
        pytest.param(end(reason="Error", box=box(), liveness=True), "ProbeKilled", id="probe"),
        pytest.param(end(exit_code=134, reason="Error", box=box(device_oom=True)), "DeviceOOM", id="device"),
        pytest.param(end(reason="Error", box=box()), "Killed", id="bare 137"),
        pytest.param(end(exit_code=139, reason="Error", box=box()), "Crashed", id="crash"),
        pytest.param(end(), "NotExplained", id="no black box"),
    ],
)
def test_an_end_that_is_not_the_pools_doing_changes_no_limit_and_is_named(ended: Any, reason: str) -> None:
    model = Model(QUICK)
    written = model.limits
    model.look(ended)
    assert model.limits == written
    assert model.reasons == [reason]
    assert model.decisions[0].outcome is Outcome.NOTHING_CHANGED


def test_one_kill_is_decided_once_however_often_it_is_seen() -> None:
    model = Model(QUICK)
    for _ in range(10):
        model.look(end(box=box()))
    assert model.reasons == ["PoolHalved"]
    assert model.facts.record is not None
    assert model.facts.record.kills == {"ContainerOOM/steady": 1}


def test_a_second_kill_within_the_cooldown_is_told_and_changes_nothing() -> None:
    model = Model()
    model.look(end(1, box=box()))
    model.look(end(2, box=box(pooled=2)), after=COOLDOWN - 5)
    assert (model.cap_buffers, model.reasons) == (2, ["PoolHalved", "CoolingDown"])
    model.look(end(3, box=box(pooled=2)), after=10)
    assert (model.cap_buffers, model.reasons[-1]) == (0, "PoolTurnedOff")


def test_a_kill_under_the_limits_of_before_says_nothing_of_those_of_now() -> None:
    model = Model(QUICK)
    model.look(end(1, box=box(generation=model.limits.generation)))
    model.look(end(2, box=box(generation=model.limits.generation - 1)))
    assert (model.cap_buffers, model.reasons) == (2, ["PoolHalved", "UnderEarlierLimits"])


def test_two_kills_in_one_look_are_two_decisions_and_one_step() -> None:
    model = Model()
    model.look(end(1, box=box()), end(2, box=box()))
    assert (model.cap_buffers, model.reasons) == (2, ["PoolHalved", "CoolingDown"])


def test_recommend_records_the_step_and_changes_nothing() -> None:
    model = Model(RECOMMENDING)
    written = model.limits
    model.look(end(box=box()))
    assert model.limits == written
    entry = model.decisions[0]
    assert (entry.reason, entry.outcome) == ("PoolHalved", Outcome.RECOMMENDED)
    assert entry.after == {"poolCapBytes": 2 * BUFFER}


def test_off_counts_the_kill_and_neither_acts_nor_records() -> None:
    model = Model(OFF)
    model.look(end(box=box()))
    assert (model.cap_buffers, model.reasons) == (4, [])
    assert model.facts.record is not None
    assert model.facts.record.kills == {"ContainerOOM/steady": 1}


def test_a_cap_that_the_user_fixed_is_not_changed() -> None:
    model = Model(mode=PoolMode.FIXED)
    model.look(end(box=box(live=4, pooled=8, state_bytes=12 * BUFFER, budget_bytes=4 * BUFFER)))
    assert (model.cap_buffers, model.reasons) == (8, ["NoStepLeft"])
    assert "spec.pool.cap" in model.decisions[0].message


def test_a_child_that_is_killed_and_the_servers_own_end_much_later_are_one_kill() -> None:
    model = Model(QUICK)
    living = model.pod(cgroup_oom_kills=1, pool_held_bytes=4 * BUFFER, state_bytes=14 * BUFFER)
    model.look(pods=(living,))
    model.look(pods=(living,))
    late = end(exit_code=0, reason="OOMKilled", container_id="running", box=box(oom_kills=1))
    model.look(late)
    assert model.reasons == ["PoolHalved"]
    assert model.facts.record is not None
    assert model.facts.record.kills == {"ChildOOM/steady": 1}


def test_kills_of_children_between_two_looks_are_one_decision_that_counts_them() -> None:
    model = Model()
    model.look(pods=(model.pod(cgroup_oom_kills=3, pool_held_bytes=4 * BUFFER, state_bytes=14 * BUFFER),))
    assert model.decisions[0].evidence["kills"] == 3
    assert model.facts.record is not None
    assert model.facts.record.kills == {"ChildOOM/steady": 3}


def test_a_server_killed_after_its_child_is_a_second_kill() -> None:
    model = Model(QUICK)
    model.look(pods=(model.pod(cgroup_oom_kills=1, pool_held_bytes=4 * BUFFER, state_bytes=14 * BUFFER),))
    model.look(end(container_id="running", box=box(pooled=2, oom_kills=1)))
    assert model.reasons == ["PoolHalved", "PoolTurnedOff"]


def test_a_crash_over_and_over_is_one_entry_that_counts() -> None:
    model = Model()
    for number in range(40):
        model.look(end(number, exit_code=139, reason="Error", box=box()))
    assert model.reasons == ["Crashed"]
    assert model.decisions[0].count == 40


def handled(model: Model) -> list[str]:
    assert model.facts.record is not None
    return [one.key for one in model.facts.record.handled]


def test_a_kill_that_can_not_be_seen_any_more_is_forgotten_and_not_before() -> None:
    model = Model(QUICK)
    first = end(1, pod_uid="uid-of-another", exit_code=139, reason="Error", box=box())
    model.look(first)
    model.look(first, end(2, exit_code=139, reason="Error"), after=7200)
    assert handled(model) == ["uid-of-another/c1/end", "uid-of-model-1/c2/end"]
    model.look(end(3, exit_code=139, reason="Error"), after=7200)
    assert handled(model) == ["uid-of-model-1/c3/end"]


def test_a_pod_that_is_killed_over_and_over_does_not_fill_the_record() -> None:
    model = Model()
    for number in range(200):
        model.look(end(number, exit_code=139, reason="Error", box=box()), after=300)
    assert len(handled(model)) <= 13
    assert model.facts.record is not None
    assert model.facts.record.kills == {"Crash/steady": 200}


def test_an_old_end_that_status_still_tells_of_is_not_decided_again() -> None:
    model = Model()
    init = end(0, init=True, container="fetch", container_id="i", exit_code=1, reason="Error")
    for number in range(1, 100):
        model.look(init, end(number, exit_code=139, reason="Error", box=box()), after=300)
    assert model.facts.record is not None
    assert model.facts.record.kills == {"Crash/init": 1, "Crash/steady": 99}


def test_a_child_that_was_killed_long_ago_is_not_decided_again_while_its_server_lives() -> None:
    model = Model()
    living = model.pod(cgroup_oom_kills=1)
    model.look(pods=(living,))
    model.look(pods=(living,), after=7200)
    model.look(end(1, pod_uid="uid-of-another", exit_code=139, reason="Error"), pods=(living,), after=7200)
    model.look(pods=(living,))
    assert model.facts.record is not None
    assert model.facts.record.kills == {"ChildOOM/steady": 1, "Crash/unknown": 1}


def test_a_record_that_was_lost_does_not_make_old_kills_new() -> None:
    model = Model(QUICK)
    model.facts = replace(model.facts, record=None)
    written = model.limits
    model.look(end(box=box()))
    model.look(end(box=box()))
    assert (model.limits, model.reasons) == (written, [])


def test_three_kills_in_ten_minutes_are_a_loop_and_the_model_is_not_ready() -> None:
    model = Model()
    assert [model.look(end(number, box=box())).looping for number in (1, 2, 3)] == [0, 0, 3]
    assert model.look(after=700).looping == 0


def test_a_kill_with_a_stale_sample_beside_it_is_judged_by_the_black_box() -> None:
    model = Model()
    model.look(end(box=box(pooled=0, live=2)), pods=(replace(model.pod(), sample=ServerSample()),))
    assert model.reasons == ["MemoryOutsideState"]


def test_limits_that_were_lost_go_on_counting_so_that_later_kills_are_of_the_limits_in_effect() -> None:
    model = Model(QUICK)
    model.look(end(1, box=box(generation=model.limits.generation)))
    model.facts = replace(model.facts, written=None)
    model.look()
    assert model.cap_buffers == 2
    model.look(end(2, box=box(pooled=2, generation=model.limits.generation)))
    assert model.reasons == ["PoolHalved", "PoolTurnedOff"]
