"""The conditions of tuning: TTFTHealthy, and Degraded: trouble that no step of the operator's can answer."""

from llamapool.domain.conditions import Condition, ConditionStatus, ConditionType, DecisionReason, Reason
from llamapool.domain.decide import Decision
from llamapool.domain.facts import Facts, ServerSample

_REASON_OF = {
    DecisionReason.NO_STEP_LEFT: Reason.NO_STEP_LEFT,
    DecisionReason.MEMORY_OUTSIDE_STATE: Reason.MEMORY_OUTSIDE_STATE,
}


def ttft_healthy(facts: Facts, decision: Decision) -> Condition:
    """Return whether the time to first token is as it should be, as far as every pod's metrics are known."""
    if not facts.ready_pods:
        return _ttft(ConditionStatus.UNKNOWN, Reason.NO_PODS, "no replica answers requests yet")
    for pod in facts.ready_pods:
        if not isinstance(pod.sample, ServerSample):
            told = "not scraped" if pod.sample is None else f"{pod.sample.reason}: {pod.sample.message}"
            message = f"metrics of pod {pod.name}: {told}"
            return _ttft(ConditionStatus.UNKNOWN, Reason.METRICS_UNAVAILABLE, message)
        if pod.sample.time_to_first_token is None:
            message = f"the server of pod {pod.name} does not report its time to first token"
            return _ttft(ConditionStatus.UNKNOWN, Reason.METRIC_MISSING, message)
    found = decision.ttft
    return _ttft(found.status, found.reason, found.message)


def degraded(facts: Facts, decision: Decision) -> Condition:
    """Return whether a model is degraded: no step left, killed over and over, or a resize refused."""
    trouble = decision.record.ladder.trouble
    refused = [pod for pod in facts.pods if pod.resize is not None and pod.resize.refused]
    if trouble is not None:
        return _degraded(ConditionStatus.TRUE, _REASON_OF[trouble.reason], trouble.message)
    if decision.looping:
        last = decision.record.decisions[0].message if decision.record.decisions else ""
        message = f"{decision.looping} kills for memory within ten minutes; {last}"
        return _degraded(ConditionStatus.TRUE, Reason.OOM_LOOPING, message)
    if refused:
        told = "; ".join(f"pod {pod.name}: {pod.resize.message}" for pod in refused if pod.resize is not None)
        message = f"the kubelet refuses to resize, and the limit that it has set holds: {told}"
        return _degraded(ConditionStatus.TRUE, Reason.RESIZE_REFUSED, message)
    return _degraded(ConditionStatus.FALSE, Reason.SOUND, "no trouble that limits could not answer")


def _ttft(status: ConditionStatus, reason: Reason, message: str) -> Condition:
    return Condition(type=ConditionType.TTFT_HEALTHY, status=status, reason=reason, message=message)


def _degraded(status: ConditionStatus, reason: Reason, message: str) -> Condition:
    return Condition(type=ConditionType.DEGRADED, status=status, reason=reason, message=message)
