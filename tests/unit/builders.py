"""Facts and HybridModels for tests, plain unless a test says otherwise."""

from fractions import Fraction
from typing import Any

from llamapool.domain.conditions import PoolMode
from llamapool.domain.facts import Facts, Pod, ScrapeFailure, ServerSample, Workload
from llamapool.domain.limits import Learned, Limits, Record
from llamapool.domain.memory import PoolPolicy

MIB = 1 << 20
GIB = 1 << 30
CHECKPOINT = int(149.626 * MIB)
BUFFER = 150 * MIB
NOW = "2026-12-01T12:00:00Z"


def policy(mode: PoolMode = PoolMode.AUTO, *, cap: int | None = None, slots: int = 4) -> PoolPolicy:
    return PoolPolicy(mode=mode, cap_bytes=cap, limit_percent=Fraction("6.25"), slots=slots)


def pod(
    *,
    name: str = "model-1",
    limit: int | None = 2 * GIB,
    ready: bool = True,
    running: bool = True,
    reported: bool = True,
    trouble: str | None = None,
    sample: ServerSample | ScrapeFailure | None = None,
) -> Pod:
    return Pod(
        name=name,
        uid=f"uid-of-{name}",
        running=running,
        ready=ready and running,
        limit_reported=reported and running,
        limit_bytes=limit if reported and running else None,
        restarts=0,
        nudged_generation=None,
        trouble=trouble,
        sample=sample,
    )


def facts(
    *pods: Pod,
    asked: PoolPolicy | None = None,
    written: Limits | None = None,
    record: Record | None = None,
    workload: Workload | None = None,
    shape: str = "shape",
    **others: Any,
) -> Facts:
    return Facts(
        model_uid="uid",
        shape=shape,
        policy=asked or policy(),
        written=written,
        record=record,
        workload=workload or Workload(wanted_replicas=max(1, len(pods)), replicas=len(pods), failure=None),
        pods=pods,
        **others,
    )


def limits(cap: int | None, *, generation: int = 1) -> Limits:
    return Limits(generation=generation, decision="earlier", pool_cap_bytes=cap)


def record(**learned: Any) -> Record:
    return Record(learned=Learned(shape="shape", **learned))


def model_body(name: str = "tiny", **spec: Any) -> dict[str, Any]:
    """A HybridModel as the API server gives it, with its defaults."""
    return {
        "apiVersion": "llamapool.dev/v1alpha1",
        "kind": "HybridModel",
        "metadata": {
            "name": name,
            "namespace": "models",
            "uid": f"uid-of-{name}",
            "generation": 1,
            "resourceVersion": "1",
        },
        "spec": {
            "model": {"source": {"pvc": {"claimName": "models", "path": "tiny.gguf"}}},
            "server": {"slots": 4, "pullPolicy": "IfNotPresent"},
            "resources": {"limits": {"memory": "2Gi"}},
            "pool": {"mode": "Auto", "limitPercent": 6.25, "idleTrimSeconds": 60},
            **spec,
        },
    }
