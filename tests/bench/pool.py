"""Measure the pool against upstream and its alternatives: python -m tests.bench.pool (make bench-pool).

Every load is put to every arm by the paired method: all arms of a group loaded at once, batches of the same
prompts for each in random order, the ratio taken round by round, rounds added until its bootstrap interval
decides or the time is up. Where memory grows, each round has a second pass in the opposite order. The record
goes to build/bench/pool.json.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tests.bench import builds, comparisons, machine, record
from tests.bench.arms import ARMS, OURS, PUBLISHED, UPSTREAM
from tests.bench.errors import BenchError
from tests.bench.loads import LOADS
from tests.bench.paired import Plan
from tests.bench.rounds import groups, measure
from tests.cluster.errors import LabError
from tests.cluster.progress import say

if TYPE_CHECKING:
    from tests.bench.loads import Load
    from tests.bench.measurements import Round

_FOLDER = Path("build") / "bench"
_FULL = Plan(least=8, step=4, most=24, seed=1)
_QUICK = Plan(least=1, step=2, most=2, seed=1)
_QUICK_ARMS = (UPSTREAM, PUBLISHED, OURS)
_FULL_MINUTES, _QUICK_MINUTES = 75.0, 6.0
_MEMORY_SHARE = 0.85
_QUIET_SHARE = 0.05
_LEAST_ARMS = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=__doc__)
def main(
    loads: Annotated[str, typer.Option(help="Comma-separated; see --list.")] = ",".join(LOADS),
    arms: Annotated[str | None, typer.Option(help="Comma-separated; see --list. Otherwise all.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Exactly so many, time permitting.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.1, help="For all loads together.")] = None,
    seed: Annotated[int, typer.Option(help="Of prompts, orders and resampling.")] = 1,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="One or two rounds of three arms: to see that it works.")
    ] = False,
    show: Annotated[bool, typer.Option("--list", help="List loads and arms.")] = False,
) -> None:
    """Run the loads and write the record."""
    if show:
        _list()
        return
    chosen_loads, chosen_arms = (
        _chosen("--loads", loads, LOADS),
        _chosen("--arms", arms or ",".join(_QUICK_ARMS if quick else ARMS), ARMS),
    )
    plan = _QUICK if quick else _FULL
    least, most = (rounds, rounds) if rounds else (plan.least, plan.most)
    plan = Plan(least=least, step=plan.step, most=most, seed=seed)
    total_minutes = minutes or (_QUICK_MINUTES if quick else _FULL_MINUTES)
    for build in sorted({ARMS[arm].build for arm in chosen_arms}):
        builds.server(build)
    _FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        result = asyncio.run(_run(chosen_loads, chosen_arms, plan, total_minutes * 60))
    except asyncio.CancelledError:
        raise BenchError("terminated; the servers were stopped, nothing was written") from None
    result["quick"] = quick
    path = _FOLDER / "pool.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    _print_summary(result)
    say(f"written to {path}")


async def _run(loads: list[str], arms: list[str], plan: Plan, total_seconds: float) -> dict[str, Any]:
    # A terminated run stops its servers as an interrupted one does.
    this = asyncio.current_task()
    if this:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    started, at, company = time.monotonic(), dt.datetime.now(dt.UTC), machine.Company()
    entries: list[dict[str, Any]] = []
    compared: list[dict[str, Any]] = []
    for name in loads:
        load, of_load = LOADS[name], [arm for arm in arms if arm in LOADS[name].arms]
        if len(of_load) < _LEAST_ARMS:
            say(f"{name}: not run, it wants two or more of {', '.join(load.arms)}")
            continue
        # What earlier loads left of their time goes to those that follow.
        left_seconds = total_seconds - (time.monotonic() - started)
        to_come = sum(LOADS[each].weight for each in loads[loads.index(name) :])
        measured = await _rounds(load, of_load, plan, left_seconds * load.weight / to_come)
        entries.append(record.of_load(load, of_load, measured, plan))
        compared += comparisons.record(
            measured, of_load, plan, load=name, slots=load.slots, neutral=load.neutral
        )
    others = company.others()
    number, sha256 = builds.release()
    return {
        "v": 1,
        "at": at.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - started),
        "upstream": {"release": f"b{number}", "sha256": sha256},
        "machine": machine.describe() | others,
        "quiet": others["other_programs_share"] < _QUIET_SHARE,
        "confidence": plan.confidence,
        "seed": plan.seed,
        "arms": record.describe_arms(arms),
        "loads": entries,
        "comparisons": compared,
    }


async def _rounds(load: Load, arms: list[str], plan: Plan, total_seconds: float) -> list[Round]:
    """All rounds of one load, its arms in groups that fit the memory which is available now."""
    available_bytes = machine.available_bytes()
    size = min(len(arms), int(available_bytes * _MEMORY_SHARE / load.peak_bytes))
    wanted = min(len(arms), 3)
    if size < wanted:
        raise BenchError(
            f"{load.name}: {available_bytes >> 20} MiB of memory are available, want "
            f"{int(wanted * load.peak_bytes / _MEMORY_SHARE) >> 20} for {wanted} servers"
        )
    in_turn, begun = groups(arms, size), time.monotonic()
    measured: list[Round] = []
    for index, group in enumerate(in_turn, start=1):
        until_seconds = begun + total_seconds * index / len(in_turn)
        say(f"{load.name}: {load.what}; {', '.join(group)}; at most {until_seconds - time.monotonic():.0f} s")
        measured += await measure(load, group, plan, until_seconds=until_seconds, folder=_FOLDER)
    return measured


def _chosen(option: str, text: str, known: dict[str, Any]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise typer.BadParameter(f"{option} is {text!r}, want some of {','.join(known)}")
    return names


def _list() -> None:
    for title, known in (("loads", LOADS), ("arms", ARMS)):
        typer.echo(title)
        for name, each in known.items():
            typer.echo(f"  {name:24}{each.what}")


def _print_summary(result: dict[str, Any]) -> None:
    for entry in result["comparisons"]:
        if entry["metric"] == "ttft_p50_seconds":
            low, high = entry["interval"]
            typer.echo(
                f"{entry['load']:24}{entry['arm']:>17} / {entry['against']:17}TTFT p50 {entry['ratio']:.3f} "
                f"[{low:.3f}, {high:.3f}]  {entry['rounds']:2} rounds  {entry['verdict']}"
            )
    if not result["quiet"]:
        typer.echo("the machine was not quiet: these figures are no results")
    if result["machine"]["free_page_reporting"]:
        typer.echo(
            "this guest hands free memory back to its host: what fresh memory costs "
            "(cold-8, conversations-2) depends on how much the host has taken"
        )


if __name__ == "__main__":
    try:
        app()
    except (BenchError, LabError) as error:
        sys.exit(f"bench: {error}")
