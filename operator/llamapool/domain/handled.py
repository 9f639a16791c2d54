"""Which kills were decided, so that each is decided once: kept in record.json."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from llamapool.domain import values as read
from llamapool.domain.oom import Kill

_KEPT_SECONDS = 3600
_LOOPING_KILLS = 3
_LOOPING_SECONDS = 600


@dataclass(frozen=True, kw_only=True)
class HandledKill:
    """One kill that was decided.

    Attributes:
        key: of the kill.
        decision: id of the decision on it; empty where none was called for.
        at: when it was decided, Unix seconds.
        label: cause and phase.
    """

    key: str
    decision: str
    at: float
    label: str

    @property
    def container(self) -> str:
        """Pod and container that it is of."""
        return self.key.rsplit("/", 1)[0]

    def to_dict(self) -> dict[str, Any]:
        """Write it as in record.json."""
        return {
            "key": self.key,
            "decision": self.decision,
            "at": read.time_text(self.at),
            "label": self.label,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read it back.

        Raises:
            LimitsFileError: a field is missing or of another kind.
        """
        return cls(
            key=read.text(values, "key"),
            decision=read.text(values, "decision"),
            at=read.time_seconds(read.text(values, "at")),
            label=read.text(values, "label"),
        )


def still_needed(
    handled: Iterable[HandledKill], *, seen: Container[str], running: Container[str], now: float
) -> tuple[HandledKill, ...]:
    """Return the kills that can still be seen, in their order.

    Pod status tells of a container's present and last end only, and a counter of a running container's
    kills; what came before never comes back. A pod that is killed for weeks must not fill the record.

    Args:
        handled: every kill in the record.
        seen: keys of the kills that this look has seen.
        running: pods' UIDs and the ids of their running containers, with a slash between.
        now: Unix seconds; kills of the last hour are kept, too.
    """
    kept: list[HandledKill] = []
    counted_of: set[str] = set()
    for one in reversed(tuple(handled)):
        latest = one.container in running and one.container not in counted_of
        if latest or one.key in seen or now - one.at < _KEPT_SECONDS:
            kept.append(one)
            counted_of.add(one.container)
    return tuple(reversed(kept))


def looping(handled: Iterable[HandledKill], *, now: float) -> int:
    """Return how many kills for memory there were in ten minutes, if three or more; 0 otherwise."""
    recent = [one for one in handled if now - one.at < _LOOPING_SECONDS and "OOM/" in one.label]
    return len(recent) if len(recent) >= _LOOPING_KILLS else 0


def counted(totals: Mapping[str, int], kill: Kill) -> dict[str, int]:
    """Return the totals by cause and phase after one more kill."""
    return {**totals, kill.label: totals.get(kill.label, 0) + kill.count}
