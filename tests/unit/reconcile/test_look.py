"""What one look after the other makes of a model."""

from datetime import timedelta

import pytest

from llamapool.adapters.metrics import Metrics
from llamapool.errors import ClusterError, ConflictError
from tests.unit.builders import BUFFER, MIB
from tests.unit.reconcile.world import World


def test_a_new_model_gets_its_limits_before_anything_that_mounts_them(world: World) -> None:
    world.look()
    assert world.cluster.writes == [
        "create ConfigMap",
        "apply Service",
        "apply Deployment",
        "apply PodDisruptionBudget",
        "status HybridModel",
    ]
    assert (world.written.generation, world.written.pool_cap_bytes) == (1, None)


def test_a_limit_that_the_pods_status_reports_becomes_the_cap(world: World) -> None:
    world.look()
    world.start_pod()
    world.settle()
    assert (world.written.generation, world.written.pool_cap_bytes) == (2, 128 * MIB)
    assert world.pod["metadata"]["annotations"] == {"llamapool.dev/limits-generation": "2"}
    assert world.condition("LimitsApplied") == ("True", "Acknowledged")
    assert world.status["memory"]["limit"] == "2Gi"


def test_a_checkpoint_that_the_server_reports_moves_the_cap_to_whole_buffers(world: World) -> None:
    world.start_pod_and_settle()
    world.seen_checkpoint = True
    world.settle()
    assert world.written.pool_cap_bytes == 4 * BUFFER
    assert world.status["pool"]["cap"] == "600Mi"


def test_a_resize_moves_the_cap_without_touching_the_deployment(world: World) -> None:
    world.start_pod_and_settle()
    before = world.cluster.get("Deployment", "models", "tiny")
    world.set_limit("4Gi")
    world.settle()
    assert world.written.pool_cap_bytes == 256 * MIB
    assert world.cluster.get("Deployment", "models", "tiny") == before


def test_the_steady_state_writes_nothing(world: World) -> None:
    world.start_pod_and_settle()
    writes = len(world.cluster.writes)
    for _ in range(100):
        world.now += timedelta(seconds=5)
        assert world.look()
    assert len(world.cluster.writes) == writes


def test_every_decision_is_told_once_and_listed_in_status(world: World) -> None:
    world.start_pod_and_settle()
    world.seen_checkpoint = True
    world.settle()
    ids = [entry["id"] for entry in world.status["decisions"]]
    assert len(ids) == 2
    assert ids[0] == world.written.decision
    assert {event["metadata"]["name"] for event in world.events} == {f"tiny.{one}" for one in ids}
    assert all(event["reason"] == "PoolCapChanged" for event in world.events)


def test_a_look_is_unsettled_until_the_server_has_acknowledged(world: World) -> None:
    world.look()
    world.start_pod()
    assert not world.look()
    assert world.look()


def test_an_acknowledgement_that_never_comes_is_not_awaited_for_ever(world: World) -> None:
    world.start_pod_and_settle()
    world.set_limit("4Gi")
    world.look()
    world.down = True
    world.now += timedelta(seconds=60)
    assert world.look()
    assert world.condition("LimitsApplied") == ("Unknown", "MetricsUnavailable")


def test_moving_figures_are_written_at_most_once_a_minute(world: World) -> None:
    world.start_pod_and_settle()
    world.status["pool"]["heldBytes"] = 1  # the live figure differs from what is seen now
    writes = len(world.cluster.writes)
    world.now += timedelta(seconds=5)
    world.look()
    assert len(world.cluster.writes) == writes
    world.now += timedelta(seconds=60)
    world.look()
    assert world.cluster.writes[writes:] == ["status HybridModel"]


def test_a_server_that_bounds_the_cap_itself_is_reported(world: World) -> None:
    world.cap_bound = 64 * MIB
    world.start_pod_and_settle()
    assert world.condition("LimitsApplied") == ("False", "BoundedByServer")


def test_a_spec_that_cannot_be_used_is_told_and_nothing_is_made(world: World) -> None:
    world.set_model(server={"extraArgs": ["--parallel", "8"]})
    world.look()
    assert world.condition("Ready") == ("False", "SpecInvalid")
    assert "spec.server.extraArgs[0]" in world.status["conditions"][0]["message"]
    assert world.cluster.writes == ["status HybridModel"]


def test_a_checksum_that_nothing_would_compare_is_told_and_nothing_is_made(world: World) -> None:
    world.set_model(model={"source": {"image": {"path": "/m.gguf"}}, "sha256": "0" * 64})
    world.look()
    assert world.condition("Ready") == ("False", "FieldUnsupported")
    assert world.cluster.writes == ["status HybridModel"]


def test_a_spec_that_breaks_later_leaves_the_decisions_in_status(world: World) -> None:
    world.start_pod_and_settle()
    told = world.status["decisions"]
    world.set_model(pool={"mode": "Fixed"})
    world.settle()
    assert world.condition("Ready") == ("False", "SpecInvalid")
    assert world.status["decisions"] == told


def test_an_object_of_somebody_else_is_not_taken_over(world: World) -> None:
    theirs = {
        "kind": "Service",
        "metadata": {"name": "tiny", "namespace": "models", "labels": {"app": "theirs"}},
    }
    world.cluster.create(theirs)
    world.look()
    assert world.condition("Ready") == ("False", "NameTaken")
    assert world.cluster.writes == ["create Service", "status HybridModel"]


def test_a_spec_that_the_api_server_refuses_is_told_in_its_words(world: World) -> None:
    world.cluster.refused.add("Deployment")
    world.look()
    assert world.condition("Ready") == ("False", "ClusterRefused")
    assert "Deployment is forbidden" in world.status["conditions"][0]["message"]


def test_without_the_right_to_nudge_the_rest_is_done(world: World) -> None:
    world.cluster.refused.add("Pod")
    world.start_pod_and_settle()
    assert world.written.pool_cap_bytes == 128 * MIB
    assert "annotations" not in world.pod["metadata"]
    assert world.condition("LimitsApplied") == ("True", "Acknowledged")


def test_an_answer_that_is_neither_success_nor_refusal_ends_the_look(world: World) -> None:
    def unavailable() -> None:
        raise ClusterError(503, "ServiceUnavailable", "try later")

    world.cluster.before_write = unavailable
    with pytest.raises(ClusterError):
        world.look()


def test_limits_that_somebody_else_wrote_meanwhile_are_not_overwritten(world: World) -> None:
    world.look()
    world.start_pod()
    stale = world.cluster.get("ConfigMap", "models", "tiny-limits")
    assert stale is not None
    world.cluster.apply(
        {**stale, "metadata": {"name": "tiny-limits", "namespace": "models", "labels": {"a": "b"}}}
    )
    real_get = world.cluster.get
    world.cluster.get = lambda kind, *key: stale if kind == "ConfigMap" else real_get(kind, *key)  # type: ignore[method-assign]
    with pytest.raises(ConflictError):
        world.look()
    assert world.written.generation == 1


def test_limits_that_are_gone_are_written_again(world: World) -> None:
    world.start_pod_and_settle()
    del world.cluster.objects["ConfigMap", "models", "tiny-limits"]
    world.settle()
    assert world.written.pool_cap_bytes == 128 * MIB


def test_limits_that_cannot_be_read_are_begun_anew(world: World) -> None:
    world.start_pod_and_settle()
    world.configmap["data"]["record.json"] = "{"
    generation = world.written.generation
    world.settle()
    assert world.written.generation == generation
    assert "learned" in world.configmap["data"]["record.json"]


def test_a_model_that_is_gone_or_going_is_left_alone(world: World) -> None:
    world.model["metadata"]["deletionTimestamp"] = "2026-12-01T12:00:00Z"
    assert world.look()
    del world.cluster.objects["HybridModel", "models", "tiny"]
    assert world.look()
    assert world.cluster.writes == []


def test_a_deployment_that_somebody_changed_is_set_right(world: World) -> None:
    world.start_pod_and_settle()
    live = world.cluster.objects["Deployment", "models", "tiny"]
    live["spec"]["template"]["spec"]["containers"][0]["args"].append("--verbose")
    world.settle()
    assert "--verbose" not in str(world.cluster.objects["Deployment", "models", "tiny"])


def test_a_model_that_is_forgotten_leaves_no_series(world: World) -> None:
    world.start_pod_and_settle()
    assert "tiny" in str(list(world.metrics.registry.collect()))
    world.reconciler.forget(("models", "tiny"))
    assert "tiny" not in str(list(world.metrics.registry.collect()))


def test_scrapes_that_fail_are_counted_by_model_and_reason(world: World) -> None:
    world.start_pod_and_settle()
    world.down = True
    world.look()
    labels = {"namespace": "models", "model": "tiny", "reason": "Timeout"}
    assert world.metrics.registry.get_sample_value("llamapool_scrape_errors_total", labels) == 1


def test_decisions_are_counted_when_they_are_made_and_never_again(world: World) -> None:
    world.start_pod_and_settle()
    world.reconciler = world.operator()
    world.settle()
    labels = {"namespace": "models", "model": "tiny", "reason": "PoolCapChanged"}
    assert world.metrics.registry.get_sample_value("llamapool_decisions_total", labels) == 1


def test_a_server_that_crashes_over_and_over_is_one_event_and_one_entry_that_counts(world: World) -> None:
    world.start_pod_and_settle()
    for _ in range(30):
        world.crash_server()
        world.settle()
    told = [event for event in world.events if event["reason"] == "Crashed"]
    assert len(told) == 1
    assert world.status["decisions"][0]["reason"] == "Crashed"
    labels = {"namespace": "models", "model": "tiny", "cause": "Crash", "phase": "steady"}
    assert world.metrics.registry.get_sample_value("llamapool_oom_total", labels) == 30


def test_kills_that_were_counted_stay_counted_over_a_restart_of_the_operator(world: World) -> None:
    world.start_pod_and_settle()
    world.kill_server()
    world.settle()
    world.metrics = Metrics()
    world.reconciler = world.operator()
    world.settle()
    labels = {"namespace": "models", "model": "tiny", "cause": "ContainerOOM", "phase": "steady"}
    assert world.metrics.registry.get_sample_value("llamapool_oom_total", labels) == 1


def test_a_trial_that_is_asked_for_is_shown_while_it_runs_and_puts_the_cap_back(world: World) -> None:
    world.seen_checkpoint = True
    world.start_pod_and_settle()
    world.model["metadata"]["annotations"] = {"llamapool.dev/trial": "now"}
    world.settle()
    assert world.status["trial"]["result"] == "Running"
    world.crash_server()
    world.settle()
    assert world.status["trial"]["result"] == "Aborted"
    assert world.written.pool_cap_bytes == 4 * BUFFER
