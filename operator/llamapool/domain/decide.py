"""From facts to a decision: which limits to write, on what evidence. Same facts and time, same decision."""

from dataclasses import dataclass, replace

from llamapool.domain.course import Course
from llamapool.domain.facts import Facts, ServerSample
from llamapool.domain.handled import looping
from llamapool.domain.limits import Learned, Limits, Record
from llamapool.domain.memory import MemoryPlan, make_plan
from llamapool.domain.trying import abandon_trial, watch_ttft
from llamapool.domain.ttft import Assessment
from llamapool.domain.values import time_seconds


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What should hold for a model.

    Attributes:
        limits: limits.json as it should be.
        record: record.json as it should be, this decision included.
        changed: the two differ from what is in the cluster and have to be written.
        plan: the memory plan of one pod, the smallest where they differ.
        limit_reported: a pod's status said which limit it has, or that it has none.
        looping: kills for memory within ten minutes, if there are three or more; else 0.
        ttft: whether the time to first token is as it should be.
    """

    limits: Limits
    record: Record
    changed: bool
    plan: MemoryPlan
    limit_reported: bool
    looping: int
    ttft: Assessment

    def put_off(self, facts: Facts, *, now: str) -> "Decision":
        """Return the decision on a model that is paused: limits and record stay as they are.

        A trial ends before that: it may have the pool off just then, and would leave it so.

        Args:
            facts: what this was decided on.
            now: the time, RFC 3339, UTC.
        """
        if facts.written is None or facts.record is None:
            return replace(self, record=facts.record or Record(learned=self.record.learned), changed=False)
        course = Course(facts=facts, plan=self.plan, learned=facts.record.learned, now=now)
        abandon_trial(course, "the model was paused while it ran")
        limits, record = course.limits, course.record
        return replace(
            self, limits=limits, record=record, changed=(limits, record) != (facts.written, facts.record)
        )


def decide(facts: Facts, *, now: str) -> Decision:
    """Decide a model's limits.

    Args:
        facts: what is known.
        now: the time, RFC 3339, UTC.
    """
    learned, limit_reported = _learn(facts)
    plan = make_plan(
        policy=facts.policy,
        limit_bytes=learned.limit_bytes,
        base_bytes=learned.base_bytes,
        checkpoint_bytes=_checkpoint_bytes(facts, learned),
        predicted_base_bytes=facts.need.base_bytes,
    )
    course = Course(facts=facts, plan=plan, learned=learned, now=now)
    course.follow_plan()
    course.reset()
    killed = course.answer_kills()
    ttft = watch_ttft(course, killed=killed)
    if not killed:
        course.look_ahead()
    limits, record = course.limits, course.record
    return Decision(
        limits=limits,
        record=record,
        changed=(limits, record) != (facts.written, facts.record),
        plan=plan,
        limit_reported=limit_reported,
        looping=looping(record.handled, now=time_seconds(now)),
        ttft=ttft,
    )


def _checkpoint_bytes(facts: Facts, learned: Learned) -> int | None:
    """Return what was seen, else what is predicted; where windows may not be full yet, the larger."""
    seen, predicted = learned.checkpoint_bytes, facts.need.checkpoint_bytes
    if seen is None or (predicted is not None and facts.need.grows):
        return max(seen or 0, predicted) if predicted is not None else seen
    return seen


def _learn(facts: Facts) -> tuple[Learned, bool]:
    """Merge what the servers report now with what they reported before they restarted.

    A base only grows while shape and limit stay: the server's own figure moves by some MiB, and a cap that
    followed it down and up would flap.
    """
    remembered = Learned(shape=facts.shape)
    if facts.record is not None and facts.record.learned.shape == facts.shape:
        remembered = facts.record.learned
    reported = [pod for pod in facts.sized_pods if pod.limit_reported]
    limits = [pod.planned_limit_bytes for pod in reported]
    bounded = [limit for limit in limits if limit is not None]
    limit_bytes = min(bounded, default=None) if reported else remembered.limit_bytes
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
