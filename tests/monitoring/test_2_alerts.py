"""Every alert of the chart fires in its fault, and clears once the fault is gone."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.e2e.test_kills import POOL, SERVER, fill_pool
from tests.monitoring.conftest import SMALL_FILE
from tests.monitoring.queries import rules
from tests.support import bursts
from tests.support.kubectl import until
from tests.support.models import Model, manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.monitoring.prometheus import Prometheus
    from tests.support.kubectl import Kubectl

CLUSTER_ROLE = "llamapool-system-llamapool"


def patch(model: Model, spec: dict[str, Any]) -> None:
    model.kubectl(
        "patch", "hybridmodel", model.name, "--type", "merge", "--patch", json.dumps({"spec": spec})
    )


@contextmanager
def no_way_to_metrics(model: Model) -> Iterator[None]:
    """Packets to the server's metrics are refused, from pods and from the node, as by a policy."""
    address = model.pod()["status"]["podIP"]
    to = ["--destination", address, "--protocol", "tcp", "--dport", "9090"]
    rule = [*to, "--jump", "REJECT", "--reject-with", "tcp-reset"]
    for chain in ("FORWARD", "OUTPUT"):
        subprocess.run(["iptables", "--insert", chain, *rule], check=True)
    try:
        yield
    finally:
        for chain in ("FORWARD", "OUTPUT"):
            subprocess.run(["iptables", "--delete", chain, *rule], check=True)


@contextmanager
def no_right_to_read_models(operator: Kubectl) -> Iterator[None]:
    """The operator may not read HybridModels; a watch that is open goes on."""
    role = operator.get("clusterrole", CLUSTER_ROLE)
    (index,) = [number for number, rule in enumerate(role["rules"]) if rule["resources"] == ["hybridmodels"]]

    def set_verbs(verbs: list[str]) -> None:
        change = [{"op": "replace", "path": f"/rules/{index}/verbs", "value": verbs}]
        operator("patch", "clusterrole", CLUSTER_ROLE, "--type", "json", "--patch", json.dumps(change))

    set_verbs(["watch"])
    try:
        yield
    finally:
        set_verbs(role["rules"][index]["verbs"])


def test_memory_does_not_fit(prometheus: Prometheus, kubectl: Kubectl) -> None:
    # Base grows by 38 MiB a slot, headroom is 256: room for five checkpoints of 38 MiB, not for seven.
    kubectl.apply(manifest("tight", SMALL_FILE, limit="768Mi", server={"slots": 7, "contextSize": 4096}))
    model = Model(kubectl, "tight")
    model.until_condition("Ready")
    model.chat("hello")
    prometheus.until_firing("LlamapoolMemoryDoesNotFit", model="tight")
    patch(model, {"server": {"slots": 1}})
    prometheus.until_clear("LlamapoolMemoryDoesNotFit", model="tight")
    kubectl("delete", "hybridmodel", "tight")


def test_limits_not_acknowledged(prometheus: Prometheus, kubectl: Kubectl) -> None:
    # An overlay that puts something else where the server looks for its limits.
    limits = {"generation": 999, "decision": "theirs", "poolCapBytes": None, "stateBudgetBytes": None}
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "theirs"},
            "data": {"limits.json": json.dumps(limits)},
        },
        manifest(
            "deaf",
            SMALL_FILE,
            limit="1Gi",
            podTemplate={
                "spec": {
                    "containers": [
                        {
                            "name": "server",
                            "volumeMounts": [{"name": "theirs", "mountPath": "/etc/llamapool"}],
                        }
                    ],
                    "volumes": [{"name": "theirs", "configMap": {"name": "theirs"}}],
                }
            },
        ),
    )
    Model(kubectl, "deaf").until_condition("Ready")
    prometheus.until_firing("LlamapoolLimitsNotAcknowledged", model="deaf")
    kubectl(
        "patch", "hybridmodel", "deaf", "--type", "json", "--patch",
        '[{"op": "remove", "path": "/spec/podTemplate"}]',
    )  # fmt: skip
    prometheus.until_clear("LlamapoolLimitsNotAcknowledged", model="deaf")
    kubectl("delete", "hybridmodel", "deaf")


def test_oom_loop_and_fallback(prometheus: Prometheus, kubectl: Kubectl) -> None:
    kubectl.apply(
        manifest(
            "bursty",
            SMALL_FILE,
            limit="1536Mi",
            server=SERVER,
            pool=POOL,
            tuning={"memory": "Auto", "cooldownSeconds": 0},
            podTemplate=bursts.POD_TEMPLATE,
        )
    )
    model = Model(kubectl, "bursty")
    model.until_condition("LimitsApplied")
    model.chat("hello")
    for reason in ("PoolHalved", "PoolTurnedOff"):
        fill_pool(model)
        bursts.provoke_kill(model, 1500)  # over the limit whatever state is held
        bursts.until_running(model)
        until(reason, partial(has_decided, model, reason), timeout_seconds=30)
    assert prometheus.until_firing("LlamapoolOOMLoop", model="bursty")["namespace"] == kubectl.namespace
    labels = prometheus.until_firing("LlamapoolFallbackActive", model="bursty")
    assert labels["reason"] == "TurnedOffAfterOOM"
    patch(model, {"pool": {"mode": "Off"}})
    prometheus.until_clear("LlamapoolFallbackActive", model="bursty")
    prometheus.until_clear("LlamapoolOOMLoop", model="bursty")
    kubectl("delete", "hybridmodel", "bursty")


def has_decided(model: Model, reason: str) -> bool:
    return any(entry["reason"] == reason for entry in model.status().get("decisions", []))


def test_a_trial_runs_and_ends(prometheus: Prometheus, chat: Model) -> None:
    # No alert, but a fault of a kind: the panels of trials need one.
    patch(chat, {"tuning": {"trial": {"legs": 7, "legSeconds": 10, "minRequests": 1}}})
    chat.kubectl("annotate", "hybridmodel", chat.name, "llamapool.dev/trial=now")
    # Other work of the machine may slow a leg down so much that the trial is aborted, as it should be.
    ends = ("TrialPoolHelps", "TrialPoolHarms", "TrialInconclusive", "TrialAborted")
    until("an end", lambda: any(has_decided(chat, reason) for reason in ends), timeout_seconds=240)
    running = 'llamapool_model_condition_reason{condition="PoolActive", reason="TrialRunning"}'
    assert prometheus.samples(running)
    until("the pool is in use again", lambda: chat.until_condition("PoolActive"), timeout_seconds=60)


def test_ttft_breach(prometheus: Prometheus, chat: Model) -> None:
    patch(chat, {"tuning": {"targetP90Seconds": 0.001}})
    prometheus.until_firing("LlamapoolTTFTBreach", model=chat.name)
    patch(chat, {"tuning": {"targetP90Seconds": 60}})
    prometheus.until_clear("LlamapoolTTFTBreach", model=chat.name)


def test_scrape_failing_and_target_down(prometheus: Prometheus, chat: Model) -> None:
    with no_way_to_metrics(chat):
        labels = prometheus.until_firing("LlamapoolScrapeFailing", model=chat.name)
        assert labels["reason"] == "Unreachable"
        prometheus.until_firing("LlamapoolTargetDown", llamapool_dev_model=chat.name)
    prometheus.until_clear("LlamapoolScrapeFailing", model=chat.name)
    prometheus.until_clear("LlamapoolTargetDown", llamapool_dev_model=chat.name)


def test_watch_stale(prometheus: Prometheus, operator: Kubectl, chat: Model) -> None:
    del chat
    with no_right_to_read_models(operator):
        prometheus.until_firing("LlamapoolWatchStale", timeout_seconds=240)
    prometheus.until_clear("LlamapoolWatchStale")


def test_operator_absent(prometheus: Prometheus, operator: Kubectl, chat: Model) -> None:
    operator("scale", "deployment/llamapool", "--replicas", "0")
    try:
        prometheus.until_firing("LlamapoolOperatorAbsent", timeout_seconds=120)
        assert chat.chat("do you serve on?")["usage"]["completion_tokens"] > 0
    finally:
        operator("scale", "deployment/llamapool", "--replicas", "1")
    prometheus.until_clear("LlamapoolOperatorAbsent")


def test_every_alert_has_fired_and_cleared(prometheus: Prometheus) -> None:
    # No test above may be forgotten when an alert is added.
    fired = {
        labels["alertname"] for labels, _ in prometheus.samples('ALERTS{alertstate="firing"}', step_seconds=1)
    }
    assert fired == set(rules("alert"))
    until("no alert fires", lambda: not prometheus.get("alerts")["alerts"], timeout_seconds=240)
