"""The pod template of a model's servers."""

from typing import Any

from llamapool.api import HybridModel
from llamapool.manifests import arguments as args
from llamapool.manifests.common import (
    HTTP_PORT,
    LIMITS_FILE,
    METRICS_PORT,
    SERVER_CONTAINER,
    Images,
    Manifest,
    labels,
    limits_name,
)
from llamapool.manifests.fetch import (
    cache_mounts,
    claim_mounts,
    fetch_container,
    file_volumes,
)
from llamapool.manifests.overlay import lay_over

USER_ID = 65532
STARTUP_PERIOD_SECONDS = 2
STARTUP_SECONDS = 3600
"""A model is read from storage before its server answers; loading for up to an hour is not a failure."""
DOWNLOAD_SECONDS = 6 * 3600
"""A rollout is not called failed while a large model may still be downloading over a slow line."""
ENDPOINT_REMOVAL_SECONDS = 5
TERMINATION_GRACE_SECONDS = 300
"""On SIGTERM the server answers what is running and then ends; that long a request may take."""


def pod_template(model: HybridModel, images: Images) -> Manifest:
    """Return the pod template, the user's overlay laid over it."""
    fetch = fetch_container(model, images.operator)
    template: Manifest = {
        "metadata": {"labels": labels(model.name)},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER_ID,
                "runAsGroup": USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": TERMINATION_GRACE_SECONDS,
            "containers": [_server_container(model, images.server)],
            "volumes": _volumes(model),
        },
    }
    if fetch is not None:
        template["spec"]["initContainers"] = [fetch]
    if model.files.downloaded:
        # A new volume belongs to root; it is given to the group that writes to it.
        group = {"fsGroup": USER_ID, "fsGroupChangePolicy": "OnRootMismatch"}
        template["spec"]["securityContext"] |= group
    if model.server.image_pull_secrets:
        secrets = [{"name": name} for name in model.server.image_pull_secrets]
        template["spec"]["imagePullSecrets"] = secrets
    return lay_over(template, {"metadata": model.pod_metadata, "spec": model.pod_spec})


def _server_container(model: HybridModel, server_image: str) -> Manifest:
    container: Manifest = {
        "name": SERVER_CONTAINER,
        "image": model.server.image or server_image,
        "imagePullPolicy": model.server.pull_policy,
        "args": args.arguments(model),
        "env": args.environment(model),
        "terminationMessagePath": args.TERMINATION_LOG,
        "ports": [
            {"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        # No liveness probe: a server that is busy with a long prompt may be silent and is not to be killed.
        "startupProbe": {
            "httpGet": {"path": "/health", "port": "http"},
            "periodSeconds": STARTUP_PERIOD_SECONDS,
            "timeoutSeconds": 2,
            "failureThreshold": STARTUP_SECONDS // STARTUP_PERIOD_SECONDS,
        },
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": "http"},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        # Time for the endpoint to go from every node's rules before the server stops to accept.
        "lifecycle": {"preStop": {"sleep": {"seconds": ENDPOINT_REMOVAL_SECONDS}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            # A directory, never a subPath: only a directory is refreshed when the ConfigMap changes.
            {"name": "limits", "mountPath": args.LIMITS_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - in the container
            *claim_mounts(model),
            *cache_mounts(model, read_only=True),
        ],
    }
    if model.server.api_key is not None:
        mount = {"name": "api-key", "mountPath": args.API_KEY_FOLDER, "readOnly": True}
        container["volumeMounts"].append(mount)
    if model.resources:
        container["resources"] = {name: value for name, value in model.resources.items() if value}
    return container


def _volumes(model: HybridModel) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {
            "name": "limits",
            "configMap": {
                "name": limits_name(model.name),
                "items": [{"key": LIMITS_FILE, "path": LIMITS_FILE}],
            },
        },
        {"name": "tmp", "emptyDir": {}},
    ]
    volumes += file_volumes(model)
    api_key = model.server.api_key
    if api_key is not None:
        items = [{"key": api_key.key, "path": api_key.key}]
        volumes.append({"name": "api-key", "secret": {"secretName": api_key.name, "items": items}})
    return volumes
