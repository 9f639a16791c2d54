"""The conditions of a model: an ordered tuple of small checks, each from facts and decision to one."""

from collections.abc import Callable

from llamapool.domain.conditions import Condition, ConditionStatus, ConditionType, PoolMode, Reason
from llamapool.domain.decide import Decision
from llamapool.domain.facts import Facts, FetchPhase, ServerSample
from llamapool.domain.fitting import memory_fits
from llamapool.domain.ladder import Pool
from llamapool.domain.quantity import format_bytes
from llamapool.domain.trouble import degraded, ttft_healthy

Check = Callable[[Facts, Decision], Condition]
Verdict = tuple[ConditionStatus, Reason, str]

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def judge(facts: Facts, decision: Decision) -> tuple[Condition, ...]:
    """Return every condition of a model whose spec could be used, in a fixed order."""
    return tuple(check(facts, decision) for check in _CHECKS)


def unusable(reason: Reason, message: str) -> tuple[Condition, ...]:
    """Return the conditions of a model whose spec cannot be acted on: only that it is not ready, and why."""
    return (Condition(type=ConditionType.READY, status=FALSE, reason=reason, message=message),)


def _ready(facts: Facts, decision: Decision) -> Condition:
    def ready(status: ConditionStatus, reason: Reason, message: str) -> Condition:
        return Condition(type=ConditionType.READY, status=status, reason=reason, message=message)

    wanted = 1 if facts.workload is None else facts.workload.wanted_replicas
    count = len(facts.ready_pods)
    if wanted == 0:
        return ready(FALSE, Reason.SCALED_TO_ZERO, "spec.replicas is 0")
    if decision.looping:
        message = f"{decision.looping} kills for memory within ten minutes: see condition Degraded"
        return ready(FALSE, Reason.OOM_LOOPING, message)
    if count:
        serving = f"{min(count, wanted)} of {wanted} replicas answer requests"
        if count < wanted and facts.cache_is_shared is False:
            serving += (
                "; the cache is ReadWriteOnce, so all of them must be on one node: set"
                " spec.model.cache.accessMode to ReadWriteMany on a new claim, or omit spec.model.cache"
            )
        return ready(TRUE, Reason.SERVING, serving)
    fetching = _fetching(facts)
    if fetching is not None:
        return ready(FALSE, *fetching)
    troubles = [f"pod {pod.name}: {pod.trouble}" for pod in facts.pods if pod.trouble is not None]
    if facts.workload is not None and facts.workload.failure is not None:
        return ready(FALSE, Reason.ROLLOUT_FAILED, "; ".join([facts.workload.failure, *troubles]))
    return ready(FALSE, Reason.STARTING, "; ".join(troubles) or "no replica answers requests yet")


def _fetching(facts: Facts) -> tuple[Reason, str] | None:
    """Return what the init containers do as long as no server runs; None where they are done."""
    unmet = [(pod.name, pod.fetch) for pod in facts.pods if pod.fetch is not None and not pod.running]
    failed = [f"pod {name}: {fetch.error}" for name, fetch in unmet if fetch.phase is FetchPhase.FAILED]
    if failed:
        return Reason.FETCH_FAILED, "; ".join(failed)
    running = [name for name, fetch in unmet if fetch.phase is FetchPhase.RUNNING]
    if running:
        progress = f"kubectl logs {running[0]} --container fetch"
        return Reason.FETCHING, f"the model's files are fetched; progress: {progress}"
    return None


def _limits_applied(facts: Facts, decision: Decision) -> Condition:
    def applied(status: ConditionStatus, reason: Reason, message: str) -> Condition:
        return Condition(type=ConditionType.LIMITS_APPLIED, status=status, reason=reason, message=message)

    generation, cap_bytes = decision.limits.generation, decision.limits.pool_cap_bytes
    if not facts.ready_pods:
        return applied(UNKNOWN, Reason.NO_PODS, "no replica answers requests yet")
    for pod in facts.ready_pods:
        if not isinstance(pod.sample, ServerSample):
            continue
        if pod.sample.limits_generation not in (None, generation):
            return applied(
                FALSE,
                Reason.NOT_ACKNOWLEDGED,
                f"pod {pod.name} applies generation {pod.sample.limits_generation}, written is {generation}",
            )
        effective_bytes = pod.sample.pool_cap_bytes
        if cap_bytes is None or effective_bytes is None or effective_bytes == cap_bytes:
            continue
        message = f"pod {pod.name} keeps at most {effective_bytes} bytes of buffers, written is {cap_bytes}"
        if effective_bytes < cap_bytes:
            return applied(FALSE, Reason.BOUNDED_BY_SERVER, f"{message}: its own budget allows no more")
        return applied(FALSE, Reason.NOT_ACKNOWLEDGED, message)
    unknown = _unknown_figure(facts, "limits_generation") or (
        None if cap_bytes is None else _unknown_figure(facts, "pool_cap_bytes")
    )
    if unknown is not None:
        return applied(UNKNOWN, *unknown)
    return applied(TRUE, Reason.ACKNOWLEDGED, f"every ready pod applies generation {generation}")


def _pool_active(facts: Facts, decision: Decision) -> Condition:
    status, reason, message = (
        _pool_turned_off(facts, decision) or _pool_unknown(facts) or _pool_in_effect(facts, decision)
    )
    return Condition(type=ConditionType.POOL_ACTIVE, status=status, reason=reason, message=message)


def _pool_turned_off(facts: Facts, decision: Decision) -> Verdict | None:
    if decision.limits.pool_cap_bytes != 0:
        return None
    if decision.record.running_trial is not None:
        return FALSE, Reason.TRIAL_RUNNING, "a trial has it off for one of its legs"
    if facts.policy.mode is not PoolMode.AUTO:
        return FALSE, Reason.POOL_OFF, "spec.pool turns it off: no buffer is kept for reuse"
    ladder = decision.record.ladder
    if ladder.pool is Pool.OFF and ladder.harmful:
        return FALSE, Reason.TURNED_OFF_AFTER_TRIAL, "a trial showed that it harms; it is tried again later"
    if ladder.pool is not Pool.FULL:
        return (
            FALSE,
            Reason.TURNED_OFF_AFTER_OOM,
            "turned off after kills for memory; it is tried again later",
        )
    room = f"the plan has no room for one buffer of {decision.plan.buffer_bytes} bytes"
    return FALSE, Reason.NO_BUFFER_FITS, room


def _pool_unknown(facts: Facts) -> Verdict | None:
    if not facts.ready_pods:
        return UNKNOWN, Reason.NO_PODS, "no replica answers requests yet"
    unknown = _unknown_figure(facts, "pool_cap_bytes")
    return None if unknown is None else (UNKNOWN, *unknown)


def _pool_in_effect(facts: Facts, decision: Decision) -> Verdict:
    """Judge by the smallest cap that the servers report; every one of them does."""
    samples = [pod.sample for pod in facts.ready_pods if isinstance(pod.sample, ServerSample)]
    cap_bytes = min(sample.pool_cap_bytes or 0 for sample in samples)
    buffer_bytes = decision.plan.buffer_bytes
    if buffer_bytes == 0:
        return FALSE, Reason.NOTHING_TO_POOL, "the model makes no checkpoints"
    if cap_bytes < (buffer_bytes or 1):
        needs = "" if buffer_bytes is None else f", is less than one buffer of {buffer_bytes} bytes"
        return FALSE, Reason.NO_BUFFER_FITS, f"the cap in effect, {cap_bytes} bytes{needs}"
    kept = f"at most {format_bytes(cap_bytes)} of buffers are kept for reuse"
    if decision.limit_reported and decision.plan.limit_bytes is None and facts.policy.mode is PoolMode.AUTO:
        return TRUE, Reason.NO_MEMORY_LIMIT, f"{kept}: the pods have no limit, the host's RAM counts"
    return TRUE, Reason.POOL_CAPPED, kept


def _unknown_figure(facts: Facts, name: str) -> tuple[Reason, str] | None:
    """Return why a figure is not known for every ready pod; None where it is."""
    for pod in facts.ready_pods:
        if not isinstance(pod.sample, ServerSample):
            message = "not scraped" if pod.sample is None else f"{pod.sample.reason}: {pod.sample.message}"
            return Reason.METRICS_UNAVAILABLE, f"metrics of pod {pod.name}: {message}"
        if getattr(pod.sample, name) is None:
            return Reason.METRIC_MISSING, f"the server of pod {pod.name} does not report its {name}"
    return None


_CHECKS: tuple[Check, ...] = (_ready, memory_fits, _limits_applied, _pool_active, ttft_healthy, degraded)
