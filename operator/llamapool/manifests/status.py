"""The status of a HybridModel, built from what was seen and decided."""

from collections.abc import Iterable, Mapping
from typing import Any

from llamapool.api import GROUP, KIND, VERSION, HybridModel
from llamapool.domain.conditions import Condition, ConditionType, with_times
from llamapool.domain.decide import Decision
from llamapool.domain.facts import Facts, Pod, ServerSample
from llamapool.domain.histogram import Histogram
from llamapool.domain.limits import Record
from llamapool.domain.quantity import format_bytes
from llamapool.domain.trial import Trial
from llamapool.domain.ttft import Assessment
from llamapool.domain.values import time_text
from llamapool.manifests.common import Manifest, selector_labels

_TRIAL_SEEN = ("id", "result", "legsDone")


def status_object(model_body: Mapping[str, Any], status: Manifest) -> Manifest:
    """Return what is applied to the status subresource of a HybridModel."""
    metadata = model_body["metadata"]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }


def unusable_status(
    model_body: Mapping[str, Any], conditions: Iterable[Condition], record: Record | None, *, now: str
) -> Manifest:
    """Return the status of a model whose spec cannot be acted on.

    Args:
        model_body: the model as the API server gives it.
        conditions: what is wrong.
        record: the record that an earlier spec left, if any.
        now: the time, RFC 3339, UTC.
    """
    generation = model_body["metadata"].get("generation", 0)
    status: Manifest = {
        "observedGeneration": generation,
        "conditions": _conditions(model_body, conditions, generation, now),
    }
    if record is not None and record.decisions:
        status["decisions"] = [entry.to_dict() for entry in record.decisions]
    return status


def model_status(
    model: HybridModel,
    model_body: Mapping[str, Any],
    *,
    facts: Facts,
    decision: Decision,
    conditions: Iterable[Condition],
    ttft: Histogram | None,
    update_pending: bool,
    now: str,
) -> Manifest:
    """Return the status of a model that is served.

    Args:
        model: the model.
        model_body: the same as the API server gives it, with the status as last written.
        facts: what was seen.
        decision: what was decided on it.
        conditions: what holds.
        ttft: seconds to the first token observed lately, over all pods; None: no request.
        update_pending: pods of another operator's template are left in place.
        now: the time, RFC 3339, UTC.
    """
    status: Manifest = {
        "observedGeneration": model.generation,
        "replicas": 0 if facts.workload is None else facts.workload.replicas,
        "selector": ",".join(f"{name}={value}" for name, value in selector_labels(model.name).items()),
        "conditions": _conditions(model_body, conditions, model.generation, now),
        "updatePending": update_pending,
        "model": dict(facts.model or {}),
        "memory": _memory(decision),
        "pool": _pool(facts, decision),
        "limits": _limits(facts, decision),
        "decisions": [entry.to_dict() for entry in decision.record.decisions],
    }
    if model.paused:
        status["paused"] = True
    if decision.record.trial is not None:
        status["trial"] = _trial(decision.record.trial)
    if ttft is not None:
        quantiles = {
            name: ttft.quantile(share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        }
        status["ttft"] = {name: str(value) for name, value in quantiles.items() if value is not None}
        status["ttft"] |= _known({"requests": int(ttft.count), **_ttft_bound(decision.ttft)})
    return {name: value for name, value in status.items() if value not in ({}, [])}


def what_people_see(status: Mapping[str, Any]) -> Any:
    """Return the part of a status whose change is worth a write of its own; the rest is moving figures."""
    return {
        "observedGeneration": status.get("observedGeneration"),
        "paused": status.get("paused"),
        "replicas": status.get("replicas"),
        "updatePending": bool(status.get("updatePending")),
        "selector": status.get("selector"),
        "conditions": [
            {name: value for name, value in condition.items() if name not in _moving_parts(condition)}
            for condition in status.get("conditions", [])
        ],
        "model": status.get("model"),
        "limit": status.get("memory", {}).get("limit"),
        "checkpointBytes": status.get("memory", {}).get("checkpointBytes"),
        "ttft": bool(status.get("ttft")),
        "cap": status.get("pool", {}).get("cap"),
        "limits": status.get("limits"),
        "trial": {name: value for name, value in status.get("trial", {}).items() if name in _TRIAL_SEEN},
        "decisions": [entry.get("id") for entry in status.get("decisions", [])],
    }


def _moving_parts(condition: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a condition that move by themselves: the message that tells a figure does."""
    figures = condition.get("type") == ConditionType.TTFT_HEALTHY
    return ("lastTransitionTime", "message") if figures else ("lastTransitionTime",)


def _trial(trial: Trial) -> Manifest:
    legs = [
        _known(
            {
                "pool": "on" if leg.pool_on else "off",
                "requests": leg.requests,
                "p90": f"{leg.p90_seconds:.3g}s",
                "checkpoint": None if leg.checkpoint_seconds is None else f"{leg.checkpoint_seconds:.3g}s",
            }
        )
        for leg in trial.legs
    ]
    return _known(
        {
            "id": trial.id,
            "why": trial.why,
            "startedAt": time_text(trial.started_at),
            "endedAt": None if trial.ended_at is None else time_text(trial.ended_at),
            "result": "Running" if trial.result is None else trial.result.value,
            "message": trial.message or None,
            "legsDone": len(trial.legs),
            "legsWanted": trial.policy.legs,
            "legs": legs,
        }
    )


def _ttft_bound(assessed: Assessment) -> Manifest:
    bound, share = assessed.bound_seconds, assessed.checkpoint_share
    return {
        "bound": None if bound is None else f"{bound:.3g}s",
        "checkpointShare": None if share is None else f"{share:.0%}",
    }


def _conditions(
    model_body: Mapping[str, Any], conditions: Iterable[Condition], generation: int, now: str
) -> list[dict[str, Any]]:
    previous = (model_body.get("status") or {}).get("conditions", [])
    return with_times(conditions, previous=previous, observed_generation=generation, now=now)


def _memory(decision: Decision) -> Manifest:
    plan = decision.plan
    return _known(
        {
            "limit": None if plan.limit_bytes is None else format_bytes(plan.limit_bytes),
            "limitBytes": plan.limit_bytes,
            "headroomBytes": plan.headroom_bytes,
            "baseBytes": plan.base_bytes,
            "baseMeasured": plan.base_measured if plan.base_bytes is not None else None,
            "predictedBaseBytes": plan.predicted_base_bytes,
            "baseErrorBytes": plan.base_error_bytes,
            "stateBudgetBytes": plan.state_budget_bytes,
            "checkpointBytes": plan.checkpoint_bytes,
            "bufferBytes": plan.buffer_bytes,
        }
    )


def _pool(facts: Facts, decision: Decision) -> Manifest:
    samples = [pod.sample for pod in facts.pods if isinstance(pod.sample, ServerSample)]
    cap_bytes = decision.limits.pool_cap_bytes
    return _known(
        {
            "cap": None if cap_bytes is None else format_bytes(cap_bytes),
            "capBytes": cap_bytes,
            "heldBytes": _sum(sample.pool_held_bytes for sample in samples),
            "heldBuffers": _sum(sample.pool_held_buffers for sample in samples),
            "hits": _sum(sample.pool_hits for sample in samples),
            "misses": _sum(sample.pool_misses for sample in samples),
        }
    )


def _limits(facts: Facts, decision: Decision) -> Manifest:
    samples = [pod.sample for pod in facts.ready_pods if isinstance(pod.sample, ServerSample)]
    caps = [sample.pool_cap_bytes for sample in samples if sample.pool_cap_bytes is not None]
    acknowledged = sum(sample.limits_generation == decision.limits.generation for sample in samples)
    limits = decision.limits
    return {
        "written": {
            "generation": limits.generation,
            "decision": limits.decision,
            "poolCapBytes": limits.pool_cap_bytes,
        },
        "acknowledged": {"pods": acknowledged, "of": len(facts.ready_pods)},
        "effective": _known({"poolCapBytes": min(caps, default=None)}),
        "pods": [_pod_limits(pod) for pod in facts.pods],
    }


def _pod_limits(pod: Pod) -> Manifest:
    sample = pod.sample if isinstance(pod.sample, ServerSample) else ServerSample()
    return _known(
        {
            "name": pod.name,
            "ready": pod.ready,
            "restarts": pod.restarts,
            "limitBytes": pod.limit_bytes,
            "generation": sample.limits_generation,
            "poolCapBytes": sample.pool_cap_bytes,
        }
    )


def _known(values: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in values.items() if value is not None}


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
