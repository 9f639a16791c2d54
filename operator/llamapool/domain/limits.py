"""What the operator writes for a model's servers (limits.json) and remembers for itself (record.json).

Both live in one ConfigMap, so that a limit and the reason for it are written in one step.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from llamapool.errors import LimitsFileError

DECISIONS_KEPT = 20

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
        values = _load(text, "limits.json")
        return cls(
            generation=_whole(values, "generation"),
            decision=_text(values, "decision"),
            pool_cap_bytes=_optional_whole(values, "poolCapBytes"),
            state_budget_bytes=_optional_whole(values, "stateBudgetBytes"),
        )


@dataclass(frozen=True, kw_only=True)
class DecisionEntry:
    """One change of limits, with what it was made on.

    Attributes:
        id: names the decision in limits.json, in the Event and in status.
        time: when it was made, RFC 3339, UTC.
        reason: one CamelCase word, from `conditions.DecisionReason`.
        before: the changed limits as they were.
        after: the changed limits as written.
        evidence: the figures that it was made on.
    """

    id: str
    time: str
    reason: str
    before: Mapping[str, Figure]
    after: Mapping[str, Figure]
    evidence: Mapping[str, Figure]

    def to_dict(self) -> dict[str, Any]:
        """Write the entry as in record.json and in status.decisions."""
        return {
            "id": self.id,
            "time": self.time,
            "reason": self.reason,
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
            id=_text(values, "id"),
            time=_text(values, "time"),
            reason=_text(values, "reason"),
            before=_mapping(values, "from"),
            after=_mapping(values, "to"),
            evidence=_mapping(values, "evidence"),
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
    """

    learned: Learned
    decisions: tuple[DecisionEntry, ...] = field(default=())

    def adding(self, entry: DecisionEntry, learned: Learned) -> "Record":
        """Return the record after one more decision, the oldest beyond 20 dropped."""
        return Record(learned=learned, decisions=(entry, *self.decisions)[:DECISIONS_KEPT])

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
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read record.json.

        Raises:
            LimitsFileError: it is not an object, or a field is missing or of another kind; names the field.
        """
        values = _load(text, "record.json")
        learned = _mapping(values, "learned")
        decisions = values.get("decisions")
        if not isinstance(decisions, list) or not all(isinstance(entry, dict) for entry in decisions):
            raise LimitsFileError("record.json: decisions: must be a list of objects")
        return cls(
            learned=Learned(
                shape=_text(learned, "shape"),
                checkpoint_bytes=_optional_whole(learned, "checkpointBytes"),
                base_bytes=_optional_whole(learned, "baseBytes"),
                limit_bytes=_optional_whole(learned, "limitBytes"),
            ),
            decisions=tuple(DecisionEntry.from_dict(entry) for entry in decisions[:DECISIONS_KEPT]),
        )


def _load(text: str, name: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise LimitsFileError(f"{name}: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise LimitsFileError(f"{name}: {values!r} must be an object")
    return values


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise LimitsFileError(f"{name}: {value!r} must be a whole number, 0 or more")
    return value


def _optional_whole(values: Mapping[str, Any], name: str) -> int | None:
    return None if values.get(name) is None else _whole(values, name)


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise LimitsFileError(f"{name}: {value!r} must be text")
    return value


def _mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    if not isinstance(value, dict):
        raise LimitsFileError(f"{name}: {value!r} must be an object")
    return value
