"""The operator's decisions over simulated time, with what must hold at every single step."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from llamapool.domain.decide import Decision, decide
from llamapool.domain.facts import Facts, Pod, Workload
from llamapool.domain.limits import Limits, Record
from llamapool.domain.memory import PoolPolicy
from llamapool.domain.observation import Observation
from llamapool.domain.tuning import Tuning
from llamapool.domain.values import time_text
from tests.simulator.server import BUFFER, GIB, SimulatedServer
from tests.unit.builders import policy

START = 1_764_547_200.0  # 2025-12-01T00:00:00Z
_UNASKED = ("PoolCapChanged", "StateBudgetChanged", "TuningReset", "TroublePassed")


class InvariantBrokenError(AssertionError):
    """Something that must always hold does not."""


@dataclass
class Simulation:
    """One model with one pod: the operator looks every few seconds, and writes what it decides.

    Attributes:
        tuning: what may be changed.
        server: the pod.
        kills: ends of containers that were not asked for, as the simulation made them.
        changes: time and reason of every change that tuning made.
        watched: called after each look.
    """

    tuning: Tuning = field(default_factory=Tuning)
    slots: int = 4
    server: SimulatedServer = field(default_factory=lambda: SimulatedServer("pod-0", 4 * GIB))
    now: float = START
    shape: str = "shape"
    written: Limits | None = None
    record: Record | None = None
    kills: int = 0
    steps: int = 0
    changes: list[tuple[float, str]] = field(default_factory=list)
    watched: Callable[["Simulation", Decision], None] = lambda *_: None
    check_twice_every: int = 50
    _observation: Observation = field(default_factory=Observation)
    _seen: Counter[str] = field(default_factory=Counter)

    @property
    def policy(self) -> PoolPolicy:
        return policy(slots=self.slots)

    def look(self, *, after: float = 5.0) -> Decision:
        """Time passes, the server serves, and the operator looks once.

        Raises:
            InvariantBrokenError: the decision broke what must always hold.
        """
        self.now += after
        self.steps += 1
        self.server.serve()
        facts = self._facts()
        decision = decide(facts, now=time_text(self.now))
        self._check(facts, decision)
        self.written, self.record = decision.limits, decision.record
        self.server.limits = decision.limits
        self.watched(self, decision)
        return decision

    def kill(self, size: int) -> None:
        """A burst outside the budget."""
        self.kills += self.server.burst(size, now=self.now)

    def end(self, exit_code: int, reason: str, **fields: object) -> None:
        """An end that has nothing to do with limits."""
        self.server.end(exit_code, reason, now=self.now, **fields)
        self.kills += 1

    def kill_child(self) -> None:
        """A process beside the server is killed."""
        self.server.child_kills += 1
        self.kills += 1

    def replace_pod(self) -> None:
        """The pod goes, and another one comes."""
        number = int(self.server.uid.removeprefix("pod-")) + 1
        old = self.server
        self.server = SimulatedServer(
            f"pod-{number}", old.limit, base=old.base, wanted_buffers=old.wanted_buffers, limits=self.written
        )

    def _facts(self) -> Facts:
        server = self.server
        pod = Pod(
            name=server.uid,
            uid=server.uid,
            running=True,
            ready=True,
            limit_reported=True,
            limit_bytes=server.limit,
            restarts=server.container,
            nudged_generation=None,
            trouble=None,
            sample=server.sample(),
            container_id=f"c{server.container}",
        )
        facts = Facts(
            model_uid="uid",
            shape=self.shape,
            policy=self.policy,
            written=self.written,
            record=self.record,
            workload=Workload(wanted_replicas=1, replicas=1, failure=None),
            pods=(pod,),
            ends=tuple(server.ended[-1:]),  # a pod's status tells of the last end only
            tuning=self.tuning,
        )
        return self._observation.take(facts, now=self.now)

    def _check(self, facts: Facts, decision: Decision) -> None:
        limits, record, plan = decision.limits, decision.record, decision.plan
        cap, ceiling = limits.pool_cap_bytes, limits.state_budget_bytes
        if cap is not None and (plan.pool_cap_bytes is None or not 0 <= cap <= plan.pool_cap_bytes):
            raise InvariantBrokenError(f"cap {cap} is not within the plan's {plan.pool_cap_bytes}")
        if cap is not None and cap % BUFFER:
            raise InvariantBrokenError(f"cap {cap} is no whole number of buffers")
        if ceiling is not None and ceiling < self.slots * BUFFER:
            raise InvariantBrokenError(f"budget {ceiling} is below one buffer a slot")
        if facts.written is not None and limits.generation - facts.written.generation not in (0, 1):
            raise InvariantBrokenError(
                f"generation went from {facts.written.generation} to {limits.generation}"
            )
        if facts.record is not None and sum(record.kills.values()) != self.kills:
            raise InvariantBrokenError(f"{self.kills} kills, counted {dict(record.kills)}")
        self._check_pace(facts, decision)
        if self.steps % self.check_twice_every == 0:
            self._check_idempotence(facts, decision)

    def _check_pace(self, facts: Facts, decision: Decision) -> None:
        known = {entry.id for entry in (facts.record.decisions if facts.record else ())}
        for entry in decision.record.decisions:
            moved = entry.outcome == "Applied" and entry.reason not in _UNASKED
            if entry.id in known or not moved:
                continue
            if self.changes and self.now - self.changes[-1][0] < self.tuning.cooldown_seconds:
                raise InvariantBrokenError(f"{entry.reason} within the cooldown after {self.changes[-1]}")
            self.changes.append((self.now, entry.reason))

    def _check_idempotence(self, facts: Facts, decision: Decision) -> None:
        seen = replace(facts, written=decision.limits, record=decision.record)
        again = decide(seen, now=time_text(self.now))
        if again.changed:
            raise InvariantBrokenError(f"decided twice: {again.record.decisions[:1]}")
        if Record.from_json(decision.record.to_json()) != decision.record:
            raise InvariantBrokenError("the record is not read back as it was written")
