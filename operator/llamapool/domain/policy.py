"""The policy: what is done about one kill, about memory that is about to run out, and once all is quiet.

Each question goes through an ordered tuple of small checks; the first that has an answer decides. An answer
is a value: the ladder as it should be, the reason, and what people are told.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from llamapool.domain.advice import advice_on
from llamapool.domain.black_box import BlackBox
from llamapool.domain.blame import Blame, blame_of
from llamapool.domain.conditions import DecisionReason, PoolMode, TuningMode
from llamapool.domain.ladder import (
    MOST_QUIET_SECONDS,
    TRANSITIONS,
    Budget,
    Health,
    Ladder,
    Pool,
    State,
    Transition,
    Trigger,
    Trouble,
    quiet_seconds,
    transition,
)
from llamapool.domain.limits import Figure
from llamapool.domain.memory import MemoryPlan, headroom_bytes
from llamapool.domain.oom import Kill
from llamapool.domain.quantity import format_bytes
from llamapool.domain.tuning import Tuning

_HORIZON_SECONDS = 60.0
"""Memory that would reach the limit within this time is acted on before it does."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What an answer is given on.

    Attributes:
        plan: the memory plan of one pod.
        pool_mode: who sets the cap.
        slots: requests served at once.
        shape: identifies model and flags.
        tuning: what may be changed.
        ladder: what was taken back already.
        generation: of the limits that a change would write.
        now: Unix seconds.
    """

    plan: MemoryPlan
    pool_mode: PoolMode
    slots: int
    shape: str
    tuning: Tuning
    ladder: Ladder
    generation: int
    now: float

    @property
    def cooling(self) -> bool:
        """Whether the last change is too recent for another one."""
        changed_at = self.ladder.changed_at
        return changed_at is not None and self.now - changed_at < self.tuning.cooldown_seconds

    def stepped(self, **changes: object) -> Ladder:
        """Return the ladder after a change made now."""
        ladder = self.ladder
        rested = ladder.pristine and not self.recent
        quiet = quiet_seconds(self.tuning.cooldown_seconds) if rested else ladder.quiet_seconds
        stepped = replace(
            ladder,
            shape=self.shape,
            limit_bytes=self.plan.limit_bytes,
            quiet_seconds=max(quiet, quiet_seconds(self.tuning.cooldown_seconds)),
            changed_at=self.now,
            generation=self.generation,
        )
        return replace(stepped, **changes)  # type: ignore[arg-type] # fields by name

    @property
    def recent(self) -> bool:
        """Whether there was trouble or change within the quiet time."""
        last_at = self.ladder.last_at()
        return last_at is not None and self.now - last_at < self.ladder.quiet_seconds


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is decided.

    Attributes:
        reason: one word.
        message: what was seen, what was done, and what to do next.
        ladder: as it should be.
        changes: limits move with it, so that tuning may hold it back.
    """

    reason: DecisionReason
    message: str
    ladder: Ladder
    changes: bool
    evidence: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Rise:
    """How a pod's memory moves.

    Attributes:
        pod_name: of the pod.
        now: its server's accounting.
        bytes_per_second: growth of its unreclaimable memory over the last samples.
    """

    pod_name: str
    now: BlackBox
    bytes_per_second: float


@dataclass(frozen=True, kw_only=True)
class Calm:
    """What is known of the pods while nothing is wrong; only given where every ready pod was scraped.

    Attributes:
        spare_bytes: memory that the pod with the least still has below its limit less the headroom; None: no
            pod has a limit.
        pool_wanted: buffers were missed or declined often.
    """

    spare_bytes: int | None
    pool_wanted: bool


def answer_kill(kill: Kill, situation: Situation) -> Answer:
    """Decide on one end of a container; there is always an answer, and at most one step in it."""
    answers = (check(kill, situation) for check in _KILL_CHECKS)
    return next((answer for answer in answers if answer is not None), None) or _nothing_to_blame(
        kill, situation
    )


def answer_rise(rise: Rise, situation: Situation) -> Answer | None:
    """Take the step before the kill: memory reaches the limit within a minute, and the step frees enough."""
    box, limit_bytes = rise.now, rise.now.limit_bytes
    if (
        limit_bytes is None
        or box.unreclaimable_bytes is None
        or rise.bytes_per_second <= 0
        or situation.cooling
    ):
        return None
    headroom = headroom_bytes(limit_bytes)
    ahead_bytes = box.unreclaimable_bytes + int(rise.bytes_per_second * _HORIZON_SECONDS)
    if box.unreclaimable_bytes <= limit_bytes - headroom // 2 or ahead_bytes <= limit_bytes:
        return None
    blame = _blame(box, situation)
    seen = f"pod {rise.pod_name}: memory rises by {format_bytes(int(rise.bytes_per_second))} a second"
    answer = _step(f"{seen}, {blame.sentence()}", blame, situation)
    if answer is None:
        return None
    needed_bytes = box.unreclaimable_bytes - (limit_bytes - headroom)
    freed_bytes = _freed_bytes(answer, blame, situation)
    return answer if freed_bytes >= needed_bytes else None


def answer_quiet(calm: Calm | None, situation: Situation) -> Answer | None:
    """Take one step back up, or say that trouble has passed; None: not yet, or nothing is taken back."""
    ladder = situation.ladder
    if ladder.pristine or situation.recent or situation.cooling:
        return None
    if ladder.trouble is not None:
        message = f"no kill for {ladder.quiet_seconds} s: the model is no longer degraded"
        passed = replace(ladder, trouble=None)
        reason = _row(Health.DEGRADED, Trigger.QUIET).reason
        return Answer(reason=reason, message=message, ladder=passed, changes=False)
    if calm is None or (calm.spare_bytes is not None and calm.spare_bytes < _needed_bytes(situation)):
        return None
    return _step_up(calm, situation)


def _needed_bytes(situation: Situation) -> int:
    """Return what must be spare for the next step back up: one buffer, if the step gives any.

    A ceiling that leaves as many whole buffers as the server's own budget holds nothing back: the limit was
    lowered since, say. The pool may fill that budget for good, so spare memory is not waited for.
    """
    buffer_bytes = situation.plan.buffer_bytes or 1
    ceiling_bytes, own_bytes = situation.ladder.ceiling_bytes, situation.plan.state_budget_bytes
    if ceiling_bytes is None or own_bytes is None:
        return buffer_bytes
    return buffer_bytes if own_bytes // buffer_bytes > ceiling_bytes // buffer_bytes else 0


def _step_up(calm: Calm, situation: Situation) -> Answer | None:
    """Take the last step back: of the state budget, which was lowered last, then of the pool."""
    ladder = situation.ladder
    room = "no memory limit" if calm.spare_bytes is None else f"{format_bytes(calm.spare_bytes)} to spare"
    spare = f"no trouble for {ladder.quiet_seconds} s and {room}"
    if ladder.ceilings:
        reason = _row(Budget.LOWERED, Trigger.QUIET).reason
        return _relaxed(reason, spare, situation, ceilings=ladder.ceilings[:-1])
    if situation.pool_mode is not PoolMode.AUTO:
        return None
    for trigger in (Trigger.QUIET, *((Trigger.QUIET_AND_WANTED,) if calm.pool_wanted else ())):
        row = transition(ladder.pool, trigger)
        if row is not None:
            return _relaxed(row.reason, spare, situation, pool=row.after, harmful=False)
    return None


def answer_reset(situation: Situation) -> Answer | None:
    """Forget what was taken back under a smaller limit, another model, or by tuning that is off now."""
    ladder, limit_bytes = situation.ladder, situation.plan.limit_bytes
    if ladder.pristine:
        return None
    if ladder.shape != situation.shape:
        why = "model or flags have changed"
    elif None not in (limit_bytes, ladder.limit_bytes) and (limit_bytes or 0) > (ladder.limit_bytes or 0):
        why = f"the limit was raised to {format_bytes(limit_bytes or 0)}"
    elif not ladder.harmful and situation.tuning.memory is not TuningMode.AUTO:
        why = f"spec.tuning.memory is {situation.tuning.memory}"
    elif ladder.harmful and situation.tuning.ttft is not TuningMode.AUTO:
        why = f"spec.tuning.ttft is {situation.tuning.ttft}"
    else:
        return None
    return Answer(
        reason=DecisionReason.TUNING_RESET,
        message=f"{why}: what was taken back is given again",
        ladder=Ladder(changed_at=situation.now, generation=situation.generation),
        changes=True,
    )


def answer_harm(message: str, situation: Situation) -> Answer | None:
    """Turn the pool off after a trial showed it to harm; None: it is off, or not ours to turn."""
    row = transition(situation.ladder.pool, Trigger.POOL_HARMS)
    if row is None or situation.pool_mode is not PoolMode.AUTO:
        return None
    ladder = situation.stepped(pool=row.after, harmful=True, trouble_at=situation.now)
    return Answer(reason=row.reason, message=message, ladder=ladder, changes=True)


KillCheck = Callable[[Kill, Situation], Answer | None]


def _not_ours(kill: Kill, situation: Situation) -> Answer | None:
    advice = advice_on(kill)
    if advice is None:
        return None
    reason, words = advice
    told = f": {kill.message}" if kill.message else ""
    return Answer(
        reason=reason, message=f"{_seen(kill)}{told}: {words}", ladder=situation.ladder, changes=False
    )


def _under_earlier_limits(kill: Kill, situation: Situation) -> Answer | None:
    ladder, box = situation.ladder, kill.black_box
    generation = None if box is None else box.generation
    if ladder.changed_at is None or generation is None or generation >= ladder.generation:
        return None
    message = (
        f"{_seen(kill)} under generation {generation}: it says nothing of the limits of generation"
        f" {ladder.generation}, which are in effect since. Nothing more is changed"
    )
    return _held(DecisionReason.UNDER_EARLIER_LIMITS, message, situation)


def _cooling_down(kill: Kill, situation: Situation) -> Answer | None:
    if not situation.cooling:
        return None
    message = (
        f"{_seen(kill)}, less than {situation.tuning.cooldown_seconds} s after the last change: nothing more"
        " is changed until its effect is known"
    )
    return _held(DecisionReason.COOLING_DOWN, message, situation)


def _pool_or_state(kill: Kill, situation: Situation) -> Answer | None:
    blame = _blame(kill.black_box or BlackBox(), situation)
    return _step(f"{_seen(kill)}, {blame.sentence()}", blame, situation)


def _nothing_to_blame(kill: Kill, situation: Situation) -> Answer:
    blame = _blame(kill.black_box or BlackBox(), situation)
    buffer_bytes = situation.plan.buffer_bytes or 0
    ours_bytes = blame.pool_held_bytes + max(0, blame.live_bytes - situation.slots * buffer_bytes)
    stepped = situation.ladder.pool is not Pool.FULL or bool(situation.ladder.ceilings)
    if stepped or (situation.pool_mode is PoolMode.FIXED and ours_bytes):
        reason = DecisionReason.NO_STEP_LEFT
        what = "there is no step left to take: state is at one buffer a slot"
        if situation.pool_mode is PoolMode.FIXED and blame.pool_held_bytes:
            what = f"the pool held {format_bytes(blame.pool_held_bytes)} of the cap that spec.pool.cap sets"
    else:
        reason = DecisionReason.MEMORY_OUTSIDE_STATE
        what = "neither pool nor state held what was missing"
    advice = (
        "raise spec.resources.limits.memory, lower spec.server.slots or contextSize, or look for what else"
        " uses the container's memory (memory-backed volumes, other processes)"
    )
    message = f"{_seen(kill)}, {blame.sentence()}; {what}. Nothing is changed; {advice}"
    trouble = Trouble(reason=reason, message=message)
    ladder = replace(
        situation.ladder,
        shape=situation.ladder.shape or situation.shape,
        limit_bytes=situation.ladder.limit_bytes or situation.plan.limit_bytes,
        trouble=trouble,
        trouble_at=situation.now,
    )
    return Answer(reason=reason, message=message, ladder=ladder, changes=False)


_KILL_CHECKS: tuple[KillCheck, ...] = (
    _not_ours,
    _under_earlier_limits,
    _cooling_down,
    _pool_or_state,
)


def _step(seen: str, blame: Blame, situation: Situation) -> Answer | None:
    """Take one step down: the pool's where it held enough to matter, else the state budget's."""
    ladder = situation.ladder
    row = transition(ladder.pool, Trigger.POOL_BLAMED)
    if blame.pool_matters and row is not None and situation.pool_mode is PoolMode.AUTO:
        stepped = situation.stepped(pool=row.after, harmful=False, trouble=None, trouble_at=situation.now)
        step = "the pool's cap is halved" if row.after is Pool.HALF else "the pool keeps nothing from now on"
        return Answer(reason=row.reason, message=f"{seen}; {step}", ladder=stepped, changes=True)
    row = transition(ladder.budget, Trigger.STATE_BLAMED)
    if blame.ceiling_bytes is not None and row is not None:
        ceilings = (*ladder.ceilings, blame.ceiling_bytes)
        stepped = situation.stepped(ceilings=ceilings, trouble=None, trouble_at=situation.now)
        step = f"sequence state is held to {format_bytes(blame.ceiling_bytes)}"
        return Answer(reason=row.reason, message=f"{seen}; {step}", ladder=stepped, changes=True)
    return None


def _freed_bytes(answer: Answer, blame: Blame, situation: Situation) -> int:
    """Return how much a step gives back at once, by what is held now."""
    if answer.ladder.ceiling_bytes != situation.ladder.ceiling_bytes:
        return blame.live_bytes + blame.pool_held_bytes - (answer.ladder.ceiling_bytes or 0)
    cap_bytes = answer.ladder.cap_bytes(situation.plan.pool_cap_bytes, situation.plan.buffer_bytes)
    return 0 if cap_bytes is None else max(0, blame.pool_held_bytes - cap_bytes)


def _relaxed(reason: DecisionReason, why: str, situation: Situation, **steps: object) -> Answer:
    """Return a step back up, after which it has to be quiet twice as long for the next one."""
    longer = min(MOST_QUIET_SECONDS, 2 * situation.ladder.quiet_seconds)
    ladder = replace(situation.stepped(**steps), quiet_seconds=longer)
    return Answer(reason=reason, message=f"{why}: one step back up", ladder=ladder, changes=True)


def _row(before: State, trigger: Trigger) -> Transition:
    return next(row for row in TRANSITIONS if (row.before, row.trigger) == (before, trigger))


def _held(reason: DecisionReason, message: str, situation: Situation) -> Answer:
    ladder = replace(situation.ladder, trouble_at=situation.now)
    return Answer(reason=reason, message=message, ladder=ladder, changes=False)


def _blame(box: BlackBox, situation: Situation) -> Blame:
    return blame_of(box, situation.plan, situation.ladder, situation.slots)


def _seen(kill: Kill) -> str:
    """Say for people what ended."""
    what = f"pod {kill.pod_name}, container {kill.container}: {kill.cause} in phase {kill.phase}"
    code = "" if kill.exit_code is None else f", exit code {kill.exit_code}"
    return f"{what}{code}"
