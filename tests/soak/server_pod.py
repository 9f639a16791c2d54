"""A llama-server in a pod of its own with nothing set but its memory limit: its bounds need no operator."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.chart import image
from tests.support.kubectl import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.kubectl import Kubectl

LIMIT = "2Gi"
MODEL_FILE, STOCK_FILE = "soak.gguf", "stock-llama-server"
VOLUME = "/beside"
"""Where the pod has a memory-backed volume, which counts against its limit."""

_TERMINATION_LOG = "/dev/termination-log"
_LIMITS = "limits.json"
_ANSWER_SECONDS = 600.0


@dataclass(frozen=True)
class ServerPod:
    """One pod, not restarted unless its server ends."""

    kubectl: Kubectl
    name: str

    def create(self, *flags: str, stock: bool) -> None:
        """Create the pod, with upstream's server if `stock`, and wait until it answers."""
        self.kubectl.apply(_manifest(self.name, flags, stock=stock))
        until("the server ready", lambda: self.status() if self.is_ready() else None, timeout_seconds=180)

    def status(self) -> dict[str, Any]:
        """The kubelet's account of the container; empty before there is one."""
        statuses = self.kubectl.get("pod", self.name)["status"].get("containerStatuses", [])
        account: dict[str, Any] = statuses[0] if statuses else {}
        return account

    def is_ready(self) -> bool:
        return bool(self.status().get("ready"))

    def restarts(self) -> int:
        return int(self.status()["restartCount"])

    def last_end(self) -> dict[str, Any] | None:
        """How the container ended last, or None."""
        status = self.status()
        ends = [status.get(when, {}).get("terminated") for when in ("state", "lastState")]
        return next((end for end in ends if end), None)

    def address(self) -> str:
        address: str = self.kubectl.get("pod", self.name)["status"]["podIP"]
        return address

    def resize(self, memory: str) -> None:
        """Change the memory limit in place, and wait until the kubelet has."""
        resources = {"limits": {"memory": memory}}
        patch = {"spec": {"containers": [{"name": "server", "resources": resources}]}}
        self.kubectl("patch", "pod", self.name, "--subresource", "resize", "--patch", json.dumps(patch))
        until(
            f"the limit {memory}",
            lambda: self.status()["resources"]["limits"]["memory"] == memory,
            timeout_seconds=60,
        )

    def write_ceiling(self, generation: int, budget_bytes: int | None) -> None:
        """Write a ceiling of the state budget into its limits.json; the kubelet refreshes it at once."""
        limits = json.dumps({"generation": generation, "stateBudgetBytes": budget_bytes})
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name}}
        self.kubectl.apply({**config_map, "data": {_LIMITS: limits}})
        nudge = f"soak/limits-generation={generation}"
        self.kubectl("annotate", "pod", self.name, "--overwrite", nudge)

    def execute(self, script: str) -> None:
        """Run a shell script in the container.

        Raises:
            CommandError: it failed, or was killed.
        """
        self.kubectl("exec", self.name, "--container", "server", "--", "sh", "-c", script)


def metrics(address: str) -> dict[str, float]:
    """Samples without labels of the server at that address, by name without its prefix."""
    with urllib.request.urlopen(f"http://{address}:9090/metrics", timeout=5) as response:
        page = response.read().decode()
    return {
        sample.name.removeprefix("llamapool_"): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if not sample.labels
    }


def complete(address: str, prompt: str, *, tokens: int) -> str:
    """The server's continuation of a prompt, greedy.

    Raises:
        OSError: it broke off, or cannot be reached.
    """
    body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "seed": 42, "ignore_eos": True}
    request = urllib.request.Request(  # http, written here
        f"http://{address}:8080/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as response:  # noqa: S310
        text: str = json.load(response)["content"]
    return text


def _manifest(name: str, flags: tuple[str, ...], *, stock: bool) -> Mapping[str, Any]:
    environment = {
        "LLAMAPOOL_LIMITS_FILE": f"/etc/llamapool/{_LIMITS}",
        "LLAMAPOOL_TERMINATION_LOG": _TERMINATION_LOG,
        "LLAMAPOOL_BENCH_TIMES": "/dev/null",  # for the stopwatch that the stock build has in it
    }
    container = {
        "name": "server",
        "image": image("llama-server"),
        **({"command": [f"/models/{STOCK_FILE}"]} if stock else {}),
        "args": ["--model", f"/models/{MODEL_FILE}", "--threads", "1", *flags],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "terminationMessagePath": _TERMINATION_LOG,
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 1},
        "resources": {"limits": {"memory": LIMIT}, "requests": {"cpu": "100m", "memory": "256Mi"}},
        "resizePolicy": [{"resourceName": "memory", "restartPolicy": "NotRequired"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "limits", "mountPath": "/etc/llamapool", "readOnly": True},
            {"name": "beside", "mountPath": VOLUME},
        ],
    }
    volumes = [
        {"name": "models", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
        {"name": "limits", "configMap": {"name": name, "optional": True}},
        {"name": "beside", "emptyDir": {"medium": "Memory"}},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": volumes,
        },
    }
