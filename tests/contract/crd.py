"""The CRD of this tree: the file, its schema, and its way into an apiserver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.support.chart import NAMESPACE, RELEASE
from tests.support.kubectl import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.kubectl import Kubectl

CRD_FILE = Path(__file__).parents[2] / "crds" / "llamapool.dev_hybridmodels.yaml"


def crd() -> dict[str, Any]:
    """The file, parsed."""
    parsed: dict[str, Any] = yaml.safe_load(CRD_FILE.read_text())
    return parsed


def schema() -> dict[str, Any]:
    """The schema of the one version."""
    (version,) = crd()["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def paths(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every field under ``node`` with its schema: ``spec.server.env[].name``, ``spec.resources.limits.*``."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from paths(child, f"{path}.{name}")
    if "items" in node:
        yield from paths(node["items"], f"{path}[]")
    if "additionalProperties" in node:
        yield from paths(node["additionalProperties"], f"{path}.*")


def install_crd(kubectl: Kubectl) -> None:
    """Create or update the CRD, and wait until the apiserver serves this very schema."""
    manifest = crd()
    name = manifest["metadata"]["name"]
    # Marked as Helm marks its own, so that the chart can be installed into the same cluster afterwards.
    manifest["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    manifest["metadata"]["annotations"] |= {
        "meta.helm.sh/release-name": RELEASE,
        "meta.helm.sh/release-namespace": NAMESPACE,
    }
    before, served = kubectl.find("crd", name), _served_schema(kubectl)
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=yaml.safe_dump(manifest))
    after = kubectl.get("crd", name)
    if before is None or before["metadata"]["generation"] != after["metadata"]["generation"]:
        # The OpenAPI document follows the handlers, so that a new document means that they have the schema.
        until("the schema is served", lambda: _served_schema(kubectl) not in (None, served))


def _served_schema(kubectl: Kubectl) -> str | None:
    """Something that changes with the served schema; ``None`` while there is none."""
    listing = json.loads(kubectl("get", "--raw", "/openapi/v3"))
    group: dict[str, str] | None = listing["paths"].get("apis/llamapool.dev/v1alpha1")
    return group["serverRelativeURL"] if group else None
