"""Models come from a server in the cluster, by address and from a hub: served right, or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import SMALL, SMALL_FILE
from tests.support.chart import ROOT
from tests.support.kubectl import Kubectl, until
from tests.support.models import MODEL_CLAIM, Model, manifest, volume_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = "hf_of-nobody-4711"  # noqa: S105
PORT = 8000

# Serves the files of the claim with ranges, and speaks as the hub does. It logs each request.
SERVER = f"""
import hashlib, os, pathlib
from aiohttp import web

def log(request):
    print(request.method, request.path, request.headers.get("Range"), flush=True)

async def send(request):
    log(request)
    return web.FileResponse("/models/" + request.match_info["name"])

async def resolve(request):
    log(request)
    if request.headers.get("Authorization") != "Bearer " + os.environ["TOKEN"]:
        return web.Response(status=401, headers={{"X-Error-Code": "GatedRepo"}})
    name = request.match_info["name"]
    content = pathlib.Path("/models/" + name).read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    return web.Response(status=302, headers={{"Location": "/files/" + name, "X-Repo-Commit": "c0ffee",
        "X-Linked-Size": str(len(content)), "X-Linked-Etag": chr(34) + sha256 + chr(34)}})

app = web.Application()
app.router.add_get("/files/{{name}}", send)
app.router.add_get("/owner/repo/resolve/{{revision}}/{{name}}", resolve)
web.run_app(app, port={PORT}, print=None)
"""


@dataclass(frozen=True)
class Files:
    """The server of files in the test's namespace."""

    kubectl: Kubectl
    address: str

    def url(self) -> str:
        return f"{self.address}/files/{SMALL_FILE}"

    def downloads(self) -> int:
        """How often the file itself was asked for; a probe of its first byte is none."""
        lines = self.kubectl("logs", "files").splitlines()
        return sum(f"GET /files/{SMALL_FILE}" in line and "bytes=0-0" not in line for line in lines)


@pytest.fixture
def files(kubectl: Kubectl) -> Files:
    image = json.loads((ROOT / "build" / "images.json").read_text())["operator"]["reference"]
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "files",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["python", "-c", SERVER],
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}],
        "securityContext": restricted,
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
    }
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": MODEL_CLAIM, "readOnly": True}}
    kubectl("create", "secret", "generic", "hub", f"--from-literal=token={TOKEN}")
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "files", "labels": {"app": "files"}},
            "spec": {"containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 0},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "files"},
            "spec": {"selector": {"app": "files"}, "ports": [{"port": PORT}]},
        },
    )
    kubectl("wait", "pod/files", "--for=condition=Ready", "--timeout=120s")
    return Files(kubectl, f"http://{kubectl.get('service', 'files')['spec']['clusterIP']}:{PORT}")


@pytest.fixture
def cache(kubectl: Kubectl) -> Iterator[dict[str, Any]]:
    """spec.model.cache, with a volume that the claim of the model named chat is bound to."""
    name = f"{kubectl.namespace}-cache"
    folder = volume_folder() / name
    shutil.rmtree(folder, ignore_errors=True)  # volumes outlive the node: what an earlier run downloaded
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": str(folder)},
                "storageClassName": "",
                "claimRef": {"namespace": kubectl.namespace, "name": "chat-cache"},
            },
        }
    )
    yield {"size": "1Gi", "storageClassName": ""}
    kubectl("delete", "persistentvolume", name, "--wait=false")


def sha256_of_the_file() -> str:
    content = (volume_folder() / "models" / SMALL_FILE).read_bytes()
    return hashlib.sha256(content).hexdigest()


def init_status(model: Model) -> dict[str, Any]:
    (status,) = model.pod()["status"]["initContainerStatuses"]
    found: dict[str, Any] = status
    return found


def test_a_model_behind_an_address_is_served_and_not_downloaded_again_by_its_next_pod(
    create: Callable[..., Model], files: Files, cache: dict[str, Any]
) -> None:
    sha256 = sha256_of_the_file()
    model = create(model={"source": {"http": {"urls": [files.url()]}}, "sha256": sha256, "cache": cache})
    model.until_condition("Ready")
    assert model.chat("hello")["usage"]["completion_tokens"] > 0
    facts = until("facts", lambda: model.status().get("model"))
    assert (facts["sha256"], facts["architecture"]) == (sha256, "qwen35")
    assert facts["state_bytes"] >= SMALL.state_bytes
    assert files.downloads() == 1

    before = model.pod()
    model.kubectl("delete", "pod", before["metadata"]["name"], "--wait")
    model.another_pod(before)
    model.until_condition("Ready")
    assert files.downloads() == 1
    assert init_status(model)["state"]["terminated"]["exitCode"] == 0
    # The claim stays when the model goes, and serves the next one of its name.
    model.kubectl("delete", "hybridmodel", "chat", "--wait")
    assert model.kubectl.find("persistentvolumeclaim", "chat-cache") is not None


def test_a_wrong_checksum_is_in_the_pod_s_status_and_in_the_condition(
    create: Callable[..., Model], files: Files, cache: dict[str, Any]
) -> None:
    wrong = "0" * 64
    model = create(model={"source": {"http": {"urls": [files.url()]}}, "sha256": wrong, "cache": cache})

    def failed() -> dict[str, Any] | None:
        condition = model.condition("Ready")
        return condition if condition and condition["reason"] == "FetchFailed" else None

    message = until("FetchFailed", failed)["message"]
    assert sha256_of_the_file() in message
    assert wrong in message
    until("a second try", lambda: init_status(model)["restartCount"] >= 2)
    ended = (
        init_status(model).get("lastState", {}).get("terminated") or init_status(model)["state"]["terminated"]
    )
    assert wrong in json.loads(ended["message"])["error"]
    assert files.downloads() == 1, "the version that was found wrong is not downloaded again"
    assert model.condition("Ready")["status"] == "False"  # type: ignore[index]


def test_a_gated_repository_is_opened_by_a_token_that_is_nowhere_to_be_seen(
    kubectl: Kubectl, files: Files
) -> None:
    place = {"repo": "owner/repo", "files": [SMALL_FILE], "tokenSecretRef": {"name": "hub", "key": "token"}}
    hub = {"name": "fetch", "env": [{"name": "HF_ENDPOINT", "value": files.address}]}
    wanted = manifest(
        "chat",
        SMALL_FILE,
        limit="1Gi",
        model={"source": {"huggingFace": place}},
        podTemplate={"spec": {"initContainers": [hub]}},
    )
    kubectl.apply(wanted)
    model = Model(kubectl, "chat")
    model.until_condition("Ready")
    facts = until("facts", lambda: model.status().get("model"))
    assert facts["sha256"] == sha256_of_the_file()
    pod = model.pod()["metadata"]["name"]
    log = kubectl("logs", pod, "--container", "fetch")
    assert "verified, sha256" in log
    for seen in (log, kubectl("get", "pods,hybridmodels,deployments,configmaps,events", "--output", "json")):
        assert TOKEN not in seen
