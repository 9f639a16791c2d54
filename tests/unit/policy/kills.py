"""Kills for tests of the policy, and a model that they befall, look after look."""

from dataclasses import replace
from typing import Any

from llamapool.domain.black_box import BlackBox
from llamapool.domain.conditions import PoolMode, TuningMode
from llamapool.domain.decide import Decision, decide
from llamapool.domain.facts import Pod, ServerSample
from llamapool.domain.limits import DecisionEntry, Limits
from llamapool.domain.oom import Termination
from llamapool.domain.policy import Calm
from llamapool.domain.tuning import Tuning
from llamapool.domain.values import time_text
from tests.unit.builders import BUFFER, CHECKPOINT, GIB, MIB, facts, policy

START = 1_764_590_400.0
BASE = 400 * MIB
LIMIT = 4 * GIB


def box(**figures: Any) -> BlackBox:
    """The last words of a server under 4 GiB: base 400 MiB, ten live buffers, four pooled."""
    live, pooled = figures.pop("live", 10), figures.pop("pooled", 4)
    values = {
        "limit_bytes": LIMIT,
        "base_bytes": BASE,
        "state_bytes": (live + pooled) * BUFFER,
        "pool_held_bytes": pooled * BUFFER,
        "unreclaimable_bytes": BASE + (live + pooled) * BUFFER,
        "budget_bytes": 3400 * MIB,
        "oom_kills": 0,
    }
    return BlackBox(**(values | figures))


def end(number: int = 1, *, box: BlackBox | None = None, **fields: Any) -> Termination:
    """The server's container number so many of one pod, killed for memory."""
    values: dict[str, Any] = {
        "pod_uid": "uid-of-model-1",
        "pod_name": "model-1",
        "container": "server",
        "init": False,
        "container_id": f"c{number}",
        "exit_code": 137,
        "reason": "OOMKilled",
        "finished_at": time_text(START + number),
        "black_box": box,
        "limit_bytes": LIMIT,
    }
    return Termination(**(values | fields))


class Model:
    """A model whose decisions are written, as the operator does it; time passes between looks."""

    def __init__(
        self, tuning: Tuning | None = None, *, mode: PoolMode = PoolMode.AUTO, slots: int = 4
    ) -> None:
        self.now = START
        cap = 8 * BUFFER if mode is PoolMode.FIXED else None
        self.facts = replace(
            facts(self.pod(), asked=policy(mode, cap=cap, slots=slots)),
            tuning=tuning or Tuning(),
        )
        self.look()

    @staticmethod
    def pod(limit: int | None = LIMIT, **figures: Any) -> Pod:
        sample = ServerSample(
            checkpoint_bytes=CHECKPOINT,
            base_bytes=BASE,
            cgroup_limit_bytes=limit,
            cgroup_unreclaimable_bytes=GIB,
            **figures,
        )
        return Pod(
            name="model-1",
            uid="uid-of-model-1",
            running=True,
            ready=True,
            limit_reported=True,
            limit_bytes=limit,
            restarts=0,
            nudged_generation=None,
            trouble=None,
            sample=sample,
            container_id="running",
        )

    def look(self, *ends: Termination, after: float = 5, **seen: Any) -> Decision:
        """One look, some seconds after the last, and what it decides is written."""
        self.now += after
        seen_now = replace(self.facts, ends=ends, **seen)
        decision = decide(seen_now, now=time_text(self.now))
        self.facts = replace(self.facts, written=decision.limits, record=decision.record)
        return decision

    def look_calmly(self, *, after: float, wanted: bool = True) -> Decision:
        return self.look(after=after, calm=Calm(spare_bytes=GIB, pool_wanted=wanted))

    def tune(self, **changes: Any) -> None:
        self.facts = replace(self.facts, tuning=replace(self.facts.tuning, **changes))

    @property
    def limits(self) -> Limits:
        assert self.facts.written is not None
        return self.facts.written

    @property
    def cap_buffers(self) -> int:
        assert self.limits.pool_cap_bytes is not None
        return self.limits.pool_cap_bytes // BUFFER

    @property
    def decisions(self) -> tuple[DecisionEntry, ...]:
        assert self.facts.record is not None
        return self.facts.record.decisions

    @property
    def reasons(self) -> list[str]:
        """Reasons of all decisions, the oldest first; the plan's own left out."""
        return [entry.reason for entry in reversed(self.decisions) if entry.reason != "PoolCapChanged"]


QUICK = Tuning(cooldown_seconds=0)
RECOMMENDING = Tuning(memory=TuningMode.RECOMMEND)
OFF = Tuning(memory=TuningMode.OFF)
