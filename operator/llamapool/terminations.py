"""Reading from pod status which containers ended, and how; Events are not needed for it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from llamapool.adapters.cluster import Manifest
from llamapool.domain.black_box import parse_black_box
from llamapool.domain.facts import Resize
from llamapool.domain.oom import Termination
from llamapool.domain.quantity import parse_size
from llamapool.manifests.common import SERVER_CONTAINER

_MESSAGE_CHARACTERS = 200
_ENDED_IN_TIME = (
    "the kubelet ended the pod; the server ended in time, so that only the pod's Events may say why"
)


def ends_of(pod: Manifest) -> Iterator[Termination]:
    """Yield every end that a pod's status still tells of, of the server and of init containers."""
    status = pod.get("status", {})
    told = False
    for statuses, specs, init in (
        ("initContainerStatuses", "initContainers", True),
        ("containerStatuses", "containers", False),
    ):
        for container in status.get(statuses) or []:
            if not init and container["name"] != SERVER_CONTAINER:
                continue
            declared = pod.get("spec", {}).get(specs) or []
            spec: Mapping[str, Any] = next((one for one in declared if one["name"] == container["name"]), {})
            for state in ("lastState", "state"):
                ended = (container.get(state) or {}).get("terminated")
                if ended is not None:
                    end = _end(pod, container, spec, ended, init=init)
                    told = told or end.pod_failure is not None
                    yield end
    if status.get("phase") == "Failed" and status.get("reason") and not told:
        yield _refused(pod)


def _end(
    pod: Manifest,
    container: Mapping[str, Any],
    spec: Mapping[str, Any],
    ended: Mapping[str, Any],
    *,
    init: bool,
) -> Termination:
    metadata = pod["metadata"]
    box = parse_black_box(ended.get("message"))
    is_present = container.get("state", {}).get("terminated") == ended
    was_done = init and ended.get("exitCode") == 0  # long before the pod was ended
    pod_failure, message = _ended_by_kubelet(pod) if is_present and not was_done else (None, "")
    if box is None and not message:
        message = str(ended.get("message") or "")
    return Termination(
        pod_uid=metadata["uid"],
        pod_name=metadata["name"],
        container=container["name"],
        init=init,
        container_id=ended.get("containerID") or f"{container['name']}-{container.get('restartCount', 0)}",
        exit_code=ended.get("exitCode", 0),
        reason=ended.get("reason") or "",
        finished_at=ended.get("finishedAt") or "",
        ran_seconds=_seconds_between(ended.get("startedAt"), ended.get("finishedAt")),
        black_box=box,
        limit_bytes=memory_limit(container.get("resources") or spec.get("resources") or {}),
        liveness="livenessProbe" in spec,
        startup_seconds=_startup_seconds(spec.get("startupProbe")),
        pod_deleted="deletionTimestamp" in metadata,
        pod_failure=pod_failure,
        message=message.strip()[:_MESSAGE_CHARACTERS],
    )


def _ended_by_kubelet(pod: Manifest) -> tuple[str | None, str]:
    """Return why the kubelet ended a whole pod, such as Evicted, and its words; None: it did not by itself.

    A server that exits with 0 within the grace of an eviction leaves a pod that Succeeded, without a reason
    (kubernetes/kubernetes#141483). But a pod whose containers are always restarted succeeds in no other way.
    """
    status = pod["status"]
    if status.get("phase") == "Failed":
        return status.get("reason") or None, str(status.get("message") or "")
    restarted = pod.get("spec", {}).get("restartPolicy", "Always") == "Always"
    asked_for = "deletionTimestamp" in pod["metadata"]
    if status.get("phase") == "Succeeded" and restarted and not asked_for:
        return "Evicted", _ENDED_IN_TIME
    return None, ""


def _refused(pod: Manifest) -> Termination:
    """A pod that failed while no container of it ran: evicted, or refused by the kubelet."""
    return Termination(
        pod_uid=pod["metadata"]["uid"],
        pod_name=pod["metadata"]["name"],
        container="pod",
        init=False,
        container_id="pod",
        exit_code=0,
        reason="",
        pod_deleted="deletionTimestamp" in pod["metadata"],
        pod_failure=pod["status"]["reason"],
        message=str(pod["status"].get("message") or "")[:_MESSAGE_CHARACTERS],
    )


def memory_limit(resources: Mapping[str, Any]) -> int | None:
    """Return the memory limit of a container's resources; None: it has none."""
    limit = (resources.get("limits") or {}).get("memory")
    return None if limit is None else parse_size(limit, field="resources.limits.memory")


def resize_of(pod: Manifest) -> Resize | None:
    """Return a resize of the server's memory that is asked for and not in effect; None: there is none."""
    containers = pod.get("spec", {}).get("containers") or []
    statuses = pod.get("status", {}).get("containerStatuses") or []
    spec = next((one for one in containers if one["name"] == SERVER_CONTAINER), None)
    status = next((one for one in statuses if one["name"] == SERVER_CONTAINER), None)
    if spec is None or status is None or status.get("resources") is None:
        return None
    wanted_bytes = memory_limit(spec.get("resources") or {})
    if wanted_bytes == memory_limit(status["resources"]):
        return None
    conditions = pod["status"].get("conditions") or []
    told = [one for one in conditions if one["type"] in ("PodResizePending", "PodResizeInProgress")]
    return Resize(
        limit_bytes=wanted_bytes,
        refused=any(one.get("reason") == "Infeasible" for one in told),
        message="; ".join(str(one.get("message")) for one in told if one.get("message")),
    )


def _startup_seconds(probe: Mapping[str, Any] | None) -> int | None:
    if probe is None:
        return None
    return int(probe.get("failureThreshold", 3)) * int(probe.get("periodSeconds", 10))


def _seconds_between(started: str | None, finished: str | None) -> float | None:
    if not started or not finished:
        return None
    return (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
