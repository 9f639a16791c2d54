"""The memory plan of one pod: what its limit leaves for sequence state, and the pool's cap within that.

host bytes = base + state budget <= limit - headroom. All sizes are bytes; cap, budget and state count what is
mapped, rounding included.
"""

from dataclasses import dataclass
from fractions import Fraction

from llamapool.domain.conditions import PoolMode

_MIB = 1 << 20
HUGE_PAGE_BYTES = 2 * _MIB
"""Checkpoint buffers are mapped in huge pages, so their size is rounded up to a multiple of one."""
LEAST_HEADROOM_BYTES = 256 * _MIB
HEADROOM_SHARE = Fraction(5, 100)
LEAST_TOLERANCE_BYTES = 32 * _MIB
TOLERANCE_SHARE = Fraction(5, 100)
"""How far a predicted base may be off; the larger of the two is planned for beside it."""


@dataclass(frozen=True, kw_only=True)
class PoolPolicy:
    """What the user asked of the pool (`spec.pool`).

    Attributes:
        mode: who sets the cap.
        cap_bytes: the user's cap; set where the mode is Fixed.
        limit_percent: share of the limit, in percent, that the pool may keep at least.
        slots: requests served at once; each can use one buffer.
    """

    mode: PoolMode
    cap_bytes: int | None
    limit_percent: Fraction
    slots: int

    @property
    def automatic(self) -> bool:
        """Whether the operator sets the cap."""
        return self.mode is PoolMode.AUTO


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """The plan of one pod.

    Attributes:
        limit_bytes: the pod's memory limit, as its status reports it; None: it has none, or is not known.
        headroom_bytes: kept free under the limit; None without a limit.
        base_bytes: what the server needs beside state: as measured, else as predicted and the prediction's
            tolerance; None: not known.
        checkpoint_bytes: size of the data of one checkpoint, as seen or predicted; 0: none is made; None: not
            known.
        state_budget_bytes: limit - headroom - base, never below 0; None where one of them is unknown.
        pool_cap_bytes: most bytes of buffers kept for reuse; None: the server's own rule.
        predicted_base_bytes: the base as predicted from header and flags; None: it could not be.
        base_measured: whether base_bytes was measured.
    """

    limit_bytes: int | None
    headroom_bytes: int | None
    base_bytes: int | None
    checkpoint_bytes: int | None
    state_budget_bytes: int | None
    pool_cap_bytes: int | None
    predicted_base_bytes: int | None = None
    base_measured: bool = False

    @property
    def base_error_bytes(self) -> int | None:
        """How much more base was predicted than was measured; None where one of them is not known."""
        if not self.base_measured or self.base_bytes is None or self.predicted_base_bytes is None:
            return None
        return self.predicted_base_bytes - self.base_bytes

    @property
    def tolerance_bytes(self) -> int:
        """What of the base is planned for because it is only predicted; 0 where it was measured."""
        if self.base_measured or self.predicted_base_bytes is None:
            return 0
        return tolerance_bytes(self.predicted_base_bytes)

    @property
    def buffer_bytes(self) -> int | None:
        """What one checkpoint maps; None until one was seen."""
        return None if self.checkpoint_bytes is None else mapped_bytes(self.checkpoint_bytes)


def mapped_bytes(data_bytes: int) -> int:
    """Return what a buffer of `data_bytes` maps: rounded up to whole huge pages of 2 MiB."""
    return -(-data_bytes // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES


def headroom_bytes(limit_bytes: int) -> int:
    """Return what is kept free under a limit: the larger of 256 MiB and 5 %, rounded up."""
    return max(LEAST_HEADROOM_BYTES, -int(-limit_bytes * HEADROOM_SHARE // 1))


def tolerance_bytes(predicted_base_bytes: int) -> int:
    """Return what is planned for beside a predicted base: the larger of 32 MiB and 5 %, rounded up."""
    return max(LEAST_TOLERANCE_BYTES, -int(-predicted_base_bytes * TOLERANCE_SHARE // 1))


def make_plan(
    *,
    policy: PoolPolicy,
    limit_bytes: int | None,
    base_bytes: int | None,
    checkpoint_bytes: int | None,
    predicted_base_bytes: int | None = None,
) -> MemoryPlan:
    """Plan one pod's host memory.

    Args:
        policy: what the user asked of the pool.
        limit_bytes: the pod's memory limit as its status reports it; None: none, or not known.
        base_bytes: what the server needs beside state; None: not measured yet.
        checkpoint_bytes: size of the data of one checkpoint; None: not known.
        predicted_base_bytes: with its tolerance, takes the place of a base that is not measured yet; None: it
            is not predicted.
    """
    measured = base_bytes is not None
    if base_bytes is None and predicted_base_bytes is not None:
        base_bytes = predicted_base_bytes + tolerance_bytes(predicted_base_bytes)
    headroom = None if limit_bytes is None else headroom_bytes(limit_bytes)
    budget = None
    if limit_bytes is not None and headroom is not None and base_bytes is not None:
        budget = max(0, limit_bytes - headroom - base_bytes)
    return MemoryPlan(
        limit_bytes=limit_bytes,
        headroom_bytes=headroom,
        base_bytes=base_bytes,
        checkpoint_bytes=checkpoint_bytes,
        state_budget_bytes=budget,
        pool_cap_bytes=_pool_cap_bytes(policy, limit_bytes, base_bytes or 0, checkpoint_bytes),
        predicted_base_bytes=predicted_base_bytes,
        base_measured=measured,
    )


def _pool_cap_bytes(
    policy: PoolPolicy, limit_bytes: int | None, base_bytes: int, checkpoint_bytes: int | None
) -> int | None:
    """Return the cap of the plan's rule: min(room, max(share of the limit, a buffer a slot)), whole buffers.

    The user's Fixed cap is taken as it is: the server bounds it by its own budget.
    """
    if policy.mode is PoolMode.OFF:
        return 0
    if policy.mode is PoolMode.FIXED:
        return policy.cap_bytes
    if limit_bytes is None:
        return None
    share_bytes = int(limit_bytes * policy.limit_percent / 100)
    room_bytes = max(0, limit_bytes - headroom_bytes(limit_bytes) - base_bytes)
    if checkpoint_bytes is None:
        return min(share_bytes, room_bytes)
    buffer_bytes = mapped_bytes(checkpoint_bytes)
    if buffer_bytes == 0:
        return 0
    wanted_bytes = min(room_bytes, max(share_bytes, policy.slots * buffer_bytes))
    return wanted_bytes // buffer_bytes * buffer_bytes


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Whether a plan's budget holds one checkpoint a slot.

    Attributes:
        fits: the answer.
        shortfall_bytes: how much more budget it would take; 0 where it fits.
        least_limit_bytes: the smallest limit that would fit.
        most_slots: the largest number of slots that fits this limit with the same base; None: any, since the
            model makes no checkpoints.
    """

    fits: bool
    shortfall_bytes: int
    least_limit_bytes: int
    most_slots: int | None


def fit_of(plan: MemoryPlan, slots: int) -> Fit | None:
    """Return whether the plan holds a checkpoint a slot; None where base, limit or checkpoint is unknown."""
    buffer_bytes, budget_bytes = plan.buffer_bytes, plan.state_budget_bytes
    least_bytes = least_limit_bytes(plan, slots)
    if buffer_bytes is None or budget_bytes is None or plan.base_bytes is None or least_bytes is None:
        return None
    need_bytes = plan.base_bytes + slots * buffer_bytes
    limit_bytes, headroom = plan.limit_bytes or 0, plan.headroom_bytes or 0
    shortfall_bytes = max(0, need_bytes + headroom - limit_bytes)
    return Fit(
        fits=shortfall_bytes == 0,
        shortfall_bytes=shortfall_bytes,
        least_limit_bytes=least_bytes,
        most_slots=budget_bytes // buffer_bytes if buffer_bytes else None,
    )


def least_limit_bytes(plan: MemoryPlan, slots: int) -> int | None:
    """Return the smallest limit that holds base, a checkpoint a slot and headroom; None: not known."""
    if plan.base_bytes is None or plan.buffer_bytes is None:
        return None
    need_bytes = plan.base_bytes + slots * plan.buffer_bytes
    # limit - max(256 MiB, ceil(5 % of it)) >= need: the larger of the two limits that follow.
    by_share = -int(-need_bytes / (1 - HEADROOM_SHARE) // 1)
    least_bytes = max(need_bytes + LEAST_HEADROOM_BYTES, by_share)
    if least_bytes - headroom_bytes(least_bytes) < need_bytes:
        least_bytes += 1  # the headroom is rounded up to a byte
    return least_bytes
