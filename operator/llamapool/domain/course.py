"""What one look decides, question by question: the plan, what was taken back, kills, and quiet times."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from llamapool.domain.conditions import DecisionReason, Outcome, TuningMode
from llamapool.domain.entries import box_evidence, entry_of, kill_evidence, plan_evidence, plan_message
from llamapool.domain.facts import Facts, Pod, ServerSample
from llamapool.domain.handled import HandledKill, counted, still_needed
from llamapool.domain.ladder import Ladder
from llamapool.domain.limits import Figure, Learned, Limits, Record
from llamapool.domain.memory import MemoryPlan
from llamapool.domain.oom import Kill, child_kill, kill_of
from llamapool.domain.policy import (
    Answer,
    Situation,
    answer_kill,
    answer_quiet,
    answer_reset,
    answer_rise,
)
from llamapool.domain.values import time_seconds

_SERVER = "server"
_RECOMMENDED = " (recommended, not done: spec.tuning.memory is Recommend)"


class Course:
    """One look; limits and record grow with each question.

    Attributes:
        facts: what is known.
        plan: the memory plan of one pod.
        now, seconds: the time, RFC 3339 and Unix seconds.
        record, limits: as they should be, by the questions that were asked so far.
    """

    def __init__(self, *, facts: Facts, plan: MemoryPlan, learned: Learned, now: str) -> None:
        self.facts, self.plan, self.learned, self.now = facts, plan, learned, now
        self.record = facts.record or Record(learned=learned)
        # Limits that were lost go on counting: later kills would seem to be of earlier limits otherwise.
        first = max(1, self.record.ladder.generation)
        self.limits = facts.written or Limits(generation=first, decision="initial", pool_cap_bytes=None)
        self.generation = first if facts.written is None else facts.written.generation + 1

    def follow_plan(self) -> None:
        """Let cap and budget follow the plan, on the rung where they are."""
        wanted = self.limits_on(self.record.ladder)
        if self.same(wanted):
            return
        cap_moved = wanted.pool_cap_bytes != self.limits.pool_cap_bytes
        self.adopt(
            reason=DecisionReason.POOL_CAP_CHANGED if cap_moved else DecisionReason.STATE_BUDGET_CHANGED,
            after=wanted,
            evidence=plan_evidence(self.facts.policy, self.plan, len(self.facts.sized_pods)),
            message=plan_message(self.facts.policy, self.plan, self.limits, wanted),
        )

    def reset(self) -> None:
        """Give again what was taken back under other circumstances."""
        answer = answer_reset(self.situation())
        if answer is not None:
            self._take(answer, {}, TuningMode.AUTO)

    def answer_kills(self) -> bool:
        """Decide every kill that was not decided before; say whether there was one.

        Without a record it cannot be told which ends were decided: they are taken for decided. A model
        that is new has no record and no pods.
        """
        kills = list(self._new_kills())
        for kill in kills:
            decided = ""
            if self.facts.record is not None:
                answer = answer_kill(kill, self.situation())
                decided = self._take(answer, kill_evidence(kill), self.facts.tuning.memory)
                self.record = replace(self.record, kills=counted(self.record.kills, kill))
            handled = HandledKill(key=kill.key, decision=decided, at=self.seconds, label=kill.label)
            self.record = replace(self.record, handled=(*self.record.handled, handled))
        if kills:
            self._forget_kills()
        return bool(kills)

    def look_ahead(self) -> None:
        """Act before a kill, or step back up once all is quiet; not while a trial runs."""
        mode = self.facts.tuning.memory
        if mode is TuningMode.OFF or self.record.running_trial is not None:
            return
        for rise in self.facts.rises:
            answer = answer_rise(rise, self.situation())
            if answer is not None and not self._recommended_already(answer):
                self._take(answer, {"pod": rise.pod_name, **box_evidence(rise.now)}, mode)
                return
        answer = answer_quiet(self.facts.calm, self.situation())
        if answer is not None:
            self._take(answer, {}, TuningMode.AUTO)

    def _forget_kills(self) -> None:
        """Drop from the record what can not be seen again."""
        seen = {kill.key for kill in map(kill_of, self.facts.ends) if kill is not None}
        running = {f"{pod.uid}/{pod.container_id}" for pod in self.facts.pods if pod.container_id}
        handled = still_needed(self.record.handled, seen=seen, running=running, now=self.seconds)
        self.record = replace(self.record, handled=handled)

    def _new_kills(self) -> Iterator[Kill]:
        """Yield kills in the order of their time; one that several containers of a pod tell of only once."""
        known = {one.key for one in self.record.handled}
        ends = (kill_of(end) for end in sorted(self.facts.ends, key=lambda end: end.finished_at))
        children = (_child_kill(pod, self.seconds, known) for pod in self.facts.pods)
        for kill in (*ends, *children):
            if kill is not None and kill.key not in known:
                known.add(kill.key)
                yield kill

    def _take(self, answer: Answer, evidence: Mapping[str, Figure], mode: TuningMode) -> str:
        """Adopt, recommend or pass over an answer, as tuning has it; the id of its entry, if it has one."""
        if mode is TuningMode.OFF:
            return ""
        after = self.limits_on(answer.ladder) if answer.changes else self.limits
        recommend = mode is TuningMode.RECOMMEND and answer.changes
        outcome = Outcome.NOTHING_CHANGED
        if answer.changes:
            outcome = Outcome.RECOMMENDED if recommend else Outcome.APPLIED
        return self.adopt(
            reason=answer.reason,
            after=after,
            evidence={**evidence, **answer.evidence},
            message=answer.message + (_RECOMMENDED if recommend else ""),
            outcome=outcome,
            ladder=None if recommend else answer.ladder,
        )

    def adopt(
        self,
        *,
        reason: DecisionReason,
        after: Limits,
        evidence: Mapping[str, Figure],
        message: str,
        outcome: Outcome = Outcome.APPLIED,
        ladder: Ladder | None = None,
    ) -> str:
        """Take a decision into the record, and into the limits where it is applied; return its id."""
        entry = entry_of(
            seed=f"{self.facts.model_uid}/{evidence.get('kill')}",
            time=self.now,
            reason=reason,
            before=self.limits,
            after=after,
            evidence=evidence,
            outcome=outcome,
            message=message,
        )
        record = self.record.adding(entry)
        if outcome is Outcome.APPLIED:
            record = replace(record, learned=self.learned)
            if not self.same(after):
                self.limits = replace(after, decision=entry.id)
        self.record = record if ladder is None else replace(record, ladder=ladder)
        return record.decisions[0].id

    def _recommended_already(self, answer: Answer) -> bool:
        last = self.record.decisions[0] if self.record.decisions else None
        return last is not None and last.outcome is Outcome.RECOMMENDED and last.reason == answer.reason

    def situation(self) -> Situation:
        """Return what answers are given on."""
        return Situation(
            plan=self.plan,
            pool_mode=self.facts.policy.mode,
            slots=self.facts.policy.slots,
            shape=self.facts.shape,
            tuning=self.facts.tuning,
            ladder=self.record.ladder,
            generation=self.generation,
            now=self.seconds,
        )

    def limits_on(self, ladder: Ladder) -> Limits:
        """Return the limits of plan and ladder; the pool's rungs are for a cap that the operator sets."""
        plan = self.plan
        cap_bytes = plan.pool_cap_bytes
        if self.facts.policy.automatic:
            cap_bytes = ladder.cap_bytes(cap_bytes, plan.buffer_bytes)
        trial = self.record.running_trial
        if trial is not None and not trial.pool_on:
            cap_bytes = 0
        ceilings = [ladder.ceiling_bytes, plan.state_budget_bytes if self.facts.shrinking else None]
        return replace(
            self.limits,
            generation=self.generation,
            pool_cap_bytes=cap_bytes,
            state_budget_bytes=min((one for one in ceilings if one is not None), default=None),
        )

    def same(self, limits: Limits) -> bool:
        """Return whether limits have the values that hold already."""
        return (limits.pool_cap_bytes, limits.state_budget_bytes) == (
            self.limits.pool_cap_bytes,
            self.limits.state_budget_bytes,
        )

    @property
    def seconds(self) -> float:
        """The time, Unix seconds."""
        return time_seconds(self.now)


def _child_kill(pod: Pod, now: float, known: set[str]) -> Kill | None:
    if not isinstance(pod.sample, ServerSample) or not pod.container_id:
        return None
    return child_kill(
        pod_uid=pod.uid,
        pod_name=pod.name,
        container=_SERVER,
        container_id=pod.container_id,
        now=pod.sample.accounting(at_seconds=now),
        handled=known,
    )
