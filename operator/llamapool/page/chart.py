"""Geometry of the page's two pictures; pure. Templates draw them as SVG."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llamapool.domain.quantity import format_bytes
from llamapool.page.history import LENGTH_SECONDS, Point

WIDTH, HEIGHT = 720, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 10, 10, 36
_GAP_SECONDS = 150.0
"""Points further apart than that are not joined: nobody knows what was between them."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One part of the budget bar.

    Attributes:
        name: of the part, also its CSS class.
        start, share: in percent of the limit.
        size: for people.
    """

    name: str
    start: float
    share: float
    size: str


def budget_segments(memory: Mapping[str, Any]) -> tuple[Segment, ...]:
    """Return base, state budget and headroom as parts of the memory limit; what is not known is left out."""
    limit_bytes = memory.get("limitBytes")
    if not limit_bytes:
        return ()
    segments, start = [], 0.0
    for name, field in (("base", "baseBytes"), ("state", "stateBudgetBytes"), ("headroom", "headroomBytes")):
        size_bytes = memory.get(field)
        if size_bytes is None:
            continue
        share = min(100.0 * size_bytes / limit_bytes, 100.0 - start)
        segments.append(Segment(name=name, start=start, share=share, size=format_bytes(size_bytes)))
        start += share
    return tuple(segments)


@dataclass(frozen=True, kw_only=True)
class Lines:
    """The line chart of the last hour.

    Attributes:
        p50, p90: one `points` attribute of a polyline for each stretch without a gap.
        ticks: height and label of each horizontal line.
        minutes: position and label of each vertical one.
        summary: the chart in words.
    """

    p50: tuple[str, ...]
    p90: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    minutes: tuple[tuple[float, str], ...]
    summary: str


def ttft_lines(points: Sequence[Point], *, now: float) -> Lines | None:
    """Return the chart of the time to first token; None where no request was served in the last hour."""
    served = [point.p90 for point in points if point.p90 is not None]
    if not served:
        return None
    top = _nice_ceiling(max(served))

    def x(at: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * (1 - (now - at) / LENGTH_SECONDS), 1)

    def y(seconds: float) -> float:
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(seconds / top, 1), 1)

    return Lines(
        p50=_stretches(points, lambda point: point.p50, x, y),
        p90=_stretches(points, lambda point: point.p90, x, y),
        ticks=tuple((y(top * part), f"{top * part:.3g} s") for part in (0, 0.5, 1)),
        minutes=tuple((x(now - 60 * ago), f"−{ago} min" if ago else "now") for ago in (60, 45, 30, 15, 0)),
        summary="90 % of requests had their first token within"
        f" {min(served):.3g} to {max(served):.3g} seconds, lately within {served[-1]:.3g}",
    )


def _stretches(
    points: Sequence[Point],
    value: Callable[[Point], float | None],
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> tuple[str, ...]:
    stretches: list[list[str]] = []
    last_at: float | None = None
    for point in points:
        seconds = value(point)
        if seconds is None:
            last_at = None
            continue
        if last_at is None or point.at - last_at > _GAP_SECONDS:
            stretches.append([])
        # A point that stands alone is drawn as a short dash.
        stretches[-1] += (
            [f"{x(point.at)},{y(seconds)}"]
            if stretches[-1]
            else [
                f"{x(point.at) - 1.5},{y(seconds)}",
                f"{x(point.at)},{y(seconds)}",
            ]
        )
        last_at = point.at
    return tuple(" ".join(stretch) for stretch in stretches)


def _nice_ceiling(value: float) -> float:
    """Return the next of 1, 2, 5, 10, … times a power of ten."""
    power = 1e-3
    while True:
        for factor in (1, 2, 5):
            if value <= factor * power:
                return factor * power
        power *= 10
