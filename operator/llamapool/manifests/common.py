"""What every object of a model has: name, labels, owner, and a digest of what was asked for."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from llamapool.api import GROUP, KIND, VERSION, HybridModel

Manifest = dict[str, Any]

HTTP_PORT = 8080
METRICS_PORT = 9090
SERVER_CONTAINER = "server"
FETCH_CONTAINER = "fetch"
LIMITS_FILE = "limits.json"
RECORD_FILE = "record.json"
MODEL_LABEL = f"{GROUP}/model"
GENERATION_ANNOTATION = f"{GROUP}/limits-generation"
DIGEST_ANNOTATION = f"{GROUP}/desired-digest"


@dataclass(frozen=True, kw_only=True)
class Images:
    """The images of a model's pods.

    Attributes:
        server: llama-server, where a model names none.
        operator: the init container's, the operator's own.
    """

    server: str
    operator: str


def limits_name(model_name: str) -> str:
    """Return the name of a model's limits ConfigMap."""
    return f"{model_name}-limits"


def cache_name(model_name: str) -> str:
    """Return the name of the claim that a model's downloaded files are kept on."""
    return f"{model_name}-cache"


def selector_labels(model_name: str) -> dict[str, str]:
    """Return the labels that pods of a model are selected by; they can never change."""
    return {
        "app.kubernetes.io/name": "llamapool",
        "app.kubernetes.io/instance": model_name,
        "app.kubernetes.io/component": "server",
    }


def labels(model_name: str) -> dict[str, str]:
    """Return the labels of every object of a model."""
    return {**selector_labels(model_name), MODEL_LABEL: model_name}


def metadata(model: HybridModel, name: str) -> Manifest:
    """Return the metadata of an object that goes away with its model.

    The owner does not block deletion: that would need rights on the HybridModel's finalizers. A model that
    was never applied has no uid, and its objects no owner.
    """
    written: Manifest = {"name": name, "namespace": model.namespace, "labels": labels(model.name)}
    if model.uid:
        written["ownerReferences"] = [
            {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": KIND,
                "name": model.name,
                "uid": model.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
    return written


def with_digest(manifest: Manifest) -> Manifest:
    """Return the manifest with an annotation that changes whenever anything in it does.

    A field that is no longer asked for cannot be told from one that somebody else has set, except by this.
    """
    annotations = {**manifest["metadata"].get("annotations", {}), DIGEST_ANNOTATION: digest(manifest)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def digest(value: Any) -> str:
    """Return a short hash of a JSON value, the same for the same content."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
