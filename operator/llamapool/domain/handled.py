"""Which kills were decided, so that each is decided once: kept in record.json."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from llamapool.domain import values as read
from llamapool.domain.oom import Kill

_KEPT_PER_CONTAINER = 4
"""Pod status tells of a container's present and last end only; earlier ones never come back."""
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
    def pod_uid(self) -> str:
        """UID of its pod."""
        return self.key.split("/", 1)[0]

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
    handled: Iterable[HandledKill], pod_uids: Iterable[str], *, now: float
) -> tuple[HandledKill, ...]:
    """Return the kills that can still be seen, the newest last: of living pods, or of the last hour."""
    alive = set(pod_uids)
    kept: list[HandledKill] = []
    of_container: dict[str, int] = {}
    for one in reversed(tuple(handled)):
        seen = of_container.get(one.container, 0)
        recent = now - one.at < _KEPT_SECONDS
        if seen < _KEPT_PER_CONTAINER and (one.pod_uid in alive or recent):
            kept.append(one)
            of_container[one.container] = seen + 1
    return tuple(reversed(kept))


def looping(handled: Iterable[HandledKill], *, now: float) -> int:
    """Return how many kills for memory there were in ten minutes, if three or more; 0 otherwise."""
    recent = [one for one in handled if now - one.at < _LOOPING_SECONDS and "OOM/" in one.label]
    return len(recent) if len(recent) >= _LOOPING_KILLS else 0


def counted(totals: Mapping[str, int], kill: Kill) -> dict[str, int]:
    """Return the totals by cause and phase after one more kill."""
    return {**totals, kill.label: totals.get(kill.label, 0) + kill.count}
