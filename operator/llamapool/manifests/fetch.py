"""What brings a model's files into its pods: init container, volumes, and the claim that keeps them."""

from typing import Any

from llamapool.api import HybridModel
from llamapool.manifests.common import FETCH_CONTAINER, Manifest, cache_name, metadata
from llamapool.sources import (
    ACCESS_KEY_FILES,
    CACHE_FOLDER,
    CLAIM_FOLDERS,
    SECRETS_FOLDER,
    TOKEN_FILE,
    Artifact,
    HuggingFaceSource,
    ImageSource,
    PvcSource,
    S3Source,
)

TERMINATION_LOG = "/dev/termination-log"
_CACHE_VOLUME = "cache"
_SHARED_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def cache_claim(model: HybridModel) -> Manifest | None:
    """Return the claim that downloaded files are kept on; None: there is none.

    A claim that is retained has no owner: it outlives the model, and serves the next one of that name.
    """
    cache = model.cache
    if cache is None or not model.files.downloaded:
        return None
    spec: Manifest = {
        "accessModes": [cache.access_mode],
        "resources": {"requests": {"storage": cache.size}},
    }
    if cache.storage_class_name is not None:
        spec["storageClassName"] = cache.storage_class_name
    written = metadata(model, cache_name(model.name))
    if cache.retain:
        written.pop("ownerReferences", None)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": written, "spec": spec}


def fetch_container(model: HybridModel, operator_image: str) -> Manifest | None:
    """Return the init container; None where there is nothing that it could see.

    It has the server's own cpu and memory, which costs nothing, since they never run at once, and leaves a
    pod of class Guaranteed in it.

    Args:
        model: the model.
        operator_image: the image that has `llamapool fetch`.
    """
    if all(isinstance(each.source, ImageSource) for each in model.files):
        return None
    # The kubelet would expand $(NAME) in an argument.
    asked = model.files.spec.replace("$(", "$$(")
    container: Manifest = {
        "name": FETCH_CONTAINER,
        "image": operator_image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["fetch", "--model", asked, "--termination-log", TERMINATION_LOG],
        "terminationMessagePath": TERMINATION_LOG,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            *claim_mounts(model),
            *cache_mounts(model, read_only=False),
            *(
                {"name": name, "mountPath": f"{SECRETS_FOLDER}/{role}", "readOnly": True}
                for role, name, _ in _secrets(model)
            ),
        ],
    }
    resources = {
        kind: {
            name: value for name, value in model.resources.get(kind, {}).items() if name in _SHARED_RESOURCES
        }
        for kind in ("requests", "limits")
    }
    resources = {kind: values for kind, values in resources.items() if values}
    if resources:
        container["resources"] = resources
    return container


def claim_mounts(model: HybridModel) -> list[Manifest]:
    """Return the mounts of the user's own claims."""
    return [
        {"name": each.role.value, "mountPath": CLAIM_FOLDERS[each.role], "readOnly": True}
        for each, _ in _claims(model)
    ]


def cache_mounts(model: HybridModel, *, read_only: bool) -> list[Manifest]:
    """Return the mount of the cache, if there is one."""
    if not model.files.downloaded:
        return []
    return [{"name": _CACHE_VOLUME, "mountPath": CACHE_FOLDER, **({"readOnly": True} if read_only else {})}]


def file_volumes(model: HybridModel) -> list[Manifest]:
    """Return the volumes of files and of the Secrets that they are downloaded with."""
    volumes: list[dict[str, Any]] = [
        {"name": each.role.value, "persistentVolumeClaim": {"claimName": claim_name, "readOnly": True}}
        for each, claim_name in _claims(model)
    ]
    if model.files.downloaded:
        kept = (
            {"emptyDir": {}}
            if model.cache is None
            else {"persistentVolumeClaim": {"claimName": cache_name(model.name)}}
        )
        volumes.append({"name": _CACHE_VOLUME, **kept})
    volumes += [{"name": name, "secret": secret} for _, name, secret in _secrets(model)]
    return volumes


def _claims(model: HybridModel) -> list[tuple[Artifact, str]]:
    return [(each, each.source.claim_name) for each in model.files if isinstance(each.source, PvcSource)]


def _secrets(model: HybridModel) -> list[tuple[str, str, Manifest]]:
    """Return role, volume name and source of each Secret; only the keys that are used are in the pod."""
    found: list[tuple[str, str, Manifest]] = []
    for each in model.files:
        match each.source:
            case HuggingFaceSource(token=token) if token is not None:
                items = [{"key": token.key, "path": TOKEN_FILE}]
                secret = {"secretName": token.name, "items": items}
            case S3Source(credentials_secret=name) if name is not None:
                items = [{"key": key, "path": key} for key in ACCESS_KEY_FILES]
                secret = {"secretName": name, "items": items}
            case _:
                continue
        found.append((each.role.value, f"{each.role}-secret", secret))
    return found
