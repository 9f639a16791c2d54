"""From facts to a decision: which limits to write, on what evidence. Same facts and time, same decision."""

import hashlib
from dataclasses import dataclass

from llamapool.domain.conditions import DecisionReason, PoolMode
from llamapool.domain.facts import Facts, ServerSample
from llamapool.domain.limits import DecisionEntry, Figure, Learned, Limits, Record
from llamapool.domain.memory import MemoryPlan, make_plan


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What should hold for a model.

    Attributes:
        limits: limits.json as it should be.
        record: record.json as it should be, this decision included.
        changed: the two differ from what is in the cluster and have to be written.
        plan: the memory plan of one pod, the smallest where they differ.
        limit_reported: a pod's status said which limit it has, or that it has none.
    """

    limits: Limits
    record: Record
    changed: bool
    plan: MemoryPlan
    limit_reported: bool


def decide(facts: Facts, *, now: str) -> Decision:
    """Decide a model's limits.

    Args:
        facts: what is known.
        now: the time, RFC 3339, UTC; it only ends up in the entry of a new decision.
    """
    learned, limit_reported = _learn(facts)
    plan = make_plan(
        policy=facts.policy,
        limit_bytes=learned.limit_bytes,
        base_bytes=learned.base_bytes,
        checkpoint_bytes=learned.checkpoint_bytes,
    )
    record = facts.record or Record(learned=learned)
    limits = facts.written or Limits(generation=1, decision="initial", pool_cap_bytes=None)
    changed = facts.written is None or facts.record is None
    if limits.pool_cap_bytes != plan.pool_cap_bytes:
        generation = 1 if facts.written is None else limits.generation + 1
        entry = DecisionEntry(
            id=_decision_id(facts.model_uid, generation, plan.pool_cap_bytes, now),
            time=now,
            reason=DecisionReason.POOL_CAP_CHANGED.value,
            before={"poolCapBytes": limits.pool_cap_bytes},
            after={"poolCapBytes": plan.pool_cap_bytes},
            evidence=_evidence(facts, plan),
        )
        limits = Limits(generation=generation, decision=entry.id, pool_cap_bytes=plan.pool_cap_bytes)
        record = record.adding(entry, learned)
        changed = True
    return Decision(limits=limits, record=record, changed=changed, plan=plan, limit_reported=limit_reported)


def _learn(facts: Facts) -> tuple[Learned, bool]:
    """Merge what the servers report now with what they reported before they restarted.

    A base only grows while shape and limit stay: the server's own figure moves by some MiB, and a cap that
    followed it down and up would flap.
    """
    remembered = Learned(shape=facts.shape)
    if facts.record is not None and facts.record.learned.shape == facts.shape:
        remembered = facts.record.learned
    reported = [pod for pod in facts.sized_pods if pod.limit_reported]
    limits = [pod.limit_bytes for pod in reported if pod.limit_bytes is not None]
    limit_bytes = min(limits, default=None) if reported else remembered.limit_bytes
    samples = [pod.sample for pod in facts.sized_pods if isinstance(pod.sample, ServerSample)]
    checkpoints = [sample.checkpoint_bytes for sample in samples if sample.checkpoint_bytes]
    bases = [sample.base_bytes for sample in samples if sample.base_bytes]
    if remembered.base_bytes is not None and remembered.limit_bytes == limit_bytes:
        bases.append(remembered.base_bytes)
    learned = Learned(
        shape=facts.shape,
        checkpoint_bytes=max(checkpoints, default=remembered.checkpoint_bytes),
        base_bytes=max(bases, default=None),
        limit_bytes=limit_bytes,
    )
    return learned, bool(reported)


def _evidence(facts: Facts, plan: MemoryPlan) -> dict[str, Figure]:
    """The figures behind a cap; those that are unknown are left out."""
    percent = str(float(facts.policy.limit_percent))
    figures: dict[str, Figure] = {
        "mode": facts.policy.mode.value,
        "limitPercent": percent if facts.policy.mode is PoolMode.AUTO else None,
        "slots": facts.policy.slots,
        "pods": len(facts.sized_pods),
        "limitBytes": plan.limit_bytes,
        "headroomBytes": plan.headroom_bytes,
        "baseBytes": plan.base_bytes,
        "stateBudgetBytes": plan.state_budget_bytes,
        "checkpointBytes": plan.checkpoint_bytes,
        "bufferBytes": plan.buffer_bytes,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _decision_id(model_uid: str, generation: int, pool_cap_bytes: int | None, now: str) -> str:
    digest = hashlib.sha256(f"{model_uid}/{generation}/{pool_cap_bytes}/{now}".encode()).hexdigest()
    return f"{generation}-{digest[:10]}"
