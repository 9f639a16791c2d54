"""Pod statuses as kubelets of Kubernetes 1.35 write them, and black boxes as the server does."""

import json
from typing import Any

GIB, MIB = 1 << 30, 1 << 20
UID, CONTAINER = "3f1c", "containerd://aa"


def black_box(**figures: Any) -> str:
    """The termination message of a server that was ready, under 2 GiB, and half full."""
    values = {
        "v": 1,
        "at": 1764590400,
        "phase": "ready",
        "limit_bytes": 2 * GIB,
        "unreclaimable_bytes": GIB,
        "base_bytes": 400 * MIB,
        "state_bytes": 624 * MIB,
        "budget_bytes": 1392 * MIB,
        "pool_held_bytes": 300 * MIB,
        "cap_bytes": 600 * MIB,
        "generation": 3,
        "oom_kills": 0,
        "asked_bytes": 0,
        "device_oom": False,
    }
    return json.dumps(values | figures).ljust(512)


def terminated(code: int, reason: str, message: str | None = None, **fields: Any) -> dict[str, Any]:
    ended = {
        "exitCode": code,
        "reason": reason,
        "startedAt": "2026-12-01T12:00:00Z",
        "finishedAt": "2026-12-01T12:10:00Z",
        "containerID": CONTAINER,
        **fields,
    }
    return ended if message is None else {**ended, "message": message}


def pod(
    last: dict[str, Any] | None = None,
    *,
    present: dict[str, Any] | None = None,
    init: dict[str, Any] | None = None,
    limit: str | None = "2Gi",
    spec: dict[str, Any] | None = None,
    deleted: bool = False,
    **status: Any,
) -> dict[str, Any]:
    """A pod whose server ended as `last` and runs again, or ended as `present` and does not."""
    resources = {"limits": {"memory": limit}} if limit else {}
    container = {"name": "server", **(spec or {})}
    server = {
        "name": "server",
        "restartCount": 1,
        "resources": resources,
        "containerID": "containerd://bb",
        "state": {"terminated": present} if present else {"running": {}},
        "lastState": {"terminated": last} if last else {},
    }
    inits = [{"name": "fetch", "state": {}, "lastState": {"terminated": init}}] if init else []
    metadata: dict[str, Any] = {"name": "tiny-1", "uid": UID}
    if deleted:
        metadata["deletionTimestamp"] = "2026-12-01T12:09:30Z"
    return {
        "metadata": metadata,
        "spec": {"containers": [container], "initContainers": [{"name": "fetch"}]},
        "status": {"containerStatuses": [server], "initContainerStatuses": inits, **status},
    }
