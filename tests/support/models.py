"""HybridModels in a test: their volume, manifest, pods, status, and the answers of their servers."""

from __future__ import annotations

import errno
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from tests.models.hybrid import HybridShape, write_hybrid_model
from tests.support.kubectl import Kubectl, until

if TYPE_CHECKING:
    from collections.abc import Mapping

MEBIBYTE = 1 << 20
MODEL_CLAIM = "models"


def volume_folder() -> Path:
    """The folder of the test node that pods may mount; set by ``python -m tests.cluster exec``."""
    return Path(os.environ["LLAMAPOOL_LAB_STATE"]) / "volumes"


def provide_model(kubectl: Kubectl, file_name: str, shape: HybridShape) -> None:
    """A random model of ``shape`` as ``file_name`` on the claim ``models`` of the namespace."""
    folder = volume_folder() / "models"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / file_name).exists():
        write_hybrid_model(folder / file_name, shape)
    size = {"storage": "10Gi"}
    name = f"{kubectl.namespace}-{MODEL_CLAIM}"
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "capacity": size,
                "hostPath": {"path": str(folder)},
                "storageClassName": "",
                "claimRef": {"namespace": kubectl.namespace, "name": MODEL_CLAIM},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": MODEL_CLAIM},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "resources": {"requests": size},
                "storageClassName": "",
                "volumeName": name,
            },
        },
    )


_NO_ENDPOINT = (errno.ECONNREFUSED, errno.EHOSTUNREACH)
"""What a Service answers without an endpoint, and with one that has just gone."""


def _fetch(request: urllib.request.Request, timeout_seconds: float) -> bytes:
    """What a Service answers; kube-proxy may program an endpoint some seconds after its pod is ready."""

    def answered() -> bytes | None:
        try:
            with urllib.request.urlopen(request, timeout=timeout_seconds) as response:  # noqa: S310
                body: bytes = response.read()
        except urllib.error.URLError as error:
            if isinstance(error.reason, OSError) and error.reason.errno in _NO_ENDPOINT:
                return None
            raise
        return body

    return until(f"an endpoint behind {request.full_url}", answered, timeout_seconds=15)


@dataclass(frozen=True)
class Model:
    """One HybridModel on the node."""

    kubectl: Kubectl
    name: str

    def status(self) -> dict[str, Any]:
        """Its status; empty before the operator has seen it."""
        status: dict[str, Any] = self.kubectl.get("hybridmodel", self.name).get("status", {})
        return status

    def condition(self, kind: str) -> dict[str, Any] | None:
        """The condition of that type, or ``None``."""
        conditions = self.status().get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == kind), None)

    def until_condition(
        self, kind: str, status: str = "True", *, timeout_seconds: float = 180
    ) -> dict[str, Any]:
        """Wait until the condition has that status; the condition."""

        def seen() -> dict[str, Any] | None:
            condition = self.condition(kind)
            return condition if condition and condition["status"] == status else None

        return until(f"{self.name}: {kind} {status}", seen, timeout_seconds=timeout_seconds)

    def pod(self) -> dict[str, Any]:
        """Its one pod that is not being deleted."""
        (pod,) = self._living_pods()
        return pod

    def another_pod(self, before: dict[str, Any], *, timeout_seconds: float = 120) -> dict[str, Any]:
        """Wait until it has one pod, another than before; that pod. In between it may have none, or two."""
        uid = before["metadata"]["uid"]

        def replaced() -> dict[str, Any] | None:
            match self._living_pods():
                case [pod] if pod["metadata"]["uid"] != uid:
                    return pod
                case _:
                    return None

        return until(f"{self.name}: another pod", replaced, timeout_seconds=timeout_seconds)

    def _living_pods(self) -> list[dict[str, Any]]:
        pods = self.kubectl.list("pods", f"llamapool.dev/model={self.name}")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def restarts(self) -> int:
        """How often the server's container was restarted."""
        return sum(status["restartCount"] for status in self.pod()["status"]["containerStatuses"])

    def service_address(self) -> str:
        """The cluster IP of its Service."""
        address: str = self.kubectl.get("service", self.name)["spec"]["clusterIP"]
        return address

    def chat(self, prompt: str, *, max_tokens: int = 8, timeout_seconds: float = 120) -> Mapping[str, Any]:
        """The answer of ``/v1/chat/completions`` through the Service, greedy and reproducible."""
        messages = [{"role": "user", "content": prompt}]
        return self.converse(messages, max_tokens=max_tokens, timeout_seconds=timeout_seconds)

    def converse(
        self, messages: list[dict[str, str]], *, max_tokens: int = 8, timeout_seconds: float = 120
    ) -> Mapping[str, Any]:
        """The same to a whole conversation so far."""
        body = {
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": 42,
        }
        request = urllib.request.Request(  # http to a cluster IP
            f"http://{self.service_address()}:8080/v1/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        answer: Mapping[str, Any] = json.loads(_fetch(request, timeout_seconds))
        return answer

    def metrics(self) -> dict[str, float]:
        """Samples without labels that the server exports, by name."""
        page = _fetch(urllib.request.Request(f"http://{self.service_address()}:9090/metrics"), 10)
        return samples(page)

    def resize(self, memory: str) -> None:
        """Change the memory limit of its pod in place."""
        container = self.pod()["spec"]["containers"][0]["name"]
        patch = {"spec": {"containers": [{"name": container, "resources": {"limits": {"memory": memory}}}]}}
        self.kubectl(
            "patch",
            "pod",
            self.pod()["metadata"]["name"],
            "--subresource",
            "resize",
            "--patch",
            json.dumps(patch),
        )


def samples(page: bytes) -> dict[str, float]:
    """Samples without labels of a page of metrics, by name."""
    families = text_string_to_metric_families(page.decode())
    return {
        sample.name: sample.value for family in families for sample in family.samples if not sample.labels
    }


def manifest(name: str, file_name: str, *, limit: str, **spec: Any) -> dict[str, Any]:
    """A HybridModel that serves ``file_name`` of the claim ``models`` under a memory limit."""
    return {
        "apiVersion": "llamapool.dev/v1alpha1",
        "kind": "HybridModel",
        "metadata": {"name": name},
        "spec": {
            "model": {"source": {"pvc": {"claimName": MODEL_CLAIM, "path": file_name}}},
            "server": {"slots": 2, "contextSize": 2048},
            "resources": {"limits": {"memory": limit}, "requests": {"cpu": "100m", "memory": "256Mi"}},
            **spec,
        },
    }
