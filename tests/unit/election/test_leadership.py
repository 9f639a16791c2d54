"""One replica leads, another takes over when it is gone, and never do two act at once."""

import random
from datetime import timedelta

import pytest

from llamapool.leadership import Leadership
from tests.unit.election.replicas import SETTINGS, Link, Replicas

Replica = tuple[Leadership, Link]


@pytest.fixture
def replicas() -> Replicas:
    return Replicas()


def test_the_first_replica_to_ask_leads(replicas: Replicas) -> None:
    (a, _), (b, _) = replicas.make("a"), replicas.make("b")
    a.attempt()
    b.attempt()
    assert (a.leads, b.leads) == (True, False)
    assert replicas.spec["holderIdentity"] == "a"


def test_a_leader_that_renews_stays_the_leader(replicas: Replicas) -> None:
    (a, _), (b, _) = replicas.make("a"), replicas.make("b")
    a.attempt()
    acquired = replicas.spec["acquireTime"]
    for _ in range(100):
        replicas.seconds += SETTINGS.retry_seconds
        a.attempt()
        b.attempt()
        assert (a.leads, b.leads) == (True, False)
    assert (replicas.spec["acquireTime"], replicas.spec["leaseTransitions"]) == (acquired, 0)
    assert replicas.spec["renewTime"] > acquired


def test_a_leader_that_died_is_replaced_in_less_than_20_seconds(replicas: Replicas) -> None:
    (a, _), (b, _) = replicas.make("a"), replicas.make("b")
    a.attempt()
    b.attempt()
    assert replicas.seconds_until(lambda: b.leads, b) <= 14
    assert (replicas.spec["holderIdentity"], replicas.spec["leaseTransitions"]) == ("b", 1)


def test_a_leader_that_ends_in_good_order_is_replaced_at_the_next_attempt(replicas: Replicas) -> None:
    (a, _), (b, _) = replicas.make("a"), replicas.make("b")
    a.attempt()
    b.attempt()
    a.release()
    assert not a.leads
    assert "holderIdentity" not in replicas.spec
    assert replicas.seconds_until(lambda: b.leads, b) == SETTINGS.retry_seconds


def test_a_replica_that_stands_by_gives_nothing_back(replicas: Replicas) -> None:
    (a, _), (b, _) = replicas.make("a"), replicas.make("b")
    a.attempt()
    b.attempt()
    b.release()
    assert replicas.spec["holderIdentity"] == "a"


def test_a_restarted_container_takes_its_lease_back_at_once(replicas: Replicas) -> None:
    replicas.make("a")[0].attempt()
    restarted, _ = replicas.make("a")
    restarted.attempt()
    assert restarted.leads


def test_a_leader_that_cannot_reach_the_api_server_stops_before_another_starts(replicas: Replicas) -> None:
    (a, link), (b, _) = replicas.make("a"), replicas.make("b")
    a.attempt()
    b.attempt()
    link.cut = True
    stopped = replicas.seconds_until(lambda: not a.leads, a, b)
    assert not b.leads
    assert stopped <= SETTINGS.renew_deadline_seconds
    replicas.seconds_until(lambda: b.leads, a, b)
    link.cut = False
    a.attempt()
    assert (a.leads, b.leads) == (False, True)


def test_a_suspended_leader_finds_itself_replaced_when_it_wakes_up(replicas: Replicas) -> None:
    (a, _), (b, _) = replicas.make("a"), replicas.make("b")
    a.attempt()
    b.attempt()
    replicas.seconds_until(lambda: b.leads, b)
    assert not a.leads  # without having asked anybody
    a.attempt()
    assert not a.leads


def test_clocks_of_nodes_that_disagree_change_nothing(replicas: Replicas) -> None:
    (a, _), (b, _) = replicas.make("a"), replicas.make("b", wall_clock_ahead=timedelta(hours=3))
    a.attempt()
    for _ in range(20):
        replicas.seconds += SETTINGS.retry_seconds
        a.attempt()
        b.attempt()
        assert (a.leads, b.leads) == (True, False)


def test_of_two_that_take_a_free_lease_at_once_one_gets_it(replicas: Replicas) -> None:
    (a, _), (b, link) = replicas.make("a"), replicas.make("b")
    a.attempt()
    a.release()
    read = link.get

    def read_then_lose(kind: str, namespace: str, name: str) -> object:
        found = read(kind, namespace, name)
        a.attempt()
        return found

    link.get = read_then_lose  # type: ignore[method-assign, assignment]
    b.attempt()
    assert (a.leads, b.leads) == (True, False)


def test_through_an_hour_of_random_failures_never_two_lead(replicas: Replicas) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    made = [replicas.make(name) for name in ("a", "b", "c")]
    led: set[str] = set()
    for _ in range(7200):
        replicas.seconds += 0.5
        for replica, link in made:
            link.cut = link.cut != (chance.random() < 0.02)
            if chance.random() < 0.25:
                replica.attempt()
        leaders = [replica.identity for replica, _ in made if replica.leads]
        assert len(leaders) <= 1
        led.update(leaders)
    assert led == {"a", "b", "c"}
