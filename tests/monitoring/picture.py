"""python -m tests.monitoring.picture: draws panels of the model dashboard from what a test run recorded.

`make test-monitoring` records build/monitoring/panels.json; this writes docs/monitoring.svg.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.monitoring.queries import CHART
from tests.support.chart import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from tests.monitoring.prometheus import Prometheus

RECORD = ROOT / "build" / "monitoring" / "panels.json"
PICTURE = ROOT / "docs" / "monitoring.svg"
# Of the model's dashboard, in the order of the picture.
PANELS = (
    "Memory plan of $replica",
    "Time to first token",
    "Time to make a checkpoint",
    "Pool hit rate",
    "What the pool does",
    "Decisions by reason",
)
_GAP_SECONDS = 5
"""More than two samples are missing then."""
_UNITS = {"bytes": ("MiB", 1 / (1 << 20)), "s": ("ms", 1000.0), "percentunit": ("%", 100.0)}


@dataclass(frozen=True)
class Panel:
    """What one panel shows.

    Attributes:
        title, unit: as in the dashboard.
        stacked: legends of the series that lie on top of each other.
        series: by legend, pairs of seconds since the start and value.
    """

    title: str
    unit: str
    stacked: tuple[str, ...]
    series: dict[str, list[tuple[float, float]]]


def record(prometheus: Prometheus, variables: Mapping[str, str]) -> None:
    """Ask for what the panels of the picture show, and keep it."""
    dashboard = json.loads((CHART / "dashboards" / "model.json").read_text())
    by_title = {panel["title"]: panel for panel in dashboard["panels"]}
    panels = [_ask(by_title[title], prometheus, variables) for title in PANELS]
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps([asdict(panel) for panel in panels]))


def _ask(panel: Mapping[str, Any], prometheus: Prometheus, variables: Mapping[str, str]) -> Panel:
    series: dict[str, list[tuple[float, float]]] = {}
    for target in panel["targets"]:
        expression = target["expr"]
        for name, value in sorted(variables.items(), key=lambda item: -len(item[0])):
            expression = expression.replace(f"${name}", value)
        for labels, samples in prometheus.samples(expression):
            legend = target["legendFormat"]
            for label, value in labels.items():
                legend = legend.replace("{{" + label + "}}", value)
            series[legend] = [(at - prometheus.started_at, value) for at, value in samples]
    overrides = panel["fieldConfig"]["overrides"]
    stacked = tuple(
        override["matcher"]["options"]
        for override in overrides
        if any(each["id"] == "custom.stacking" for each in override["properties"])
    )
    title = panel["title"].replace(" of $replica", "")
    return Panel(title, panel["fieldConfig"]["defaults"].get("unit", ""), stacked, series)


def draw() -> None:
    """Draw the picture from the record."""
    mpl.rcParams["svg.hashsalt"] = "llamapool"  # the same record gives the same file
    panels = [Panel(**each) for each in json.loads(RECORD.read_text())]
    figure, axes = plt.subplots(3, 2, figsize=(12, 11), layout="constrained")
    for axis, panel in zip(axes.flat, panels, strict=True):
        _draw_panel(axis, panel)
    figure.savefig(PICTURE, metadata={"Date": None})


def _draw_panel(axis: Axes, panel: Panel) -> None:
    unit, factor = _UNITS.get(panel.unit, ("", 1.0))
    axis.set_title(panel.title, loc="left")
    axis.set_xlabel("minutes")
    axis.set_ylabel(unit)
    axis.grid(visible=True, alpha=0.3)
    areas = [legend for legend in panel.stacked if legend in panel.series]
    if areas:
        times = sorted(set.intersection(*({at for at, _ in panel.series[legend]} for legend in areas)))
        heights = [[dict(panel.series[legend])[at] * factor for at in times] for legend in areas]
        axis.stackplot([at / 60 for at in times], heights, labels=areas, alpha=0.7)
    for legend, samples in panel.series.items():
        if legend not in areas:
            moving = any(value for _, value in samples)
            if moving or len(panel.series) <= len(panel.stacked) + 3:
                drawn = with_gaps(samples)
                minutes, values = [at / 60 for at, _ in drawn], [value * factor for _, value in drawn]
                axis.plot(minutes, values, label=legend, linewidth=1.2)
    if panel.unit == "s":
        axis.set_yscale("log")  # a target may be far off
    else:
        # Above areas there is no room of its own for the legend.
        axis.set_ylim(bottom=0, top=1.2 * axis.get_ylim()[1] if areas else None)
    if axis.get_legend_handles_labels()[1]:
        axis.legend(fontsize="small", loc="upper left" if areas else "best", ncols=3 if areas else 1)


def with_gaps(samples: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The samples with NaN where some are missing, so that no line is drawn over what nobody saw."""
    drawn: list[tuple[float, float]] = []
    for at, value in samples:
        if drawn and at - drawn[-1][0] > _GAP_SECONDS:
            drawn.append((at, math.nan))
        drawn.append((at, value))
    return drawn


if __name__ == "__main__":
    draw()
    print(f"{PICTURE.relative_to(ROOT)} is written")  # noqa: T201 - a command line prints
