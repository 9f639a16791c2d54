"""Where nothing happens, nothing is written."""

from __future__ import annotations

import time
import urllib.request
from typing import TYPE_CHECKING

import pytest
from kubernetes import client, config
from prometheus_client.parser import text_string_to_metric_families

from tests.support import chart
from tests.support.audit import AuditLog
from tests.support.kubectl import Kubectl, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.models import Model

LOOKS_OF_AN_HOUR = 720
"""One look every five seconds."""


def looks(operator: Kubectl) -> float:
    """How often the operator has looked at a model."""
    (pod,) = operator.list("pods")
    with urllib.request.urlopen(f"http://{pod['status']['podIP']}:9090/metrics", timeout=10) as page:
        families = text_string_to_metric_families(page.read().decode())
    samples = [sample for family in families for sample in family.samples]
    (count,) = [sample.value for sample in samples if sample.name == "llamapool_reconcile_seconds_count"]
    return count


@pytest.mark.timeout(1200)
def test_an_hour_s_worth_of_looks_writes_nothing_but_a_status_figure_a_minute(
    create: Callable[..., Model], operator: Kubectl
) -> None:
    model = create()
    model.until_condition("Ready")
    model.chat("hello")
    model.until_condition("MemoryFits")
    model.until_condition("LimitsApplied")
    time.sleep(70)  # the figures of the start are written by then
    config.load_kube_config()
    pods = client.CoreV1Api()
    name, namespace = model.pod()["metadata"]["name"], model.kubectl.namespace
    events = len(model.kubectl.list("events"))
    log, began, started = AuditLog(), looks(operator), time.monotonic()

    # Each change of the pod is a watch event, and a reason to look: a flood of them.
    touched = 0
    while looks(operator) - began < LOOKS_OF_AN_HOUR:
        for _ in range(20):
            touched += 1
            pods.patch_namespaced_pod(
                name, namespace, {"metadata": {"annotations": {"example.org/n": str(touched)}}}
            )
            time.sleep(0.2)
    minutes = (time.monotonic() - started) / 60
    done = looks(operator) - began
    writes = log.writes(chart.OPERATOR_USER)
    print(f"{done:.0f} looks, {touched} events, {minutes:.1f} min, writes: {[w.resource for w in writes]}")  # noqa: T201

    assert {write.resource for write in writes} <= {"hybridmodels/status"}
    assert len(writes) <= minutes + 1
    assert len(model.kubectl.list("events")) == events


def test_the_audit_log_sees_what_the_operator_writes(create: Callable[..., Model]) -> None:
    log = AuditLog()
    create().until_condition("Ready")

    def seen() -> bool:
        written = {write.resource for write in log.writes(chart.OPERATOR_USER)}
        return written >= {
            "configmaps", "deployments", "services", "poddisruptionbudgets", "hybridmodels/status", "pods",
        }  # fmt: skip

    until("every kind of write", seen, timeout_seconds=30)
