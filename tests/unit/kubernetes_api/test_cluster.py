"""What goes over the wire to the Kubernetes API, and how its answers come back."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from llamapool.adapters.cluster import KubernetesCluster
from llamapool.errors import ClusterError, ConflictError, NotFoundError

CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "models"}}


@dataclass
class ApiServer:
    """Answers every request with one status and body, and keeps the last request."""

    status: int = 200
    answer: Any = field(default_factory=dict)
    method: str = ""
    path: str = ""
    query: dict[str, str] = field(default_factory=dict)
    content_type: str | None = None
    authorization: str | None = None
    body: Any = None
    port: int = 0


@pytest.fixture
def server() -> Iterator[ApiServer]:
    state = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            state.method, target = self.command, urlsplit(self.path)
            state.path, state.query = target.path, dict(parse_qsl(target.query))
            state.content_type = self.headers.get("Content-Type")
            state.authorization = self.headers.get("Authorization")
            state.body = json.loads(text) if text else None
            told = state.answer if isinstance(state.answer, bytes) else json.dumps(state.answer).encode()
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        state.port = http.server_port
        yield state
        http.shutdown()
        thread.join()


@pytest.fixture
def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], KubernetesCluster]:
    """A client of the API server on a port, as a kubeconfig names it."""

    def connected(port: int) -> KubernetesCluster:
        kubeconfig = tmp_path / "config"
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                    "users": [{"name": "u", "user": {"token": "secret"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        return KubernetesCluster(request_timeout_seconds=5)

    return connected


@pytest.fixture
def cluster(server: ApiServer, connect: Callable[[int], KubernetesCluster]) -> KubernetesCluster:
    return connect(server.port)


def test_an_object_is_read_with_the_users_token(server: ApiServer, cluster: KubernetesCluster) -> None:
    server.answer = CONFIGMAP
    assert cluster.get("ConfigMap", "models", "a") == CONFIGMAP
    assert (server.method, server.path) == ("GET", "/api/v1/namespaces/models/configmaps/a")
    assert server.authorization == "Bearer secret"


def test_an_object_that_is_not_there_is_none(server: ApiServer, cluster: KubernetesCluster) -> None:
    server.status = 404
    assert cluster.get("Deployment", "models", "a") is None
    assert server.path == "/apis/apps/v1/namespaces/models/deployments/a"


def published(*kinds: str) -> dict[str, Any]:
    """An OpenAPI document with a schema of each kind, as the API server names them."""
    schemas = {
        f"dev.llamapool.v1alpha1.{kind}": {
            "description": kind,
            "x-kubernetes-group-version-kind": [
                {"group": "llamapool.dev", "version": "v1alpha1", "kind": kind}
            ],
        }
        for kind in kinds
    }
    return {"components": {"schemas": {"io.k8s.meta.v1.ObjectMeta": {"type": "object"}, **schemas}}}


def test_the_schema_of_models_is_read_from_what_the_api_server_publishes(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    server.answer = published("HybridModelList", "HybridModel")
    assert cluster.model_schema()["description"] == "HybridModel"
    assert server.path == "/openapi/v3/apis/llamapool.dev/v1alpha1"


def test_a_document_without_a_schema_of_models_is_an_error_and_no_empty_schema(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    server.answer = published("Scale")
    with pytest.raises(NotFoundError, match="has no schema of HybridModel"):
        cluster.model_schema()


def test_objects_are_listed_by_label_in_one_namespace_or_in_all(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    server.answer = {"items": [CONFIGMAP]}
    assert cluster.list("Pod", "models", "a=b") == [CONFIGMAP]
    assert (server.path, server.query) == ("/api/v1/namespaces/models/pods", {"labelSelector": "a=b"})
    cluster.list("HybridModel", None)
    assert (server.path, server.query) == ("/apis/llamapool.dev/v1alpha1/hybridmodels", {})


def test_apply_says_its_content_type_and_field_manager(server: ApiServer, cluster: KubernetesCluster) -> None:
    cluster.apply(CONFIGMAP)
    assert (server.method, server.path) == ("PATCH", "/api/v1/namespaces/models/configmaps/a")
    assert server.content_type == "application/apply-patch+yaml"
    assert server.query == {"fieldManager": "llamapool", "force": "true"}
    assert server.body == CONFIGMAP


def test_status_is_applied_to_its_subresource(server: ApiServer, cluster: KubernetesCluster) -> None:
    cluster.apply_status({"kind": "HybridModel", "metadata": {"name": "m", "namespace": "n"}, "status": {}})
    assert server.path == "/apis/llamapool.dev/v1alpha1/namespaces/n/hybridmodels/m/status"
    assert server.content_type == "application/apply-patch+yaml"


def test_creating_posts_to_the_collection(server: ApiServer, cluster: KubernetesCluster) -> None:
    server.status = 201
    cluster.create(CONFIGMAP)
    assert (server.method, server.path) == ("POST", "/api/v1/namespaces/models/configmaps")
    assert server.query == {"fieldManager": "llamapool"}


def test_annotating_patches_nothing_but_annotations(server: ApiServer, cluster: KubernetesCluster) -> None:
    cluster.annotate("Pod", "models", "p", {"a": "1"})
    assert server.body == {"metadata": {"annotations": {"a": "1"}}}
    assert server.content_type == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("status", "kind"), [(404, NotFoundError), (409, ConflictError), (403, ClusterError), (500, ClusterError)]
)
def test_an_answer_other_than_success_is_a_typed_error_in_the_servers_words(
    server: ApiServer, cluster: KubernetesCluster, status: int, kind: type[ClusterError]
) -> None:
    server.status, server.answer = status, {"kind": "Status", "reason": "Why", "message": "because"}
    with pytest.raises(kind) as raised:
        cluster.create(CONFIGMAP)
    assert (raised.value.status, raised.value.reason) == (status, "Why")
    assert "because" in str(raised.value)


def test_an_answer_that_is_not_json_is_still_a_typed_error(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    server.status, server.answer = 502, b"<html>bad gateway</html>"
    with pytest.raises(ClusterError, match="bad gateway"):
        cluster.get("Pod", "models", "p")


def test_success_that_is_not_json_is_a_typed_error(server: ApiServer, cluster: KubernetesCluster) -> None:
    server.answer = b"<html>welcome</html>"
    with pytest.raises(ClusterError, match="welcome"):
        cluster.get("Pod", "models", "p")


def test_no_answer_is_a_typed_error(connect: Callable[[int], KubernetesCluster]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(ClusterError) as raised:
        connect(port).get("Pod", "models", "p")
    assert (raised.value.status, raised.value.reason) == (0, "Unreachable")
