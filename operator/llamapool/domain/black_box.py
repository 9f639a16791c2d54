"""The server's black box: its accounting of the moment before it ended, kept in its termination message."""

import json
from dataclasses import dataclass

from llamapool.domain import values as read
from llamapool.errors import LimitsFileError

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class BlackBox:
    """What a server wrote last, at most a second before it ended. None: it did not know the figure.

    Attributes:
        at_seconds: when, Unix seconds.
        phase: `loading`, `ready` or `sleeping`.
        limit_bytes: its effective memory limit.
        unreclaimable_bytes: memory that the kernel cannot take back.
        base_bytes: what it needs beside sequence state.
        state_bytes: all sequence state, pooled buffers included.
        budget_bytes: its bound on that.
        pool_held_bytes: pooled buffers.
        cap_bytes: the pool's cap.
        generation: of the limits it applied.
        oom_kills: processes of its cgroup killed for memory so far.
        asked_bytes: being allocated at that moment.
        device_oom: a device ran out of memory.
    """

    at_seconds: int = 0
    phase: str = "ready"
    limit_bytes: int | None = None
    unreclaimable_bytes: int | None = None
    base_bytes: int | None = None
    state_bytes: int = 0
    budget_bytes: int | None = None
    pool_held_bytes: int = 0
    cap_bytes: int | None = None
    generation: int | None = None
    oom_kills: int | None = None
    asked_bytes: int = 0
    device_oom: bool = False


def parse_black_box(message: str | None) -> BlackBox | None:
    """Read a termination message; None if it is not a black box (another image, a text, another version)."""
    if message is None or not message.lstrip().startswith("{"):
        return None
    try:
        values = json.loads(message.strip("\x00 \n"))
        if not isinstance(values, dict) or values.get("v") != VERSION:
            return None
        return BlackBox(
            at_seconds=read.whole(values, "at"),
            phase=read.text(values, "phase"),
            limit_bytes=read.optional_whole(values, "limit_bytes"),
            unreclaimable_bytes=read.optional_whole(values, "unreclaimable_bytes"),
            base_bytes=read.optional_whole(values, "base_bytes"),
            state_bytes=read.whole(values, "state_bytes"),
            budget_bytes=read.optional_whole(values, "budget_bytes"),
            pool_held_bytes=read.whole(values, "pool_held_bytes"),
            cap_bytes=read.optional_whole(values, "cap_bytes"),
            generation=read.optional_whole(values, "generation"),
            oom_kills=read.optional_whole(values, "oom_kills"),
            asked_bytes=read.optional_whole(values, "asked_bytes") or 0,
            device_oom=values.get("device_oom") is True,
        )
    except (json.JSONDecodeError, LimitsFileError):
        return None
