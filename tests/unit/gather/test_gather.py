"""What is read from pods and Deployments, as a kubelet of Kubernetes 1.35 reports them."""

from typing import Any

import pytest

from llamapool.domain.facts import Pod
from llamapool.domain.limits import Learned, Limits, Record
from llamapool.gather import read_limits, read_pod, read_workload
from tests.unit.oom.statuses import black_box, terminated

GIB = 1 << 30
RUNNING = {"running": {"startedAt": "2026-12-01T00:00:00Z"}}


def read(status: dict[str, Any] | None, *, pod_status: dict[str, Any] | None = None) -> Pod:
    """A pod whose server's container has that status; None: the kubelet has reported nothing."""
    statuses = [] if status is None else [{"name": "server", **status}]
    pod = {
        "metadata": {"name": "p", "uid": "u", "annotations": {"llamapool.dev/limits-generation": "3"}},
        "spec": {"containers": [{"name": "server", "resources": {"limits": {"memory": "8Gi"}}}]},
        "status": {
            "containerStatuses": [{"name": "sidecar", "state": RUNNING}, *statuses],
            **(pod_status or {}),
        },
    }
    return read_pod(pod, None)


def test_the_limit_is_the_one_in_status_and_not_the_one_in_the_spec() -> None:
    pod = read({"state": RUNNING, "resources": {"limits": {"memory": "4Gi"}}})
    assert (pod.limit_reported, pod.limit_bytes) == (True, 4 * GIB)


@pytest.mark.parametrize("resources", [{}, {"requests": {"cpu": "10m"}}, {"limits": {"cpu": "1"}}])
def test_a_container_without_a_memory_limit_is_reported_to_have_none(resources: dict[str, Any]) -> None:
    pod = read({"state": RUNNING, "resources": resources})
    assert (pod.limit_reported, pod.limit_bytes) == (True, None)


def test_a_status_without_resources_reports_no_limit_at_all() -> None:
    assert not read({"state": RUNNING}).limit_reported
    assert not read(None).limit_reported


def test_a_container_that_does_not_run_is_neither_ready_nor_sized() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    pod = read({"state": waiting, "ready": True, "resources": {"limits": {"memory": "4Gi"}}})
    assert (pod.running, pod.ready, pod.limit_reported) == (False, False, False)
    assert pod.trouble == "CrashLoopBackOff: back-off 10s"


def test_a_container_that_ended_says_how() -> None:
    assert read({"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}).trouble == "OOMKilled"


def test_the_last_words_of_a_server_are_not_told_as_a_sentence() -> None:
    ended = terminated(0, "Completed", black_box())
    assert read({"state": {"terminated": ended}}).trouble == "Completed"


def test_a_pod_that_cannot_be_scheduled_says_why() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no GPU"}
    assert read(None, pod_status={"conditions": [condition]}).trouble == "Unschedulable: no GPU"


def test_a_serving_pod_is_ready_and_has_no_trouble() -> None:
    pod = read({"state": RUNNING, "ready": True, "restartCount": 2, "resources": {}})
    assert (pod.ready, pod.restarts, pod.trouble, pod.nudged_generation) == (True, 2, None, "3")


def test_a_rollout_past_its_deadline_and_pods_that_cannot_be_made_are_failures() -> None:
    conditions = [
        {"type": "Progressing", "status": "False", "message": "timed out"},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota exceeded"},
        {"type": "Available", "status": "False", "message": "not enough"},
    ]
    workload = read_workload({"spec": {"replicas": 3}, "status": {"replicas": 2, "conditions": conditions}})
    assert (workload.wanted_replicas, workload.replicas) == (3, 2)
    assert workload.failure == "timed out; quota exceeded"


def test_limits_and_record_are_read_apart_and_what_is_unreadable_is_told() -> None:
    limits = Limits(generation=3, decision="d", pool_cap_bytes=None)
    record = Record(learned=Learned(shape="s"))
    data = {"limits.json": limits.to_json(), "record.json": record.to_json()}
    assert read_limits({"data": data}) == (limits, record, ())
    read_back, none, unreadable = read_limits({"data": data | {"record.json": "{"}})
    assert (read_back, none) == (limits, None)
    assert "record.json" in unreadable[0]


def test_without_a_configmap_there_is_nothing_to_read() -> None:
    assert read_limits(None) == (None, None, ())
