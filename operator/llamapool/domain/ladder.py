"""The ladder: how far the pool and the state budget were taken back, as a table of transitions.

The table is the policy's whole freedom: nothing else changes a rung. docs/tuning.md shows it as a diagram
that is generated from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from llamapool.domain import values as read
from llamapool.domain.conditions import DecisionReason
from llamapool.errors import LimitsFileError

LEAST_QUIET_SECONDS = 3600
MOST_QUIET_SECONDS = 7 * 24 * 3600
_COOLDOWNS_OF_QUIET = 12


class Pool(StrEnum):
    """How much of the plan's pool cap is given."""

    FULL = "Full"
    HALF = "Half"
    OFF = "Off"


class Budget(StrEnum):
    """Whether the state budget is the server's own, or bounded by a ceiling."""

    OWN = "Own"
    LOWERED = "Lowered"


class Health(StrEnum):
    """Whether there is a step left."""

    SOUND = "Sound"
    DEGRADED = "Degraded"


State = Pool | Budget | Health


class Trigger(StrEnum):
    """What moves a rung."""

    POOL_BLAMED = "pool blamed for memory"
    STATE_BLAMED = "state blamed for memory"
    NOTHING_TO_BLAME = "neither to blame, or no step left"
    POOL_HARMS = "trial: pool harms"
    QUIET = "quiet, memory to spare"
    QUIET_AND_WANTED = "quiet, memory to spare, pool misses"
    RESET = "model, flags or mode changed, or limit raised"


@dataclass(frozen=True)
class Transition:
    """One row of the table."""

    before: State
    trigger: Trigger
    after: State
    reason: DecisionReason


TRANSITIONS = (
    Transition(Pool.FULL, Trigger.POOL_BLAMED, Pool.HALF, DecisionReason.POOL_HALVED),
    Transition(Pool.HALF, Trigger.POOL_BLAMED, Pool.OFF, DecisionReason.POOL_TURNED_OFF),
    Transition(Pool.FULL, Trigger.POOL_HARMS, Pool.OFF, DecisionReason.POOL_TURNED_OFF),
    Transition(Pool.HALF, Trigger.POOL_HARMS, Pool.OFF, DecisionReason.POOL_TURNED_OFF),
    Transition(Pool.OFF, Trigger.QUIET, Pool.HALF, DecisionReason.POOL_RETRIED),
    Transition(Pool.HALF, Trigger.QUIET_AND_WANTED, Pool.FULL, DecisionReason.POOL_RESTORED),
    Transition(Pool.HALF, Trigger.RESET, Pool.FULL, DecisionReason.TUNING_RESET),
    Transition(Pool.OFF, Trigger.RESET, Pool.FULL, DecisionReason.TUNING_RESET),
    Transition(Budget.OWN, Trigger.STATE_BLAMED, Budget.LOWERED, DecisionReason.STATE_BUDGET_LOWERED),
    Transition(Budget.LOWERED, Trigger.STATE_BLAMED, Budget.LOWERED, DecisionReason.STATE_BUDGET_LOWERED),
    Transition(Budget.LOWERED, Trigger.QUIET, Budget.OWN, DecisionReason.STATE_BUDGET_RAISED),
    Transition(Budget.LOWERED, Trigger.RESET, Budget.OWN, DecisionReason.TUNING_RESET),
    Transition(Health.SOUND, Trigger.NOTHING_TO_BLAME, Health.DEGRADED, DecisionReason.NO_STEP_LEFT),
    Transition(Health.DEGRADED, Trigger.QUIET, Health.SOUND, DecisionReason.TROUBLE_PASSED),
    Transition(Health.DEGRADED, Trigger.RESET, Health.SOUND, DecisionReason.TUNING_RESET),
)
"""A lowered budget is raised by the last step taken; it is the server's own again once all are taken back."""

_NEXT = {(row.before, row.trigger): row for row in TRANSITIONS}


def transition(before: State, trigger: Trigger) -> Transition | None:
    """Return the row for a state and a trigger; None: the trigger moves nothing there."""
    return _NEXT.get((before, trigger))


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why a model is degraded: the last kill that no step could answer.

    Attributes:
        reason: of the decision on it.
        message: what was seen, and what to do.
    """

    reason: DecisionReason
    message: str


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """What tuning has taken back of a model's plan, and when. Times are Unix seconds.

    Attributes:
        shape, limit_bytes: model, flags and limit that it was taken back under.
        pool: rung of the pool.
        harmful: the pool is off because a trial showed it to harm, not for memory.
        ceilings: ceilings on the state budget in bytes, each lower than the one before; the last one holds.
        trouble: why there is no step left; None: there is one, or none is needed.
        changed_at: of the last change; None: never.
        generation: of the limits that the last change wrote.
        trouble_at: of the last kill for memory, or harm; None: never.
        quiet_seconds: how long it must be quiet before a step back up.
    """

    shape: str = ""
    limit_bytes: int | None = None
    pool: Pool = Pool.FULL
    harmful: bool = False
    ceilings: tuple[int, ...] = ()
    trouble: Trouble | None = None
    changed_at: float | None = None
    generation: int = 0
    trouble_at: float | None = None
    quiet_seconds: int = LEAST_QUIET_SECONDS

    @property
    def budget(self) -> Budget:
        """The rung of the state budget."""
        return Budget.LOWERED if self.ceilings else Budget.OWN

    @property
    def health(self) -> Health:
        """Whether there is a step left."""
        return Health.SOUND if self.trouble is None else Health.DEGRADED

    @property
    def ceiling_bytes(self) -> int | None:
        """The ceiling on the state budget that holds; None: none."""
        return self.ceilings[-1] if self.ceilings else None

    @property
    def pristine(self) -> bool:
        """Whether nothing is taken back."""
        return self.pool is Pool.FULL and not self.ceilings and self.trouble is None

    def last_at(self) -> float | None:
        """Return the time of the last change or trouble; None: never."""
        times = [time for time in (self.changed_at, self.trouble_at) if time is not None]
        return max(times, default=None)

    def cap_bytes(self, planned_bytes: int | None, buffer_bytes: int | None) -> int | None:
        """Return what the rung leaves of the plan's pool cap, in whole buffers.

        Args:
            planned_bytes: the plan's cap; None: the server's own rule, which only Off changes.
            buffer_bytes: what one checkpoint maps; None: not known yet.
        """
        if self.pool is Pool.OFF:
            return 0
        if self.pool is Pool.FULL or planned_bytes is None:
            return planned_bytes
        return planned_bytes // 2 // (buffer_bytes or 1) * (buffer_bytes or 1)

    def to_dict(self) -> dict[str, Any]:
        """Write it as in record.json."""
        return {
            "shape": self.shape,
            "limitBytes": self.limit_bytes,
            "pool": self.pool.value,
            "harmful": self.harmful,
            "stateBudgetCeilings": list(self.ceilings),
            "trouble": None
            if self.trouble is None
            else {"reason": self.trouble.reason.value, "message": self.trouble.message},
            "changedAt": None if self.changed_at is None else read.time_text(self.changed_at),
            "generation": self.generation,
            "troubleAt": None if self.trouble_at is None else read.time_text(self.trouble_at),
            "quietSeconds": self.quiet_seconds,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read it back.

        Raises:
            LimitsFileError: a field is missing or of another kind.
        """
        if not values:
            return cls()  # a record of a release without a ladder
        ceilings = values.get("stateBudgetCeilings")
        if not isinstance(ceilings, list) or not all(isinstance(one, int) and one >= 0 for one in ceilings):
            raise LimitsFileError(f"stateBudgetCeilings: {ceilings!r} must be a list of whole numbers")
        trouble = read.optional_mapping(values, "trouble")
        try:
            return cls(
                shape=read.text(values, "shape"),
                limit_bytes=read.optional_whole(values, "limitBytes"),
                pool=Pool(read.text(values, "pool")),
                harmful=values.get("harmful") is True,
                ceilings=tuple(ceilings),
                trouble=Trouble(
                    reason=DecisionReason(read.text(trouble, "reason")), message=read.text(trouble, "message")
                )
                if trouble
                else None,
                changed_at=read.optional_time(values, "changedAt"),
                generation=read.whole(values, "generation"),
                trouble_at=read.optional_time(values, "troubleAt"),
                quiet_seconds=read.whole(values, "quietSeconds"),
            )
        except ValueError as error:
            raise LimitsFileError(f"ladder: {error}") from error


def quiet_seconds(cooldown_seconds: int) -> int:
    """Return how long it must be quiet before the first step back up."""
    return min(MOST_QUIET_SECONDS, max(LEAST_QUIET_SECONDS, _COOLDOWNS_OF_QUIET * cooldown_seconds))


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for region in (Pool, Budget, Health):
        rows = [row for row in TRANSITIONS if isinstance(row.before, region)]
        lines.append(f"    state {region.__name__} {{")
        lines.append(f"        [*] --> {next(iter(region)).value}")
        lines += [f"        {row.before} --> {row.after}: {row.trigger}" for row in rows]
        lines.append("    }")
    return "\n".join(lines) + "\n"
