"""The condition MemoryFits: judged from prediction before a server runs, from what it measured after."""

from llamapool.domain.conditions import Condition, ConditionStatus, ConditionType, Reason
from llamapool.domain.decide import Decision
from llamapool.domain.facts import Facts
from llamapool.domain.memory import Fit, MemoryPlan, fit_of, least_limit_bytes, make_plan
from llamapool.domain.quantity import format_bytes
from llamapool.domain.sizing import prices


def memory_fits(facts: Facts, decision: Decision) -> Condition:
    """Judge whether the limit holds base, headroom and a checkpoint a slot; say what a user's values cost."""
    status, reason, message = _verdict(facts, decision)
    return Condition(type=ConditionType.MEMORY_FITS, status=status, reason=reason, message=message)


def _verdict(facts: Facts, decision: Decision) -> tuple[ConditionStatus, Reason, str]:
    plan, slots = _judged(facts, decision), facts.policy.slots
    if plan.limit_bytes is None:
        if decision.limit_reported:
            return ConditionStatus.UNKNOWN, Reason.NO_MEMORY_LIMIT, _unbounded(facts, plan)
        message = "no running pod has reported its memory limit yet"
        return ConditionStatus.UNKNOWN, Reason.LIMIT_NOT_REPORTED, message
    unknown = "; ".join((f": {facts.need.unknown}" if facts.need.unknown else "", *_eviction(facts, plan)))
    if plan.checkpoint_bytes is None:
        message = f"no server has reported the size of a checkpoint yet{unknown}"
        return ConditionStatus.UNKNOWN, Reason.CHECKPOINT_NOT_SEEN, message
    fit = fit_of(plan, slots)
    if fit is None:
        message = f"no server has reported what it needs beside state yet{unknown}"
        return ConditionStatus.UNKNOWN, Reason.BASE_NOT_MEASURED, message
    said = [_fit_message(facts, plan, fit), *prices(plan, facts.asked, slots), *_eviction(facts, plan)]
    if fit.fits:
        return ConditionStatus.TRUE, Reason.BUDGET_SUFFICIENT, "; ".join(said)
    return ConditionStatus.FALSE, Reason.BUDGET_TOO_SMALL, "; ".join(said)


def _judged(facts: Facts, decision: Decision) -> MemoryPlan:
    """Return the plan under the limit that is in effect, or that the pods are about to be started with."""
    plan = decision.plan
    if plan.limit_bytes is not None or decision.limit_reported:
        return plan
    return make_plan(
        policy=facts.policy,
        limit_bytes=facts.declared_limit_bytes,
        base_bytes=plan.base_bytes if plan.base_measured else None,
        checkpoint_bytes=plan.checkpoint_bytes,
        predicted_base_bytes=plan.predicted_base_bytes,
    )


def _unbounded(facts: Facts, plan: MemoryPlan) -> str:
    least_bytes = least_limit_bytes(plan, facts.policy.slots)
    by = "" if least_bytes is None else f" to at least {least_bytes}{_predicted(facts, plan)}"
    return f"the pods have no memory limit, so nothing bounds them; set spec.resources.limits.memory{by}"


def _predicted(facts: Facts, plan: MemoryPlan) -> str:
    if plan.base_measured:
        return ""
    beside = ", to which the device's runtime adds" if facts.need.offloaded else ""
    predicted, tolerance = format_bytes(plan.predicted_base_bytes or 0), format_bytes(plan.tolerance_bytes)
    return f", by a predicted base of {predicted} and {tolerance} of tolerance{beside}"


def _fit_message(facts: Facts, plan: MemoryPlan, fit: Fit) -> str:
    slots, limit, by = facts.policy.slots, format_bytes(plan.limit_bytes or 0), _predicted(facts, plan)
    if fit.most_slots is None:
        held = f"the limit of {limit}{by} holds the base of a model that makes no checkpoints"
    else:
        held = f"the limit of {limit} holds {fit.most_slots} checkpoints for {slots} slots{by}"
    if fit.fits:
        return held
    least = f"set spec.resources.limits.memory to at least {fit.least_limit_bytes}"
    slots_said = f", or spec.server.slots to at most {fit.most_slots}" if fit.most_slots else ""
    if fit.most_slots is None:
        held = f"the limit of {limit}{by} does not hold the base"
    return f"{held}: {fit.shortfall_bytes} bytes short; {least}{slots_said}"


def _eviction(facts: Facts, plan: MemoryPlan) -> tuple[str, ...]:
    if facts.request_bytes is None or plan.limit_bytes is None or facts.request_bytes >= plan.limit_bytes:
        return ()
    request, limit = format_bytes(facts.request_bytes), format_bytes(plan.limit_bytes)
    risk = "a pod that uses more than it requested is the first to go when its node runs short"
    return (f"eviction risk: the memory request of {request} is below the limit of {limit}, and {risk}",)
