"""The operator dies before or after any write: what it left is finished, and nothing is done twice."""

import itertools
from collections.abc import Callable
from datetime import timedelta

import pytest

from llamapool.domain.limits import Record
from tests.unit.reconcile.world import Killed, World

WRITES = 60
"""More than a run has; a run that is shorter than its kill would come at is not interrupted."""


def run(world: World) -> None:
    """A model is made, its pod starts, a checkpoint is seen, its server is killed twice, ten minutes apart.

    A dead operator is started again each time.
    """
    settle_through_kills(world)
    world.start_pod()
    settle_through_kills(world)
    world.seen_checkpoint = True
    settle_through_kills(world)
    for _ in range(2):
        world.now += timedelta(seconds=600)
        world.kill_server()
        settle_through_kills(world)


def settle_through_kills(world: World) -> None:
    while True:
        try:
            world.settle()
        except Killed:
            world.reconciler = world.operator()
        else:
            return


def killing_at(number: int) -> Callable[[], None]:
    counted = itertools.count(1)

    def hook() -> None:
        if next(counted) == number:
            raise Killed

    return hook


def outcome(world: World) -> tuple[object, ...]:
    decisions = [(entry["reason"], entry["from"], entry["to"]) for entry in world.status["decisions"]]
    record = Record.from_json(world.configmap["data"]["record.json"])
    kills = dict(record.kills), [one.key for one in record.handled]
    told = sorted(event["metadata"]["name"] for event in world.events)
    listed = sorted(f"tiny.{entry['id']}" for entry in world.status["decisions"])
    limits = world.written.generation, world.written.pool_cap_bytes
    return *limits, decisions, kills, told == listed, len(told)


@pytest.fixture
def undisturbed() -> tuple[object, ...]:
    world = World()
    run(world)
    world.executor.shutdown()
    return outcome(world)


def test_undisturbed_four_decisions_are_made_and_told(undisturbed: tuple[object, ...]) -> None:
    generation, cap, decisions, kills, told_as_listed, told = undisturbed
    assert (generation, cap, told_as_listed, told) == (5, 0, True, 4)
    assert isinstance(decisions, list)
    assert [reason for reason, _, _ in reversed(decisions)] == [
        "PoolCapChanged",
        "PoolCapChanged",
        "PoolHalved",
        "PoolTurnedOff",
    ]
    assert kills == (
        {"ContainerOOM/steady": 2},
        ["uid-of-pod/containerd://0/1", "uid-of-pod/containerd://1/1"],
    )


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
@pytest.mark.parametrize("number", range(1, WRITES))
def test_a_kill_at_any_write_changes_neither_generation_nor_decisions_nor_events(
    world: World, undisturbed: tuple[object, ...], moment: str, number: int
) -> None:
    setattr(world.cluster, moment, killing_at(number))
    run(world)
    assert outcome(world) == undisturbed


def test_the_interrupted_runs_cover_every_write(world: World) -> None:
    run(world)
    assert len(world.cluster.writes) < WRITES


def test_a_kill_at_every_single_write_still_converges(world: World, undisturbed: tuple[object, ...]) -> None:
    world.cluster.after_write = lambda: (_ for _ in ()).throw(Killed)
    run(world)
    assert outcome(world) == undisturbed
