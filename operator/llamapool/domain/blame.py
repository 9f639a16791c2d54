"""Whose memory it was when a container was killed, or nearly: the pool's, the state's, or neither's."""

from dataclasses import dataclass

from llamapool.domain.black_box import BlackBox
from llamapool.domain.ladder import Ladder, Pool
from llamapool.domain.memory import MemoryPlan, headroom_bytes
from llamapool.domain.quantity import format_bytes

_LEAST_SHARE_OF_LIMIT = 32
"""A pool that holds less than 1/32 of the limit could not have made the difference."""
_MUCH_FREE = 4
"""With more than 1/4 of the limit free a second before, what came then was large, or not the container's."""
_UNKNOWN_BUFFER = 32 << 20
"""Smallest buffer that is pooled; stands for a buffer whose size is not known yet."""


@dataclass(frozen=True, kw_only=True)
class Blame:
    """Who held what, beside what of it could have been given up. All in bytes.

    Attributes:
        limit_bytes: the container's limit; 0: unknown.
        pool_held_bytes: pooled buffers.
        live_bytes: sequence state in use.
        base_bytes: what the server needs beside state.
        outside_bytes: everything else: memory-backed volumes, other processes.
        free_bytes: what was left of the limit.
        pool_matters: the pool held enough to have made the difference.
        ceiling_bytes: the state budget that would have left the overage free; None: state cannot give that.
    """

    limit_bytes: int
    pool_held_bytes: int
    live_bytes: int
    base_bytes: int
    outside_bytes: int
    free_bytes: int
    pool_matters: bool
    ceiling_bytes: int | None

    def sentence(self) -> str:
        """Say for people who held what."""
        parts = (
            ("base", self.base_bytes),
            ("state in use", self.live_bytes),
            ("pooled", self.pool_held_bytes),
            ("other", self.outside_bytes),
        )
        held = ", ".join(f"{words} {format_bytes(size)}" for words, size in parts)
        return f"of a limit of {format_bytes(self.limit_bytes)}, a moment before: {held}{self._doubt()}"

    def _doubt(self) -> str:
        """Say that the node may have been short of memory, where the container was far from its limit.

        A pod's status calls both OOMKilled; only the kubelet of the node tells them apart.
        """
        if self.free_bytes * _MUCH_FREE <= self.limit_bytes:
            return ""
        return (
            f", free {format_bytes(self.free_bytes)}: a burst, or the node itself ran out of memory (kubectl"
            " get events --all-namespaces --field-selector reason=SystemOOM)"
        )


def blame_of(box: BlackBox, plan: MemoryPlan, ladder: Ladder, slots: int) -> Blame:
    """Return who held what by the last words of a server.

    Args:
        box: its accounting of the moment.
        plan: the pod's memory plan.
        ladder: what was taken back already.
        slots: a state budget below one buffer a slot is never chosen.
    """
    limit_bytes = box.limit_bytes or plan.limit_bytes or 0
    base_bytes = box.base_bytes or 0
    live_bytes = max(0, box.state_bytes - box.pool_held_bytes)
    unreclaimable_bytes = box.unreclaimable_bytes or 0
    outside_bytes = max(0, unreclaimable_bytes - base_bytes - box.state_bytes)
    matters = box.pool_held_bytes > 0 and box.pool_held_bytes * _LEAST_SHARE_OF_LIMIT >= limit_bytes
    return Blame(
        limit_bytes=limit_bytes,
        pool_held_bytes=box.pool_held_bytes,
        live_bytes=live_bytes,
        base_bytes=base_bytes,
        outside_bytes=outside_bytes,
        free_bytes=max(0, limit_bytes - unreclaimable_bytes - box.asked_bytes) if unreclaimable_bytes else 0,
        pool_matters=matters and ladder.pool is not Pool.OFF,
        ceiling_bytes=_ceiling_bytes(box, plan, ladder, slots, limit_bytes),
    )


def _ceiling_bytes(
    box: BlackBox, plan: MemoryPlan, ladder: Ladder, slots: int, limit_bytes: int
) -> int | None:
    """Return the state budget, one bounded step below what was in use: by the overage, in whole buffers.

    The overage is what exceeded the plan, and at least one buffer: growth of the last second is not seen.
    """
    buffer_bytes = plan.buffer_bytes or _UNKNOWN_BUFFER
    floor_bytes = slots * buffer_bytes
    bounds = [one for one in (box.budget_bytes, ladder.ceiling_bytes) if one]
    used_bytes = min([box.state_bytes, *bounds])
    room_bytes = max(0, limit_bytes - headroom_bytes(limit_bytes))
    overage_bytes = max((box.unreclaimable_bytes or 0) + box.asked_bytes - room_bytes, buffer_bytes)
    ceiling_bytes = max(floor_bytes, (used_bytes - overage_bytes) // buffer_bytes * buffer_bytes)
    frees = ceiling_bytes < used_bytes
    lowers = ladder.ceiling_bytes is None or ceiling_bytes < ladder.ceiling_bytes
    return ceiling_bytes if frees and lowers else None
