"""What the operator writes for a model's servers (limits.json) and remembers for itself (record.json).

Both live in one ConfigMap, so that a limit and the reason for it are written in one step.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from llamapool.domain import values as read
from llamapool.domain.conditions import Outcome
from llamapool.domain.handled import HandledKill
from llamapool.domain.ladder import Ladder
from llamapool.domain.trial import Trial
from llamapool.domain.ttft import Baseline
from llamapool.errors import LimitsFileError

DECISIONS_KEPT = 20
_REPEATS_SECONDS = 3600
_NOTHING = Outcome.NOTHING_CHANGED

Figure = int | str | None
"""One figure of a decision's evidence."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The ceilings that a server applies live; the content of limits.json.

    Attributes:
        generation: counts the changes; a server applies any generation or content that differs from its own.
        decision: id of the decision that wrote it.
        pool_cap_bytes: most bytes of mapped checkpoint buffers kept for reuse; None: the server's own rule.
        state_budget_bytes: ceiling on the server's own state budget; None: no ceiling.
    """

    generation: int
    decision: str
    pool_cap_bytes: int | None
    state_budget_bytes: int | None = None

    def to_json(self) -> str:
        """Write the text of limits.json."""
        return json.dumps(
            {
                "generation": self.generation,
                "decision": self.decision,
                "poolCapBytes": self.pool_cap_bytes,
                "stateBudgetBytes": self.state_budget_bytes,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read limits.json.

        Raises:
            LimitsFileError: it is not an object, or a field is missing or of another kind; names the field.
        """
        values = read.load(text, "limits.json")
        return cls(
            generation=read.whole(values, "generation"),
            decision=read.text(values, "decision"),
            pool_cap_bytes=read.optional_whole(values, "poolCapBytes"),
            state_budget_bytes=read.optional_whole(values, "stateBudgetBytes"),
        )


@dataclass(frozen=True, kw_only=True)
class DecisionEntry:
    """One decision, with what it was made on.

    Attributes:
        id: names the decision in limits.json, in the Event and in status.
        time: when it was made, RFC 3339, UTC.
        reason: one CamelCase word, from `conditions.DecisionReason`.
        before: the changed limits as they were.
        after: the changed limits as written.
        evidence: the figures that it was made on.
        outcome: whether limits were changed, would have been, or were left alone.
        message: what was seen, what was done and why, and what to do next, for people.
        count: how often the same was seen and nothing changed; the latest is told.
    """

    id: str
    time: str
    reason: str
    before: Mapping[str, Figure]
    after: Mapping[str, Figure]
    evidence: Mapping[str, Figure]
    outcome: Outcome = Outcome.APPLIED
    message: str = ""
    count: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Write the entry as in record.json and in status.decisions."""
        return {
            "id": self.id,
            "time": self.time,
            "reason": self.reason,
            "outcome": self.outcome.value,
            "count": self.count,
            "message": self.message,
            "from": dict(self.before),
            "to": dict(self.after),
            "evidence": dict(self.evidence),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read one entry.

        Raises:
            LimitsFileError: a field is missing or of another kind.
        """
        return cls(
            id=read.text(values, "id"),
            time=read.text(values, "time"),
            reason=read.text(values, "reason"),
            before=read.mapping(values, "from"),
            after=read.mapping(values, "to"),
            evidence=read.mapping(values, "evidence"),
            outcome=_outcome(values),
            message=read.optional_text(values, "message") or "",
            count=read.optional_whole(values, "count") or 1,
        )


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What the servers of one shape have reported, kept over their restarts.

    Attributes:
        shape: identifies model and flags; figures of another shape do not count.
        checkpoint_bytes: size of the data of one checkpoint; None: not seen yet.
        base_bytes: highest base seen under `limit_bytes`; None: not seen yet.
        limit_bytes: the pod limit that `base_bytes` was seen under.
    """

    shape: str
    checkpoint_bytes: int | None = None
    base_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """The operator's memory of a model; the content of record.json.

    Attributes:
        learned: figures kept over restarts of the servers.
        decisions: the last 20, newest first.
        ladder: what tuning has taken back.
        handled: kills that were decided, as far as they can still be seen.
        kills: how many there were in all, by cause and phase.
        baselines: usual times to first token, the last updated first.
        breached: the time to first token is worse than it should be, and that was told.
        trial: the trial that runs, or the last one.
        trial_request: the last request for a trial that was seen; empty: none is there.
    """

    learned: Learned
    decisions: tuple[DecisionEntry, ...] = field(default=())
    ladder: Ladder = field(default_factory=Ladder)
    handled: tuple[HandledKill, ...] = ()
    kills: Mapping[str, int] = field(default_factory=dict)
    baselines: tuple[Baseline, ...] = ()
    breached: bool = False
    trial: Trial | None = None
    trial_request: str = ""

    @property
    def running_trial(self) -> Trial | None:
        """The trial that runs; None: none does."""
        return self.trial if self.trial is not None and self.trial.running else None

    def adding(self, entry: DecisionEntry) -> "Record":
        """Return the record after one more decision, the oldest beyond 20 dropped.

        One that changes nothing and follows, within an hour, another of the same reason, takes its place and
        is counted there: a pod that crashes over and over must not push everything else out.
        """
        last = self.decisions[0] if self.decisions else None
        if last is not None and "kill" in entry.evidence and last.outcome is entry.outcome is _NOTHING:
            age_seconds = read.time_seconds(entry.time) - read.time_seconds(last.time)
            if last.reason == entry.reason and 0 <= age_seconds < _REPEATS_SECONDS:
                again = replace(entry, id=last.id, time=last.time, count=last.count + entry.count)
                return replace(self, decisions=(again, *self.decisions[1:]))
        return replace(self, decisions=(entry, *self.decisions)[:DECISIONS_KEPT])

    def to_json(self) -> str:
        """Write the text of record.json."""
        return json.dumps(
            {
                "learned": {
                    "shape": self.learned.shape,
                    "checkpointBytes": self.learned.checkpoint_bytes,
                    "baseBytes": self.learned.base_bytes,
                    "limitBytes": self.learned.limit_bytes,
                },
                "decisions": [entry.to_dict() for entry in self.decisions],
                "ladder": self.ladder.to_dict(),
                "handled": [kill.to_dict() for kill in self.handled],
                "kills": dict(self.kills),
                "baselines": [baseline.to_dict() for baseline in self.baselines],
                "breached": self.breached,
                "trial": None if self.trial is None else self.trial.to_dict(),
                "trialRequest": self.trial_request,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read record.json.

        Raises:
            LimitsFileError: it is not an object, or a field is missing or of another kind; names the field.
        """
        values = read.load(text, "record.json")
        learned = read.mapping(values, "learned")
        kills = read.optional_mapping(values, "kills")
        return cls(
            learned=Learned(
                shape=read.text(learned, "shape"),
                checkpoint_bytes=read.optional_whole(learned, "checkpointBytes"),
                base_bytes=read.optional_whole(learned, "baseBytes"),
                limit_bytes=read.optional_whole(learned, "limitBytes"),
            ),
            decisions=tuple(
                DecisionEntry.from_dict(entry) for entry in read.items(values, "decisions")[:DECISIONS_KEPT]
            ),
            ladder=Ladder.from_dict(read.optional_mapping(values, "ladder")),
            handled=tuple(HandledKill.from_dict(kill) for kill in read.items(values, "handled")),
            kills={label: read.whole(kills, label) for label in kills},
            baselines=tuple(Baseline.from_dict(one) for one in read.items(values, "baselines")),
            breached=values.get("breached") is True,
            trial=Trial.from_dict(read.optional_mapping(values, "trial")),
            trial_request=read.optional_text(values, "trialRequest") or "",
        )


def _outcome(values: Mapping[str, Any]) -> Outcome:
    written = read.optional_text(values, "outcome") or Outcome.APPLIED.value
    try:
        return Outcome(written)
    except ValueError as error:
        raise LimitsFileError(f"outcome: {written!r} must be one of {', '.join(Outcome)}") from error
