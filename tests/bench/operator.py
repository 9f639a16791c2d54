"""Measure the operator on the test node: python -m tests.bench.operator (make bench-operator).

How soon a new model has its Deployment while a whole fleet is created, how soon a changed limit is in effect
in the server, and what a fleet costs while nothing happens. The record goes to build/bench/operator.json.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from prometheus_client.parser import text_string_to_metric_families

from tests.bench import machine
from tests.bench.paired import quantile
from tests.cluster.progress import say
from tests.models.hybrid import HybridShape
from tests.support import chart
from tests.support.audit import AuditLog
from tests.support.kubectl import Kubectl, run, until
from tests.support.models import Model, manifest, provide_model

if TYPE_CHECKING:
    from collections.abc import Iterable

_RECORD = Path("build") / "bench" / "operator.json"
_FILE, _SHAPE = "small.gguf", HybridShape(layers=16)
# A share of 12.5 % is three buffers of 38 MiB at the first limit, five at the second.
_POOL = {"mode": "Auto", "limitPercent": 12.5}
_LIMITS = ("1Gi", "1536Mi")
_SETTLE_SECONDS = 70
"""The figures of the start are written by then: status shows new ones at most once a minute."""


def main(
    models: Annotated[int, typer.Option(min=1, help="Fleet of models without a replica.")] = 50,
    rounds: Annotated[int, typer.Option(min=2, help="Resizes of the one model that serves.")] = 20,
    steady_seconds: Annotated[int, typer.Option(min=10, help="How long to watch the fleet at rest.")] = 120,
) -> None:
    """Create a fleet, resize a model, watch the fleet at rest, write the record."""
    chart.install()
    kubectl = Kubectl("llamapool-bench")
    kubectl.ensure_namespace()
    provide_model(kubectl, _FILE, _SHAPE)
    try:
        record = {
            "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine.describe(),
            "models": models,
            "create_to_deployment_seconds": _created(kubectl, models),
            "resize_to_effect_seconds": _resized(kubectl, rounds),
            "at_rest": _at_rest(models + 1, steady_seconds),
        }
    finally:
        kubectl("delete", "hybridmodels", "--all", "--wait")
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
        kubectl("delete", "persistentvolume", f"{kubectl.namespace}-models", "--wait=false")
    _RECORD.parent.mkdir(parents=True, exist_ok=True)
    _RECORD.write_text(json.dumps(record, indent=2) + "\n")
    say(f"bench-operator: {_RECORD} is written\n{json.dumps(record, indent=2)}")


def _created(kubectl: Kubectl, models: int) -> dict[str, float]:
    """From the API server's answer to a new model until its answer to the Deployment's creation."""
    say(f"creating {models} models at once")
    log, names = AuditLog(), [f"fleet-{index:03}" for index in range(models)]
    kubectl.apply(*(manifest(name, _FILE, limit="1Gi", replicas=0) for name in names))
    until("every Deployment", lambda: len(kubectl.list("deployments")) == models, timeout_seconds=300)
    made: dict[str, float] = {}
    deployed: dict[str, float] = {}
    for event in log.events():
        subject, when = event.get("objectRef", {}), dt.datetime.fromisoformat(event["stageTimestamp"])
        if event.get("responseStatus", {}).get("code") != 201 or subject.get("name") not in names:
            continue
        if subject["resource"] == "hybridmodels":
            made[subject["name"]] = when.timestamp()
        elif subject["resource"] == "deployments":
            deployed[subject["name"]] = when.timestamp()
    return _quantiles(deployed[name] - made[name] for name in names)


def _resized(kubectl: Kubectl, rounds: int) -> dict[str, float]:
    """From a pod's resize until its server has the new cap in effect; the kubelet's part is included."""
    say(f"resizing one model {rounds} times")
    model = Model(kubectl, "resized")
    kubectl.apply(manifest(model.name, _FILE, limit=_LIMITS[0], pool=_POOL))
    model.until_condition("Ready")
    model.chat("hello")
    model.until_condition("LimitsApplied")

    def wait_for_cap(cap_bytes: float, limit: str) -> None:
        until(
            f"the cap of {limit}",
            lambda: model.metrics()["llamapool_pool_cap_bytes"] == cap_bytes,
            timeout_seconds=60,
            every_seconds=0.05,
        )

    buffer_bytes = model.metrics()["llamapool_checkpoints_live_bytes"]
    wait_for_cap(3 * buffer_bytes, _LIMITS[0])
    seconds = []
    for index in range(rounds):
        buffers, limit = ((5, _LIMITS[1]), (3, _LIMITS[0]))[index % 2]
        started = time.monotonic()
        model.resize(limit)
        wait_for_cap(buffers * buffer_bytes, limit)
        seconds.append(time.monotonic() - started)
    if model.restarts() != 0:
        raise SystemExit(f"bench-operator: the server restarted {model.restarts()} times")
    return _quantiles(seconds)


def _at_rest(models: int, seconds: int) -> dict[str, Any]:
    """What the operator uses, and asks of the API server, while nothing changes."""
    say(f"watching {models} models at rest for {seconds} s, after {_SETTLE_SECONDS} s to settle")
    time.sleep(_SETTLE_SECONDS)
    log, before, started = AuditLog(), _usage(), time.monotonic()
    time.sleep(seconds)
    after, took = _usage(), time.monotonic() - started
    verbs = Counter(
        event["verb"] for event in log.events() if event["user"]["username"] == chart.OPERATOR_USER
    )
    return {
        "models": models,
        "seconds": took,
        "cpu_cores": (after["cpu_seconds"] - before["cpu_seconds"]) / took,
        "working_set_bytes": after["working_set_bytes"],
        "requests_per_second": verbs.total() / took,
        "requests_by_verb": dict(verbs),
        "writes": len(log.writes(chart.OPERATOR_USER)),
    }


def _usage() -> dict[str, float]:
    """Processor time and memory of the operator's container, as the kubelet measures them."""
    node = run("kubectl", "get", "nodes", "--output", "jsonpath={.items[0].metadata.name}")
    page = run("kubectl", "get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/resource")
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.labels.get("namespace") == chart.NAMESPACE and "container" in sample.labels
    }
    return {
        "cpu_seconds": found["container_cpu_usage_seconds_total"],
        "working_set_bytes": found["container_memory_working_set_bytes"],
    }


def _quantiles(seconds: Iterable[float]) -> dict[str, float]:
    values = list(seconds)
    return {"count": len(values)} | {
        name: quantile(values, share) or 0.0 for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    }


if __name__ == "__main__":
    typer.run(main)
