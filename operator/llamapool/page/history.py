"""The time to first token of every model over the last hour, as its status had it once a minute; pure."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LENGTH_SECONDS = 3600.0
Key = tuple[str, str]
"""Namespace and name of a model."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One minute.

    Attributes:
        at: seconds since 1970.
        p50, p90: seconds to the first token; None: no request was served.
    """

    at: float
    p50: float | None
    p90: float | None


class TtftHistory:
    """Keeps an hour of points a model; a replica that stands by keeps them as well."""

    def __init__(self) -> None:
        self._points: dict[Key, deque[Point]] = {}

    def sample(self, statuses: Mapping[Key, Mapping[str, Any]], *, now: float) -> None:
        """Take in the status of every model that exists, and forget the others.

        Args:
            statuses: by the model's key.
            now: seconds since 1970.
        """
        self._points = {key: self._points.get(key, deque()) for key in statuses}
        for key, status in statuses.items():
            told, points = status.get("ttft") or {}, self._points[key]
            points.append(Point(at=now, p50=_seconds(told.get("p50")), p90=_seconds(told.get("p90"))))
            while points[0].at < now - LENGTH_SECONDS:
                points.popleft()

    def of(self, key: Key) -> tuple[Point, ...]:
        """Return the points of a model, the oldest first."""
        return tuple(self._points.get(key, ()))


def _seconds(text: Any) -> float | None:
    """Read a quantile as status has it, such as 0.42s or ≥600s."""
    try:
        return float(str(text).removeprefix("≥").removesuffix("s"))
    except ValueError:
        return None
