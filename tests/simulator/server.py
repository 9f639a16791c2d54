"""A pooled server under load, as far as its memory goes: what it holds, sheds, reports, and what kills it."""

from dataclasses import dataclass, field

from llamapool.domain.black_box import BlackBox
from llamapool.domain.facts import ServerSample
from llamapool.domain.limits import Limits
from llamapool.domain.memory import headroom_bytes, mapped_bytes
from llamapool.domain.oom import Termination
from llamapool.domain.values import time_text

MIB, GIB = 1 << 20, 1 << 30
CHECKPOINT = int(149.626 * MIB)
BUFFER = mapped_bytes(CHECKPOINT)


@dataclass
class SimulatedServer:
    """One pod and the containers that follow each other in it. All sizes are bytes.

    Memory that grows slowly takes from the state, as the real server sees to every second; memory that grows
    in a burst does not give it the time, and kills it if there is no room.

    Attributes:
        limit: of the container.
        base: what it needs beside state.
        wanted_buffers: live checkpoints that its traffic would like.
        outside: memory of others in the container.
    """

    uid: str
    limit: int
    base: int = 400 * MIB
    wanted_buffers: int = 10
    outside: int = 0
    live: int = 0
    pooled: int = 0
    hits: int = 0
    misses: int = 0
    container: int = 0
    child_kills: int = 0
    limits: Limits | None = None
    ended: list[Termination] = field(default_factory=list)

    @property
    def budget(self) -> int:
        """The bound on its state: its own, or the ceiling where that is lower."""
        own = max(0, self.limit - headroom_bytes(self.limit) - self.base - self.outside)
        ceiling = None if self.limits is None else self.limits.state_budget_bytes
        return own if ceiling is None else min(own, ceiling)

    @property
    def cap(self) -> int:
        """The pool's cap in effect."""
        written = None if self.limits is None else self.limits.pool_cap_bytes
        return min(self.budget, self.limit // 16 if written is None else written)

    @property
    def unreclaimable(self) -> int:
        return self.base + self.outside + (self.live + self.pooled) * BUFFER

    def serve(self) -> None:
        """Some seconds of traffic: checkpoints come and go, and what must go for the budget does."""
        before = self.live
        self.live = min(self.wanted_buffers, self.budget // BUFFER)
        taken = max(0, self.live - before) + 1
        self.hits += min(taken, self.pooled)
        self.misses += max(0, taken - self.pooled)
        room = max(0, self.budget // BUFFER - self.live)
        self.pooled = min(self.cap // BUFFER, room)

    def burst(self, size: int, *, now: float) -> bool:
        """Memory outside the budget grows faster than state can give way; whether that killed the server."""
        if self.unreclaimable + size <= self.limit:
            return False
        self.end(137, "OOMKilled", now=now)
        return True

    def end(self, exit_code: int, reason: str, *, now: float, **fields: object) -> None:
        """The container ends, and the next one starts empty."""
        box = self.black_box(now)
        values: dict[str, object] = {
            "pod_uid": self.uid,
            "pod_name": self.uid,
            "container": "server",
            "init": False,
            "container_id": f"c{self.container}",
            "exit_code": exit_code,
            "reason": reason,
            "finished_at": time_text(now),
            "black_box": box,
            "limit_bytes": self.limit,
            **fields,
        }
        self.ended.append(Termination(**values))  # type: ignore[arg-type] # fields by name
        self.container += 1
        self.live = self.pooled = self.hits = self.misses = self.child_kills = 0

    def black_box(self, now: float) -> BlackBox:
        return BlackBox(
            at_seconds=int(now),
            limit_bytes=self.limit,
            unreclaimable_bytes=self.unreclaimable,
            base_bytes=self.base,
            state_bytes=(self.live + self.pooled) * BUFFER,
            budget_bytes=self.budget,
            pool_held_bytes=self.pooled * BUFFER,
            cap_bytes=self.cap,
            generation=None if self.limits is None else self.limits.generation,
            oom_kills=self.child_kills,
        )

    def sample(self) -> ServerSample:
        return ServerSample(
            limits_generation=None if self.limits is None else self.limits.generation,
            pool_cap_bytes=self.cap,
            pool_held_bytes=self.pooled * BUFFER,
            pool_hits=self.hits,
            pool_misses=self.misses,
            pool_declines=0,
            checkpoint_bytes=CHECKPOINT,
            state_bytes=(self.live + self.pooled) * BUFFER,
            state_budget_bytes=self.budget,
            base_bytes=self.base,
            cgroup_limit_bytes=self.limit,
            cgroup_unreclaimable_bytes=self.unreclaimable,
            cgroup_oom_kills=self.child_kills,
        )
