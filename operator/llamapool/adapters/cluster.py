"""The Kubernetes API, as far as the operator needs it: plain dicts in and out, errors typed."""

import json
import os
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

import kubernetes
import urllib3

from llamapool.errors import ClusterError, ConflictError, NotFoundError

FIELD_MANAGER: Final = "llamapool"
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
_ERRORS: Final = {404: NotFoundError, 409: ConflictError}

_PATHS: Final = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Event": ("/api/v1", "events"),
    "HybridModel": ("/apis/llamapool.dev/v1alpha1", "hybridmodels"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "Pod": ("/api/v1", "pods"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "Service": ("/api/v1", "services"),
}

Manifest = dict[str, Any]


class Cluster(Protocol):
    """What the operator reads and writes. Every method may raise ClusterError or one of its kinds."""

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object; None if there is none."""

    def list(self, kind: str, namespace: str | None, label_selector: str = "") -> list[Manifest]:
        """Return the objects that a label selector matches, of one namespace or of all (None)."""

    def create(self, manifest: Mapping[str, Any]) -> Manifest:
        """Create an object and return it; ConflictError if it exists."""

    def apply(self, manifest: Mapping[str, Any]) -> Manifest:
        """Apply an object on the server's side, as its one field manager, and return it.

        With a `metadata.resourceVersion` in it: ConflictError if the live object has another.
        """

    def apply_status(self, manifest: Mapping[str, Any]) -> Manifest:
        """Apply the `status` of an object and return the object; NotFoundError if it is gone."""

    def annotate(self, kind: str, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """Set annotations of an object; NotFoundError if it is gone."""


class KubernetesCluster:
    """The Cluster behind the credentials that kubectl, or a pod's service account, would use."""

    def __init__(self, *, request_timeout_seconds: float, context: str | None = None) -> None:
        configuration = kubernetes.client.Configuration()
        self.namespace = "default"
        """Of the kubeconfig's context."""
        try:
            if "KUBERNETES_SERVICE_HOST" in os.environ:
                kubernetes.config.load_incluster_config(client_configuration=configuration)
            else:
                kubernetes.config.load_kube_config(client_configuration=configuration, context=context)
                contexts, active = kubernetes.config.list_kube_config_contexts()
                chosen = next((each for each in contexts if each["name"] == context), active)
                self.namespace = chosen["context"].get("namespace") or "default"
        except kubernetes.config.ConfigException as error:
            raise ClusterError(0, "Unreachable", f"no credentials for a cluster: {error}") from error
        self._client = kubernetes.client.ApiClient(configuration)
        self._timeout_seconds = request_timeout_seconds

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object; None if there is none."""
        try:
            return self._request("GET", _path(kind, namespace, name))
        except NotFoundError:
            return None

    def list(self, kind: str, namespace: str | None, label_selector: str = "") -> list[Manifest]:
        """Return the objects that a label selector matches, of one namespace or of all (None)."""
        query = {"labelSelector": label_selector} if label_selector else {}
        found = self._request("GET", _path(kind, namespace), query=query)
        items: list[Manifest] = found["items"]
        return items

    def create(self, manifest: Mapping[str, Any]) -> Manifest:
        """Create an object and return it."""
        path = _path(manifest["kind"], manifest["metadata"]["namespace"])
        return self._request(
            "POST", path, query={"fieldManager": FIELD_MANAGER}, body=manifest, content_type=_JSON
        )

    def apply(self, manifest: Mapping[str, Any]) -> Manifest:
        """Apply an object and return it."""
        return self._apply(manifest, subresource="")

    def apply_status(self, manifest: Mapping[str, Any]) -> Manifest:
        """Apply the status of an object and return the object."""
        return self._apply(manifest, subresource="/status")

    def annotate(self, kind: str, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """Set annotations of an object."""
        body = {"metadata": {"annotations": dict(annotations)}}
        query = {"fieldManager": FIELD_MANAGER}
        path = _path(kind, namespace, name)
        self._request("PATCH", path, query=query, body=body, content_type=_MERGE)

    def model_schema(self) -> Manifest:
        """Return the schema of HybridModels as the API server publishes it, in OpenAPI v3.

        Every service account may read it, other than the CustomResourceDefinition itself.

        Raises:
            ClusterError: no answer, or none that holds it.
        """
        path = f"/openapi/v3{_PATHS['HybridModel'][0]}"
        schemas = self._request("GET", path).get("components", {}).get("schemas", {})
        for schema in schemas.values():
            kinds = schema.get("x-kubernetes-group-version-kind", ())
            if any(kind.get("kind") == "HybridModel" for kind in kinds):
                found: Manifest = schema
                return found
        raise NotFoundError(404, "NotFound", f"GET {path}: has no schema of HybridModel")

    def pod_page(self, namespace: str, name: str, port: int, page: str) -> str:
        """Return what a pod answers to a GET, asked through the API server.

        Raises:
            ClusterError: no answer, or another than success.
        """
        path = f"{_path('Pod', namespace, name)}:{port}/proxy/{page}"
        return self._send("GET", path).decode(errors="replace")

    def _apply(self, manifest: Mapping[str, Any], *, subresource: str) -> Manifest:
        metadata = manifest["metadata"]
        return self._request(
            "PATCH",
            _path(manifest["kind"], metadata["namespace"], metadata["name"]) + subresource,
            # The operator is the one authority on the fields it writes; others keep the fields they own.
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            body=manifest,
            content_type=_APPLY,
        )

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str | None = None,
    ) -> Manifest:
        """Send one request and return the object that it is answered with."""
        text = self._send(method, path, query=query, body=body, content_type=content_type, accept=_JSON)
        try:
            answer: Manifest = json.loads(text)
        except ValueError as error:
            raise ClusterError(200, "Malformed", f"{method} {path}: not JSON: {text[:200]!r}") from error
        return answer

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        accept: str = "*/*",
    ) -> bytes:
        """Send one request; the client's typed calls would force every object through its models."""
        headers = {"Accept": accept}
        if content_type is not None:
            headers["Content-Type"] = content_type
        request = self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=headers,
            body=None if body is None else dict(body),
            auth_settings=["BearerToken"],
        )
        try:
            response = self._client.call_api(*request, _request_timeout=self._timeout_seconds)
            text: bytes = response.read()
        except (urllib3.exceptions.HTTPError, kubernetes.client.ApiException) as error:
            raise ClusterError(0, "Unreachable", f"{method} {path}: no answer: {error}") from error
        if response.status >= 300:  # noqa: PLR2004 - HTTP
            raise _error_of(response.status, text, f"{method} {path}")
        return text


def _path(kind: str, namespace: str | None, name: str | None = None) -> str:
    group, plural = _PATHS[kind]
    path = (
        f"{group}/{plural}"
        if namespace is None
        else f"{group}/namespaces/{quote(namespace, safe='')}/{plural}"
    )
    return path if name is None else f"{path}/{quote(name, safe='')}"


def _error_of(status: int, text: bytes, request: str) -> ClusterError:
    """Return the typed error for an answer; the API server explains itself in a Status object."""
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {}
    told = answer if isinstance(answer, dict) else {}
    reason, message = told.get("reason") or "Unknown", told.get("message") or repr(text[:200])
    return _ERRORS.get(status, ClusterError)(status, reason, f"{request}: {status} {reason}: {message}")
