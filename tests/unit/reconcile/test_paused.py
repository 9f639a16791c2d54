"""A paused model is looked at and told of, and nothing of it is changed."""

from datetime import timedelta

import pytest

from tests.unit.reconcile.world import World


def pause(world: World, value: str = "true") -> None:
    world.model["metadata"].setdefault("annotations", {})["llamapool.dev/paused"] = value


def test_a_paused_model_keeps_its_limits_when_its_pod_is_resized(world: World) -> None:
    world.start_pod_and_settle()
    before = world.written
    pause(world)
    world.set_limit("4Gi")
    world.settle()
    assert world.written == before
    assert set(world.cluster.writes[-1:]) == {"status HybridModel"}
    assert world.status["paused"]
    assert world.status["memory"]["limit"] == "4Gi"


def test_what_somebody_changes_of_a_paused_model_stays(world: World) -> None:
    world.start_pod_and_settle()
    pause(world)
    world.settle()
    deployment = world.cluster.objects["Deployment", "models", "tiny"]
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "debugging:1"
    writes = len(world.cluster.writes)
    world.settle()
    assert world.cluster.writes[writes:] == []


def test_a_model_that_is_paused_before_it_was_made_is_not_made(world: World) -> None:
    pause(world)
    world.settle()
    assert set(world.cluster.writes) == {"status HybridModel"}
    assert world.condition("Ready")[0] == "False"


def test_what_was_left_undone_is_done_once_the_model_is_no_longer_paused(world: World) -> None:
    world.start_pod_and_settle()
    pause(world)
    world.set_limit("4Gi")
    world.settle()
    generation = world.written.generation
    pause(world, "false")
    world.settle()
    assert world.written.generation == generation + 1
    assert "paused" not in world.status


@pytest.mark.parametrize("value", ["yes", "", "True"])
def test_a_value_that_is_neither_true_nor_false_is_refused_by_name(world: World, value: str) -> None:
    pause(world, value)
    world.look()
    assert world.condition("Ready") == ("False", "SpecInvalid")
    assert "llamapool.dev/paused" in world.status["conditions"][0]["message"]


def test_a_model_that_is_paused_while_a_trial_has_its_pool_off_gets_its_cap_back_first(world: World) -> None:
    world.seen_checkpoint, world.requests = True, 0
    world.set_model(tuning={"trial": {"legs": 7, "legSeconds": 10, "minRequests": 1}})
    world.start_pod_and_settle()
    cap_bytes = world.written.pool_cap_bytes
    world.model["metadata"]["annotations"] = {"llamapool.dev/trial": "now"}
    while world.written.pool_cap_bytes:
        world.now += timedelta(seconds=5)
        world.requests += 1
        world.look()
    pause(world)
    world.settle()
    assert world.written.pool_cap_bytes == cap_bytes
    assert world.condition("LimitsApplied")[0] == "True"
    assert world.status["trial"]["result"] == "Aborted"
    assert "paused" in world.status["trial"]["message"]
    assert [event["reason"] for event in world.events][-1:] == ["TrialAborted"]
    given_back = world.written
    world.set_limit("4Gi")
    world.settle()
    assert world.written == given_back
