"""An upgrade, a removal and a return of the chart, each with a model that goes on serving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.monitoring.load import traffic
from tests.support import chart
from tests.support.kubectl import Kubectl, run, until
from tests.upgrade.conftest import CRD, FROZEN_CRD, frozen_release, namespace, put_back_frozen_crd, serve

if TYPE_CHECKING:
    from tests.support.models import Model

UPDATE_PENDING = "{.spec.versions[0].schema.openAPIV3Schema.properties.status.properties.updatePending.type}"


def pod_uid(model: Model) -> str:
    uid: str = model.pod()["metadata"]["uid"]
    return uid


def acted_on(model: Model) -> bool:
    """The operator of this tree has looked at the model; 0.1.0 does not write this field."""
    return "updatePending" in model.status()


def test_an_upgrade_from_0_1_0_restarts_no_model_and_fails_no_request() -> None:
    with namespace("upgrade") as kubectl, frozen_release():
        assert not kubectl("get", "crd", CRD, "--output", f"jsonpath={UPDATE_PENDING}")
        model = serve(kubectl)
        model.until_condition("LimitsApplied")
        pod = pod_uid(model)
        with traffic(model, pause_seconds=0.1) as seen:
            until("answers before", lambda: seen.answered >= 5)
            chart.install()
            until("the new operator's status", lambda: acted_on(model))
            before = seen.answered
            until("answers after", lambda: seen.answered >= before + 20)
        assert seen.failures == []
        assert kubectl("get", "crd", CRD, "--output", f"jsonpath={UPDATE_PENDING}") == "boolean"
        assert (pod_uid(model), model.restarts()) == (pod, 0)


def test_an_update_that_is_asked_for_after_the_upgrade_replaces_the_pod() -> None:
    with namespace("update") as kubectl:
        with frozen_release():
            model = serve(kubectl)
            model.until_condition("LimitsApplied")
        pod = pod_uid(model)
        # Another default image of the server is what a new release brings; this one differs in name only.
        chart.install("--set", "serverImage.repository=docker.io/llamapool/absent")
        until("an update is pending", lambda: model.status().get("updatePending"))
        assert pod_uid(model) == pod
        chart.install()
        kubectl("annotate", "hybridmodel", model.name, "llamapool.dev/update=now")
        until("no update is pending", lambda: model.status().get("updatePending") is False)
        model.until_condition("LimitsApplied")
        live = kubectl.get("deployment", model.name)["metadata"]["annotations"]
        assert live["llamapool.dev/update"] == "now"


def test_an_operator_refuses_a_crd_older_than_itself_and_starts_once_that_is_upgraded() -> None:
    chart.install()
    chart.uninstall()
    kubectl = Kubectl(chart.NAMESPACE)
    put_back_frozen_crd(kubectl)
    chart.install_from(chart.ROOT / "charts" / "llamapool", "--set", "crd.install=false", wait=False)

    def refusal() -> str | None:
        pods = kubectl.list("pods", "app.kubernetes.io/component=operator")
        states = [each["lastState"] for pod in pods for each in pod["status"].get("containerStatuses", [])]
        return "".join(state.get("terminated", {}).get("message", "") for state in states) or None

    said = until("the operator has ended, and said why", refusal, timeout_seconds=120)
    assert "older than this operator: it lacks " in said
    assert "helm upgrade with crd.install=true" in said
    chart.install("--set", "crd.install=true")


def test_removal_keeps_crs_limits_and_serving_and_a_new_release_adopts_them() -> None:
    with namespace("removal") as kubectl:
        chart.install()
        model = serve(kubectl)
        model.until_condition("LimitsApplied")
        pod, claim = pod_uid(model), kubectl.get("pvc", "models")["metadata"]["uid"]
        limits = kubectl.get("configmap", f"{model.name}-limits")["data"]["limits.json"]
        with traffic(model, pause_seconds=0.1) as seen:
            until("answers before", lambda: seen.answered >= 5)
            chart.uninstall()
            assert Kubectl(chart.NAMESPACE).find("crd", CRD) is not None
            assert kubectl.find("hybridmodel", model.name) is not None
            before = seen.answered
            until("answers without an operator", lambda: seen.answered >= before + 20)
            chart.install()
            kubectl(
                "patch", "hybridmodel", model.name, "--type", "merge",
                "--patch", '{"spec": {"pool": {"mode": "Fixed", "cap": "96Mi"}}}',
            )  # fmt: skip
            until("the new operator acts", lambda: cap_of(model) == 96 << 20)
        assert seen.failures == []
        assert (pod_uid(model), model.restarts()) == (pod, 0)
        assert kubectl.get("pvc", "models")["metadata"]["uid"] == claim
        assert kubectl.get("configmap", f"{model.name}-limits")["data"]["limits.json"] != limits


def cap_of(model: Model) -> float:
    return model.metrics()["llamapool_pool_cap_bytes"]


def test_helm_test_passes_where_the_operator_works_and_fails_where_it_does_not() -> None:
    chart.install()
    report = run("helm", "test", chart.RELEASE, "--namespace", chart.NAMESPACE)
    assert "Phase:          Succeeded" in report
    Kubectl(chart.NAMESPACE)("scale", "deployment/llamapool", "--replicas", "0", "--timeout", "1m")
    until("the operator is gone", lambda: "Phase:          Failed" in helm_test_that_fails())


def helm_test_that_fails() -> str:
    try:
        return run("helm", "test", chart.RELEASE, "--namespace", chart.NAMESPACE)
    except AssertionError as error:
        return f"{error}\nPhase:          Failed"


def test_the_frozen_crd_is_the_one_that_0_1_0_shipped() -> None:
    assert "updatePending" not in FROZEN_CRD.read_text()
