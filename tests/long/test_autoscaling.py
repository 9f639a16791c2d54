"""A HorizontalPodAutoscaler owns the number of replicas, and the operator never takes it back."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.support import chart
from tests.support.audit import AuditLog
from tests.support.kubectl import Kubectl, until
from tests.support.metrics_server import metrics_server
from tests.support.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.models import Model


@pytest.fixture
def measured() -> Iterator[None]:
    with metrics_server():
        yield


def autoscaler(name: str) -> dict[str, object]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "llamapool.dev/v1alpha1", "kind": "HybridModel", "name": name},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "150m"}},
                }
            ],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 0},
                # A machine with other work makes the measured load dip for a moment.
                "scaleDown": {"stabilizationWindowSeconds": 45},
            },
        },
    }


class Load:
    """One answer after the other, until stopped."""

    def __init__(self, model: Model) -> None:
        self._address = model.service_address()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            Stream(self._address, tokens=300).wait(300)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(300)


def replicas(kubectl: Kubectl, kind: str, name: str) -> int:
    found: int = kubectl.get(kind, name)["spec"]["replicas"]
    return found


@pytest.mark.timeout(1200)
def test_an_autoscaler_takes_a_model_from_one_replica_to_three_and_back(
    create: Callable[..., Model], measured: None
) -> None:
    del measured
    model = create(server={"slots": 2, "contextSize": 4096})
    model.until_condition("Ready")
    kubectl, seen, log = model.kubectl, [1], AuditLog()
    kubectl.apply(autoscaler(model.name))

    def watch_until(wanted: int, timeout_seconds: float) -> None:
        def reached() -> bool:
            asked = replicas(kubectl, "hybridmodel", model.name)
            if asked != seen[-1]:
                seen.append(asked)
            return asked == wanted and replicas(kubectl, "deployment", model.name) == wanted

        until(f"{wanted} replicas (so far {seen})", reached, timeout_seconds=timeout_seconds)

    load = Load(model)
    try:
        watch_until(3, 240)
        until(
            "three replicas ready",
            lambda: kubectl.get("deployment", model.name)["status"].get("readyReplicas") == 3,
            timeout_seconds=180,
        )
        until("status and scale agree", lambda: model.status()["replicas"] == 3, timeout_seconds=30)
        # Many looks of the operator later the autoscaler's figure still stands.
        time.sleep(15)
        watch_until(3, 1)
    finally:
        load.stop()
    watch_until(1, 300)
    print(f"replicas asked for: {seen}")  # noqa: T201
    assert seen == sorted(seen[: seen.index(3) + 1]) + sorted(seen[seen.index(3) + 1 :], reverse=True)
    until("one replica left", lambda: model.status()["replicas"] == 1, timeout_seconds=60)
    assert "replicas" not in _fields_of(kubectl, model.name)
    written = {write.resource for write in log.writes(chart.OPERATOR_USER)}
    assert {resource for resource in written if resource.startswith("hybridmodels")} <= {
        "hybridmodels/status"
    }


def _fields_of(kubectl: Kubectl, name: str) -> str:
    """What the operator owns of the model, by its managed fields."""
    found = kubectl("get", "hybridmodel", name, "--show-managed-fields", "--output", "json")
    managed = json.loads(found)["metadata"]["managedFields"]
    own = [each["fieldsV1"].get("f:spec", {}) for each in managed if each["manager"] == "llamapool"]
    return str(own)
