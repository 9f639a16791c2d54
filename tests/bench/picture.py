"""Draw the record of a run, or of several: python -m tests.bench.picture [build/bench/pool.json ...]."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import matplotlib as mpl
import typer
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from tests.bench.arms import OURS, UPSTREAM
from tests.bench.paired import Verdict
from tests.bench.record import join

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RECORD = Path("build/bench/pool.json")
_METRIC = "ttft_p50_seconds"
_OURS_COLOUR, _OTHER_COLOUR, _UNCLAIMED_COLOUR = "#0b6e4f", "#3d5a80", "#9a9a9a"
_ROW_INCHES, _HEAD_INCHES = 0.27, 1.5
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "llamapool",  # the same record gives the same file
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
}


def draw(record: dict[str, Any]) -> Figure:
    """Two panels: the ratio of the time to first token to upstream's, and the time of a checkpoint."""
    rows = _rows(record)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.5, _HEAD_INCHES + _ROW_INCHES * len(rows)), layout="constrained")
        ratios, checkpoints = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
        _draw_ratios(ratios, rows)
        _draw_checkpoints(checkpoints, rows)
        ratios.set_yticks(range(len(rows)), [row["label"] for row in rows])
        ratios.set_ylim(len(rows) - 0.5, -0.5)
        for axes in (ratios, checkpoints):
            axes.tick_params(axis="y", length=0)
            for place in (index for index, row in enumerate(rows) if index and row["first"]):
                axes.axhline(place - 0.5, color="#dddddd", linewidth=0.8)
        figure.suptitle(_title(record), fontsize=9, x=0.01, ha="left")
    return figure


def _rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for load in record["loads"]:
        others = [arm for arm in load["arms"] if arm != UPSTREAM]
        for index, arm in enumerate(others):
            found = [
                entry
                for entry in record["comparisons"]
                if (entry["load"], entry["arm"], entry["against"]) == (load["load"], arm, UPSTREAM)
                and entry["metric"] == _METRIC
            ]
            rows += [
                {
                    "label": f"{load['load']}  {arm}",
                    "first": index == 0,
                    "arm": arm,
                    "load": load,
                    "ratio": entry,
                }
                for entry in found
            ]
    return rows


def _draw_ratios(axes: Axes, rows: list[dict[str, Any]]) -> None:
    axes.axvspan(0.95, 1.05, color="#f2f2f2", linewidth=0)
    axes.axvline(1, color="#666666", linewidth=0.8)
    for place, row in enumerate(rows):
        entry, colour = row["ratio"], _colour(row)
        axes.plot(entry["interval"], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot(entry["ratio"], place, "o", color=colour, markersize=5)
        axes.annotate(
            f"{entry['ratio']:.2f}{_said(entry)}",
            (max(entry["interval"]), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
        )
    axes.set_xlabel("TTFT p50, ratio to upstream (left is faster), bootstrap interval")
    axes.margins(x=0.12)


def _draw_checkpoints(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for place, row in enumerate(rows):
        load = row["load"]
        took = load["arms"][row["arm"]]["checkpoint_seconds"]["p50"]
        if took is None:
            continue
        upstream = load["arms"][UPSTREAM]["checkpoint_seconds"]["p50"]
        axes.plot(upstream * 1000, place, "|", color="#666666", markersize=9)
        axes.plot(load["memcpy_seconds"] * 1000, place, "|", color="#bb3e03", markersize=9)
        axes.plot(
            took * 1000, place, "o", color=_OURS_COLOUR if row["arm"] == OURS else _OTHER_COLOUR, markersize=5
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("checkpoint p50, ms\ngrey tick: upstream\nred tick: one memcpy")


def _said(entry: dict[str, Any]) -> str:
    """What the interval says where it does not exclude 1."""
    if entry.get("neutral"):
        return " neutral, within ±5 %"
    return " unclaimed" if _says_nothing(entry) else ""


def _says_nothing(entry: dict[str, Any]) -> bool:
    return entry["verdict"] == Verdict.UNCLAIMED and not entry.get("neutral")


def _colour(row: dict[str, Any]) -> str:
    if _says_nothing(row["ratio"]):
        return _UNCLAIMED_COLOUR
    return _OURS_COLOUR if row["arm"] == OURS else _OTHER_COLOUR


def _title(record: dict[str, Any]) -> str:
    machine = record["machine"]
    kind = "virtual machine" if machine["virtual"] else "bare metal"
    lines = [
        f"llama.cpp {record['upstream']['release']}, {record['at'][:10]}",
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {kind}",
    ]
    if record["quick"] or not record["quiet"]:
        why = "a short run" if record["quick"] else "the machine was not quiet"
        lines.append(f"no result: {why}")
    return "\n".join(lines)


def main(
    records: Annotated[
        list[Path] | None,
        typer.Argument(help="What python -m tests.bench.pool wrote; otherwise build/bench/pool.json."),
    ] = None,
    picture: Annotated[Path, typer.Option(help="SVG to write.")] = Path("docs/bench-pool.svg"),
) -> None:
    """Draw the record as an SVG; of several, each load as the last of them has it."""
    records = records or [_RECORD]
    figure = draw(join([json.loads(each.read_text()) for each in records]))
    with mpl.rc_context(_STYLE):
        figure.savefig(picture, format="svg", metadata={"Date": None})
    typer.echo(f"{picture} drawn from {', '.join(map(str, records))}")


if __name__ == "__main__":
    typer.run(main)
