"""The condition Degraded: whether there is trouble that no step of the operator's can answer."""

from llamapool.domain.conditions import Condition, ConditionStatus, ConditionType, DecisionReason, Reason
from llamapool.domain.decide import Decision
from llamapool.domain.facts import Facts

_REASON_OF = {
    DecisionReason.NO_STEP_LEFT: Reason.NO_STEP_LEFT,
    DecisionReason.MEMORY_OUTSIDE_STATE: Reason.MEMORY_OUTSIDE_STATE,
}


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


def _degraded(status: ConditionStatus, reason: Reason, message: str) -> Condition:
    return Condition(type=ConditionType.DEGRADED, status=status, reason=reason, message=message)
