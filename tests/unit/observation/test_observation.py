"""What several looks tell: how memory moves, what the pool was asked, and the legs of a trial."""

from dataclasses import replace
from typing import Any

import pytest

from llamapool.domain.facts import Facts, ScrapeFailure, ServerSample
from llamapool.domain.limits import Limits
from llamapool.domain.observation import Observation
from llamapool.domain.trial import Trial
from llamapool.domain.tuning import TrialPolicy
from tests.unit.builders import GIB, MIB, facts, pod, record
from tests.unit.ttft.observed import seconds, tokens

START = 1_764_590_400.0
WRITTEN = Limits(generation=3, decision="d", pool_cap_bytes=0)
TRIAL = Trial(
    id="t",
    why="asked for",
    started_at=START,
    setting="s",
    policy=TrialPolicy(legs=7, leg_seconds=20, min_requests=1),
)


def seen(number: int = 0, **figures: Any) -> Facts:
    """One ready pod that has served so many requests."""
    values: dict[str, Any] = {
        "limits_generation": 3,
        "cgroup_limit_bytes": 2 * GIB,
        "cgroup_unreclaimable_bytes": GIB,
        "pool_hits": 0,
        "pool_misses": 0,
        "pool_declines": 0,
        "time_to_first_token": seconds(*[0.5] * number),
        "prompt_tokens": tokens(*[40] * number),
        "checkpoint_time": seconds(*[0.01] * number),
    }
    sampled = replace(pod(sample=ServerSample(**(values | figures))), container_id="c1")
    return replace(facts(sampled), written=WRITTEN)


def looks(observation: Observation, *each: Facts, every: float = 5.0) -> Facts:
    for number, one in enumerate(each):
        last = observation.take(one, now=START + number * every)
    return last


def growing(*mebibytes: int) -> list[Facts]:
    return [seen(cgroup_unreclaimable_bytes=GIB + more * MIB) for more in mebibytes]


def test_memory_that_grows_is_told_with_its_rate() -> None:
    (rise,) = looks(Observation(), *growing(0, 50, 100)).rises
    assert rise.bytes_per_second == 10 * MIB
    assert rise.now.unreclaimable_bytes == GIB + 100 * MIB


@pytest.mark.parametrize(
    "moves", [pytest.param((0, 100), id="too few"), pytest.param((100, 50, 0), id="falling"), (0, 0, 0)]
)
def test_memory_that_does_not_grow_or_was_seen_too_little_is_not_told(moves: tuple[int, ...]) -> None:
    assert looks(Observation(), *growing(*moves)).rises == ()


def test_a_restarted_container_is_observed_anew() -> None:
    before = growing(0, 50)
    after = growing(100)[0]
    restarted = replace(after, pods=(replace(after.pods[0], container_id="c2"),))
    assert looks(Observation(), *before, restarted).rises == ()


def test_buffers_that_are_missed_often_are_wanted() -> None:
    first, last = seen(), seen(pool_hits=5, pool_misses=8, pool_declines=2)
    calm = looks(Observation(), first, last).calm
    assert calm is not None
    assert (calm.pool_wanted, calm.spare_bytes) == (True, GIB - 256 * MIB)


@pytest.mark.parametrize(
    ("hits", "misses"), [pytest.param(95, 5, id="seldom"), pytest.param(1, 3, id="little asked")]
)
def test_buffers_that_are_seldom_missed_are_not_wanted(hits: int, misses: int) -> None:
    calm = looks(Observation(), seen(), seen(pool_hits=hits, pool_misses=misses)).calm
    assert calm is not None
    assert not calm.pool_wanted


def test_a_ready_pod_without_metrics_is_not_fine() -> None:
    dark = facts(pod(name="a", sample=ScrapeFailure(reason="Timeout", message="")), pod(name="b"))
    last = looks(Observation(), dark)
    assert (last.calm, last.traffic) == (None, None)


def test_a_pod_that_status_and_server_call_unlimited_has_room_for_any_step() -> None:
    unlimited = seen(cgroup_limit_bytes=None)
    free = replace(unlimited, pods=(replace(unlimited.pods[0], limit_reported=True, limit_bytes=None),))
    calm = looks(Observation(), free).calm
    assert calm is not None
    assert calm.spare_bytes is None


@pytest.mark.parametrize(
    ("figures", "changes"),
    [
        pytest.param({"cgroup_limit_bytes": None}, {"limit_bytes": 2 * GIB}, id="status has a limit"),
        pytest.param({"cgroup_limit_bytes": None}, {"limit_reported": False}, id="status says nothing"),
        pytest.param(
            {"cgroup_limit_bytes": None, "cgroup_unreclaimable_bytes": None}, {}, id="the server says nothing"
        ),
    ],
)
def test_a_limit_that_is_merely_not_known_is_not_taken_for_none(
    figures: dict[str, Any], changes: dict[str, Any]
) -> None:
    one = seen(**figures)
    unclear = replace(
        one, pods=(replace(one.pods[0], **{"limit_reported": True, "limit_bytes": None, **changes}),)
    )
    assert looks(Observation(), unclear).calm is None


def test_counters_born_at_a_value_and_reset_by_a_restart_are_no_traffic_of_the_window() -> None:
    observation = Observation()
    observation.take(seen(100), now=START)
    last = observation.take(seen(102), now=START + 5)
    assert last.traffic is not None
    assert last.traffic.requests == 2
    restarted = observation.take(seen(1), now=START + 10)
    assert restarted.traffic is not None
    assert restarted.traffic.requests == 3


def trying(number: int, **figures: Any) -> Facts:
    return replace(seen(number, **figures), record=replace(record(), trial=TRIAL))


def test_a_leg_is_measured_from_when_its_limits_have_settled_everywhere() -> None:
    observation = Observation()
    assert looks(observation, trying(0, limits_generation=2), trying(5)).measured is None
    first = observation.take(trying(10), now=START + 10)
    last = observation.take(trying(17), now=START + 25)
    assert first.measured is not None
    assert first.measured.time_to_first_token is None
    assert last.measured is not None
    assert (last.measured.leg, last.measured.seconds) == (0, 15)
    assert last.measured.time_to_first_token is not None
    assert last.measured.time_to_first_token.count == 7


def test_a_new_leg_is_measured_from_its_own_beginning() -> None:
    observation = Observation()
    for number in range(5):
        observation.take(trying(number * 10), now=START + number * 5)
    other = replace(TRIAL, id="another")
    begun = replace(trying(50), record=replace(record(), trial=other))
    assert observation.take(begun, now=START + 30).measured is None
