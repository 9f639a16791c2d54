"""A day of decisions in simulated time: python -m tests.simulator.day writes its picture and docs/tuning.md's
generated parts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from llamapool.domain.ladder import diagram
from tests.simulator.server import BUFFER, GIB, MIB
from tests.simulator.simulation import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from llamapool.domain.decide import Decision
    from llamapool.domain.limits import DecisionEntry

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = DOCS / "tuning.md", DOCS / "tuning-day.svg"
_HOUR = 3600.0
_LOOK_SECONDS = 10.0
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "llamapool",  # the same day gives the same file
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_PARTS = (("base", "#3d5a80"), ("state in use", "#0b6e4f"), ("pooled", "#7fb69e"), ("other", "#c9ada7"))


@dataclass
class Day:
    """What was seen at each look, and what was decided.

    Attributes:
        hours: time of each look.
        parts: base, state in use, pooled and other memory, in GiB, by look.
        caps: the pool's cap in GiB, by look.
        limits: the container's limit in GiB, by look.
        decisions: hour and entry of each.
    """

    hours: list[float] = field(default_factory=list)
    parts: list[tuple[float, ...]] = field(default_factory=list)
    caps: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    decisions: list[tuple[float, DecisionEntry]] = field(default_factory=list)

    def watch(self, simulation: Simulation, decision: Decision) -> None:
        """Take one look in."""
        server, hour = simulation.server, (simulation.now - START) / _HOUR
        known = {entry.id for _, entry in self.decisions}
        new = [entry for entry in decision.record.decisions if entry.id not in known]
        self.decisions += [(hour, entry) for entry in reversed(new)]
        self.hours.append(hour)
        sizes = (server.base, server.live * BUFFER, server.pooled * BUFFER, server.outside)
        self.parts.append(tuple(size / GIB for size in sizes))
        self.caps.append((decision.limits.pool_cap_bytes or 0) / GIB)
        self.limits.append(server.limit / GIB)


def simulate() -> Day:
    """A day under 4 GiB: bursts beside the server in the morning, a leak, a crash, then a larger limit."""
    day = Day()
    simulation = Simulation(watched=day.watch)
    script: list[tuple[float, Callable[[], object]]] = [
        (9.0, lambda: simulation.kill(1700 * MIB)),
        (9.5, lambda: simulation.kill(1700 * MIB)),
        (10.5, lambda: simulation.kill(1900 * MIB)),
        (12.0, lambda: setattr(simulation.server, "outside", 900 * MIB)),
        (13.0, lambda: setattr(simulation.server, "outside", 0)),
        (15.0, lambda: simulation.end(139, "Error")),
        (16.0, lambda: setattr(simulation.server, "limit", 6 * GIB)),
    ]
    while simulation.now < START + 24 * _HOUR:
        hour = (simulation.now - START) / _HOUR
        busy = max(0.0, math.sin((hour - 6) / 24 * 2 * math.pi))
        simulation.server.wanted_buffers = 4 + round(10 * busy)
        while script and script[0][0] <= hour:
            script.pop(0)[1]()
        simulation.server.misses += 1
        simulation.look(after=_LOOK_SECONDS)
    return day


def table(day: Day) -> str:
    """The day's decisions in Markdown."""
    lines = ["| at | decision | what changed | outcome |", "|---|---|---|---|"]
    for hour, entry in day.decisions:
        moved = ", ".join(
            f"{name.removesuffix('Bytes')} {_size(entry.before[name])} → {_size(after)}"
            for name, after in entry.after.items()
        )
        at = f"{int(hour):02}:{int(hour % 1 * 60):02}"
        lines.append(f"| {at} | {entry.reason} | {moved or '–'} | {entry.outcome} |")
    return "\n".join(lines) + "\n"


def draw(day: Day) -> Figure:
    """Memory by who holds it under the limit, the cap, and a mark for each decision."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.5, 4.2), layout="constrained")
        axes = figure.subplots()
        step = 6  # one look a minute is plenty for the eye
        axes.stackplot(
            day.hours[::step],
            *zip(*day.parts[::step], strict=True),
            labels=[name for name, _ in _PARTS],
            colors=[colour for _, colour in _PARTS],
        )
        axes.plot(day.hours[::step], day.limits[::step], color="black", linewidth=1.2, label="limit")
        axes.plot(day.hours[::step], day.caps[::step], color="#d1495b", linewidth=1.5, label="pool cap")
        for number, (hour, entry) in enumerate(day.decisions):
            axes.axvline(hour, color="#999999", linewidth=0.6, linestyle=":")
            place = 6.2 + 0.32 * (number % 4)
            axes.text(hour, place, entry.reason, fontsize=7, ha="left")
        axes.set(xlim=(0, 24), ylim=(0, 7.4), xlabel="hour of the day", ylabel="GiB")
        axes.set_xticks(range(0, 25, 3))
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0.84), ncols=3, frameon=False, fontsize=8)
    return figure


def generated(page: str, day: Day) -> str:
    """The page with its generated parts written anew."""
    for name, content in (("states", f"```mermaid\n{diagram()}```\n"), ("day", table(day))):
        pattern = rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)"
        page, found = re.subn(pattern, lambda match: match[1] + content + match[2], page, flags=re.DOTALL)  # noqa: B023
        if found != 1:
            raise LookupError(f"{PAGE} has no part <!-- generated: {name} --> … <!-- end -->")
    return page


def _size(size: object) -> str:
    return f"{size >> 20} MiB" if isinstance(size, int) else "the server's own"


def main() -> None:
    """Write picture and page."""
    day = simulate()
    PAGE.write_text(generated(PAGE.read_text(encoding="utf-8"), day), encoding="utf-8")
    draw(day).savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
