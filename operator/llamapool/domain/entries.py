"""The entries of decisions: what was changed, on which figures, under which id."""

import hashlib
from collections.abc import Mapping

from llamapool.domain.black_box import BlackBox
from llamapool.domain.conditions import DecisionReason, Outcome, PoolMode
from llamapool.domain.limits import DecisionEntry, Figure, Limits
from llamapool.domain.memory import MemoryPlan, PoolPolicy
from llamapool.domain.oom import Kill
from llamapool.domain.quantity import format_bytes


def entry_of(
    *,
    seed: str,
    time: str,
    reason: DecisionReason,
    before: Limits,
    after: Limits,
    evidence: Mapping[str, Figure],
    outcome: Outcome,
    message: str,
) -> DecisionEntry:
    """Return one entry; only limits that differ are named in it.

    Args:
        seed: what tells this decision from any other of the model.
        time: RFC 3339, UTC.
        reason: what was decided.
        before: limits as they were.
        after: limits as they are, or would be.
        evidence: figures; those that are None are left out.
        outcome: what became of it.
        message: for people.
    """
    digest = hashlib.sha256(f"{seed}/{after.to_json()}/{reason}/{time}".encode()).hexdigest()
    old, new = _values(before), _values(after)
    moved = [name for name in old if old[name] != new[name]]
    return DecisionEntry(
        id=f"{after.generation}-{digest[:10]}",
        time=time,
        reason=reason.value,
        before={name: old[name] for name in moved},
        after={name: new[name] for name in moved},
        evidence=known(evidence),
        outcome=outcome,
        message=message,
    )


def known(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """Return the figures that are known."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def plan_evidence(policy: PoolPolicy, plan: MemoryPlan, pods: int) -> dict[str, Figure]:
    """Return the figures behind a cap."""
    percent = str(float(policy.limit_percent))
    return {
        "mode": policy.mode.value,
        "limitPercent": percent if policy.mode is PoolMode.AUTO else None,
        "slots": policy.slots,
        "pods": pods,
        "limitBytes": plan.limit_bytes,
        "headroomBytes": plan.headroom_bytes,
        "baseBytes": plan.base_bytes,
        "stateBudgetBytes": plan.state_budget_bytes,
        "checkpointBytes": plan.checkpoint_bytes,
        "bufferBytes": plan.buffer_bytes,
    }


def plan_message(policy: PoolPolicy, plan: MemoryPlan, before: Limits, after: Limits) -> str:
    """Say how limits moved with the plan, and with which of its figures."""
    moves = []
    if before.pool_cap_bytes != after.pool_cap_bytes:
        moves.append(f"pool cap {_size(before.pool_cap_bytes)} -> {_size(after.pool_cap_bytes)}")
    if before.state_budget_bytes != after.state_budget_bytes:
        moves.append(f"state budget {_size(before.state_budget_bytes)} -> {_size(after.state_budget_bytes)}")
    figures = (
        ("limit", plan.limit_bytes),
        ("one buffer", plan.buffer_bytes),
        ("base", plan.base_bytes),
        ("state budget", plan.state_budget_bytes),
    )
    told = [f"{words} {format_bytes(size)}" for words, size in figures if size is not None]
    reasons = ", ".join([f"mode {policy.mode}", f"{policy.slots} slots", *told])
    return f"{', '.join(moves)} ({reasons})"


def kill_evidence(kill: Kill) -> dict[str, Figure]:
    """Return what is known of a kill."""
    return {
        "kill": kill.key,
        "pod": kill.pod_name,
        "container": kill.container,
        "cause": kill.cause.value,
        "phase": kill.phase.value,
        "exitCode": kill.exit_code,
        "finishedAt": kill.finished_at or None,
        "kills": kill.count,
        **({} if kill.black_box is None else box_evidence(kill.black_box)),
    }


def box_evidence(box: BlackBox) -> dict[str, Figure]:
    """Return a server's accounting."""
    return {
        "limitBytes": box.limit_bytes,
        "unreclaimableBytes": box.unreclaimable_bytes,
        "baseBytes": box.base_bytes,
        "stateBytes": box.state_bytes,
        "budgetBytes": box.budget_bytes,
        "poolHeldBytes": box.pool_held_bytes,
        "capBytes": box.cap_bytes,
        "askedBytes": box.asked_bytes,
        "generation": box.generation,
    }


def _values(limits: Limits) -> dict[str, Figure]:
    return {"poolCapBytes": limits.pool_cap_bytes, "stateBudgetBytes": limits.state_budget_bytes}


def _size(size_bytes: int | None) -> str:
    return "the server's own" if size_bytes is None else format_bytes(size_bytes)
