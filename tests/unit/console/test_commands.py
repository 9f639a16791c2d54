"""The commands for people, before a cluster in memory."""

import json
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from typer.testing import CliRunner

from llamapool.console import commands
from llamapool.errors import ClusterError, NotFoundError
from tests.unit.page.models import new, well
from tests.unit.reconcile.world import FakeCluster

PAGE = "llamapool_state_bytes 1073741824\nllamapool_cgroup_limit_bytes 2147483648\n"


@dataclass
class Connection(FakeCluster):
    """A cluster as the credentials of a kubeconfig open it."""

    namespace: str = "models"
    pages: dict[str, str] = field(default_factory=dict)

    def pod_page(self, namespace: str, name: str, port: int, page: str) -> str:
        assert (namespace, port, page) == ("models", 9090, "metrics")
        if name not in self.pages:
            raise ClusterError(503, "ServiceUnavailable", "no endpoint")
        return self.pages[name]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Connection:
    made = Connection(pages={"qwen3-5-27b-1": PAGE})
    for body in (well(), new()):
        made.objects["HybridModel", "models", body["metadata"]["name"]] = body
    labels = {"llamapool.dev/model": "qwen3-5-27b"}
    for name in ("qwen3-5-27b-1", "qwen3-5-27b-2"):
        metadata = {"name": name, "namespace": "models", "labels": labels, "resourceVersion": "1"}
        made.objects["Pod", "models", name] = {"metadata": metadata}
    monkeypatch.setattr(commands, "_connect", lambda _context: made)
    return made


def run(*arguments: str) -> str:
    done = CliRunner().invoke(commands.app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_status_lists_the_models_of_the_context_s_namespace(cluster: Connection) -> None:
    other = new("elsewhere")
    other["metadata"]["namespace"] = "other"
    cluster.objects["HybridModel", "other", "elsewhere"] = other
    assert [line.split()[0] for line in run("status").splitlines()] == ["NAME", "lfm2", "qwen3-5-27b"]
    assert "elsewhere" in run("status", "--all-namespaces")
    assert "elsewhere" in run("status", "--namespace", "other")


def test_status_of_one_model_is_told_in_detail(cluster: Connection) -> None:
    del cluster
    assert "BudgetSufficient" in run("status", "qwen3-5-27b")


def test_status_as_json_is_what_the_api_server_has(cluster: Connection) -> None:
    del cluster
    assert json.loads(run("status", "qwen3-5-27b", "-o", "json")) == well()
    assert len(json.loads(run("status", "-o", "json"))["items"]) == 2


def test_no_model_is_said_and_not_an_empty_table(cluster: Connection) -> None:
    cluster.objects.clear()
    assert "no HybridModels found" in run("status")


def test_a_model_that_is_not_there_is_named(cluster: Connection) -> None:
    del cluster
    with pytest.raises(NotFoundError, match="no HybridModel mamba in namespace models"):
        run("status", "mamba")


def test_top_shows_what_servers_report_and_why_one_does_not(cluster: Connection) -> None:
    del cluster
    _, first, second = run("top", "qwen3-5-27b").splitlines()
    assert {"qwen3-5-27b-1", "1Gi", "2Gi"} <= set(first.split())
    assert "ServiceUnavailable" in second


def test_trial_sets_the_annotation_and_nothing_else(cluster: Connection) -> None:
    said = run("trial", "qwen3-5-27b")
    model = cluster.objects["HybridModel", "models", "qwen3-5-27b"]
    assert list(model["metadata"]["annotations"]) == ["llamapool.dev/trial"]
    assert datetime.fromisoformat(model["metadata"]["annotations"]["llamapool.dev/trial"]).tzinfo is not None
    assert cluster.writes == ["annotate HybridModel"]
    assert "kubectl llamapool status" in said
