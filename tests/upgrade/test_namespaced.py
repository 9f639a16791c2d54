"""An operator for some namespaces has no rights in any other, and does nothing there."""

from __future__ import annotations

import pytest

from tests.support import chart
from tests.support.kubectl import CommandError, Kubectl, until
from tests.upgrade.conftest import namespace, serve


def made_by_the_operator(kubectl: Kubectl) -> list[str]:
    return [
        f"{kind}/{found['metadata']['name']}"
        for kind in ("deployments", "services", "configmaps", "pods", "poddisruptionbudgets")
        for found in kubectl.list(kind, "llamapool.dev/model")
    ]


def test_a_namespaced_operator_serves_its_namespace_and_touches_nothing_outside() -> None:
    with namespace("inside") as inside, namespace("outside") as outside:
        chart.install("--set", "watchNamespaces={inside}")
        theirs, mine = serve(outside), serve(inside)
        mine.until_condition("LimitsApplied")
        assert mine.chat("hello")["usage"]["completion_tokens"] > 0
        assert theirs.status() == {}
        assert made_by_the_operator(outside) == []
        for verb, kind in (("list", "hybridmodels"), ("get", "pods"), ("create", "deployments")):
            with pytest.raises(CommandError, match=r"exit 1\nno"):
                outside("auth", "can-i", verb, kind, "--as", chart.OPERATOR_USER)
        roles = outside.list("clusterroles", "app.kubernetes.io/name=llamapool")
        assert [role["metadata"]["name"] for role in roles] == []


def test_its_watch_is_alive_and_follows_changes() -> None:
    with namespace("watched") as watched:
        chart.install("--set", "watchNamespaces={watched}")
        model = serve(watched)
        model.until_condition("LimitsApplied")
        watched("patch", "hybridmodel", model.name, "--type", "merge", "--patch", '{"spec": {"replicas": 0}}')
        until("no pod", lambda: watched.get("deployment", model.name)["spec"]["replicas"] == 0)
        (operator,) = Kubectl(chart.NAMESPACE).list("pods", "app.kubernetes.io/component=operator")
        assert operator["status"]["containerStatuses"][0]["restartCount"] == 0
