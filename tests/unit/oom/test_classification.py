"""What ended a container, told from pod status and black box alone."""

from typing import Any

import pytest

from llamapool.domain.oom import Kill, kill_of
from llamapool.terminations import ends_of
from tests.unit.oom.statuses import CONTAINER, GIB, MIB, UID, black_box, pod, terminated

LIVENESS = {"livenessProbe": {"httpGet": {"path": "/health"}}}
STARTUP = {"startupProbe": {"failureThreshold": 60, "periodSeconds": 10}}


def kills(status: dict[str, Any]) -> list[Kill]:
    found = {kill.key: kill for kill in map(kill_of, ends_of(status)) if kill is not None}
    return list(found.values())


def classified(status: dict[str, Any]) -> list[str]:
    return [kill.label for kill in kills(status)]


@pytest.mark.parametrize(
    ("status", "label"),
    [
        pytest.param(
            pod(terminated(137, "OOMKilled", black_box())), "ContainerOOM/steady", id="killed and back"
        ),
        pytest.param(
            pod(present=terminated(137, "OOMKilled", black_box())),
            "ContainerOOM/steady",
            id="killed and down",
        ),
        pytest.param(
            pod(terminated(137, "OOMKilled", black_box(phase="loading"))),
            "ContainerOOM/loading",
            id="loading",
        ),
        pytest.param(
            pod(terminated(137, "OOMKilled", black_box(phase="sleeping"))), "ContainerOOM/steady", id="asleep"
        ),
        pytest.param(pod(terminated(137, "OOMKilled")), "ContainerOOM/unknown", id="no black box"),
        pytest.param(
            pod(terminated(137, "OOMKilled", "panic: out of memory")), "ContainerOOM/unknown", id="a text"
        ),
        pytest.param(pod(init=terminated(137, "OOMKilled")), "ContainerOOM/init", id="init"),
        pytest.param(
            pod(terminated(0, "OOMKilled", black_box(oom_kills=1))), "ChildOOM/steady", id="child, clean exit"
        ),
        pytest.param(
            pod(terminated(1, "OOMKilled", black_box(oom_kills=1))),
            "ChildOOM/steady",
            id="child, crash later",
        ),
        pytest.param(
            pod(terminated(137, "OOMKilled", black_box(limit_bytes=None)), limit=None),
            "NodeOOM/steady",
            id="node, no limit",
        ),
        pytest.param(
            pod(terminated(137, "Error", black_box(unreclaimable_bytes=2 * GIB - 8 * MIB))),
            "ContainerOOM/steady",
            id="a real one reported as Error",
        ),
        pytest.param(
            pod(terminated(137, "Error", black_box(asked_bytes=GIB))),
            "ContainerOOM/steady",
            id="asked for the rest",
        ),
        pytest.param(pod(terminated(137, "Error", black_box())), "Killed/steady", id="bare 137"),
        pytest.param(
            pod(terminated(143, "Error", black_box())), "Killed/steady", id="told to stop by somebody"
        ),
        pytest.param(
            pod(terminated(137, "Error", black_box()), spec=LIVENESS), "ProbeKill/steady", id="liveness probe"
        ),
        pytest.param(
            pod(terminated(0, "Completed", black_box()), spec=LIVENESS),
            "ProbeKill/steady",
            id="stopped in time",
        ),
        pytest.param(
            pod(terminated(137, "Error", black_box(phase="loading")), spec=STARTUP),
            "ProbeKill/loading",
            id="startup probe",
        ),
        pytest.param(
            pod(terminated(134, "Error", black_box(device_oom=True))), "DeviceOOM/steady", id="device"
        ),
        pytest.param(pod(terminated(139, "Error", black_box())), "Crash/steady", id="segmentation fault"),
        pytest.param(pod(init=terminated(1, "Error", "no such file")), "Crash/init", id="init fails"),
        pytest.param(
            pod(
                present=terminated(137, "Error", black_box()), phase="Failed", reason="Evicted", message="low"
            ),
            "Eviction/steady",
            id="evicted",
        ),
        pytest.param(
            pod(present=terminated(0, "Completed", black_box()), phase="Succeeded"),
            "Eviction/steady",
            id="evicted, and ended in time",
        ),
    ],
)
def test_an_end_is_told_from_status_and_black_box(status: dict[str, Any], label: str) -> None:
    assert classified(status) == [label]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(pod(), id="never ended"),
        pytest.param(pod(init=terminated(0, "Completed", "{}")), id="init done"),
        pytest.param(pod(present=terminated(137, "Error", black_box()), deleted=True), id="deleted, killed"),
        pytest.param(pod(present=terminated(143, "Error", black_box()), deleted=True), id="deleted, stopped"),
        pytest.param(
            pod(present=terminated(0, "Completed", black_box()), spec=LIVENESS, deleted=True), id="drained"
        ),
        pytest.param(
            pod(present=terminated(0, "Completed", black_box()), phase="Succeeded", deleted=True),
            id="deleted, ended in time",
        ),
        pytest.param(pod(terminated(0, "Completed", black_box())), id="ended by itself"),
    ],
)
def test_an_end_that_was_asked_for_is_no_kill(status: dict[str, Any]) -> None:
    assert classified(status) == []


def test_a_kill_for_memory_while_the_pod_is_being_deleted_is_still_one() -> None:
    assert classified(pod(present=terminated(137, "OOMKilled", black_box()), deleted=True)) == [
        "ContainerOOM/steady"
    ]


def test_all_containers_of_an_evicted_pod_are_one_eviction() -> None:
    status = pod(
        present=terminated(137, "Error", black_box()),
        init=terminated(0, "Completed"),
        phase="Failed",
        reason="Evicted",
    )
    assert [kill.key for kill in kills(status)] == [f"{UID}/pod/evicted"]
    assert classified(status) == ["Eviction/steady"]


def test_an_init_container_that_was_done_is_not_what_an_eviction_ended() -> None:
    status = pod(
        present=terminated(0, "Completed", black_box()), init=terminated(0, "Completed"), phase="Succeeded"
    )
    assert [kill.container for kill in map(kill_of, ends_of(status)) if kill] == ["server"]


def test_an_earlier_kill_of_a_pod_that_is_evicted_later_stays_the_kill_it_was() -> None:
    status = pod(
        terminated(137, "OOMKilled", black_box(), containerID="containerd://earlier"),
        present=terminated(137, "Error", black_box()),
        phase="Failed",
        reason="Evicted",
    )
    assert sorted(classified(status)) == ["ContainerOOM/steady", "Eviction/steady"]


def test_a_pod_that_the_kubelet_never_started_is_an_eviction() -> None:
    refused = {"metadata": {"name": "p", "uid": UID}, "status": {"phase": "Failed", "reason": "OutOfmemory"}}
    assert classified(refused) == ["Eviction/unknown"]


def test_a_pod_that_is_evicted_before_its_server_starts_is_one() -> None:
    status = pod(init=terminated(0, "Completed"), phase="Failed", reason="Evicted")
    status["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "PodInitializing"}}
    assert classified(status) == ["Eviction/unknown"]


def test_the_key_of_a_kill_is_pod_container_and_the_counter_that_it_made() -> None:
    (kill,) = kills(pod(terminated(137, "OOMKilled", black_box(oom_kills=2))))
    assert kill.key == f"{UID}/{CONTAINER}/3"


def test_the_same_end_has_the_same_key_before_and_after_the_restart() -> None:
    ended = terminated(137, "OOMKilled", black_box())
    before, after = kills(pod(present=ended)), kills(pod(ended))
    assert [kill.key for kill in before] == [kill.key for kill in after]


@pytest.mark.parametrize(
    "message", ["", "{", "[]", '{"v": 2}', '{"v": 1}', '{"v": 1, "at": "now"}', "\x00" * 512, "{" * 5000]
)
def test_a_message_that_is_no_black_box_is_unknown_and_breaks_nothing(message: str) -> None:
    (kill,) = kills(pod(terminated(137, "OOMKilled", message)))
    assert kill.black_box is None
