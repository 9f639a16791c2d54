"""One model explained in sentences: how it is, how its memory is planned, what was decided and why; pure."""

import textwrap
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from llamapool.console.tables import age, changes
from llamapool.domain.quantity import format_bytes

_WIDTH = 100
_TROUBLED = {"Degraded": "True"}
"""Statuses that are bad news; of all other conditions it is False."""


def explain(model: Mapping[str, Any], *, now: datetime) -> str:
    """Return the text.

    Args:
        model: as the API server has it.
        now: the time, for ages.
    """
    metadata, status = model["metadata"], model.get("status") or {}
    lines = [f"{metadata['namespace']}/{metadata['name']}", ""]
    if not status.get("conditions"):
        return "\n".join([*lines, "no operator has seen it yet"])
    for title, paragraphs in (
        ("What is wrong or not known", _troubles(status)),
        ("Memory of one pod", _memory(status)),
        ("Time to first token", _ttft(status)),
        ("Trial", _trial(status.get("trial", {}), now)),
        ("Decisions, the newest first", _decisions(status, now)),
    ):
        told = [line for paragraph in paragraphs for line in _wrapped(paragraph)]
        lines += [title, *(told or ["  nothing"]), ""]
    return "\n".join(lines).rstrip()


def _troubles(status: Mapping[str, Any]) -> Iterator[str]:
    for held in status["conditions"]:
        if held["status"] in ("Unknown", _TROUBLED.get(held["type"], "False")):
            yield f"{held['type']} is {held['status']} ({held['reason']}): {held['message']}"


def _memory(status: Mapping[str, Any]) -> Iterator[str]:
    memory, pool = status.get("memory", {}), status.get("pool", {})
    parts = (("base", "baseBytes"), ("state budget", "stateBudgetBytes"), ("headroom", "headroomBytes"))
    known = [f"{words} {format_bytes(memory[name])}" for words, name in parts if name in memory]
    if "limitBytes" in memory:
        yield f"limit {format_bytes(memory['limitBytes'])} = {' + '.join(known) or 'not measured yet'}"
    if "bufferBytes" in memory:
        yield f"one checkpoint takes {format_bytes(memory['bufferBytes'])}"
    if "cap" in pool:
        yield f"at most {pool['cap']} of released checkpoints are kept for the next ones"
    written = status.get("limits", {}).get("written", {})
    ceiling = written.get("stateBudgetBytes")
    if ceiling is not None:
        yield f"sequence state is held to {format_bytes(ceiling)}, below what the server would allow itself"


def _ttft(status: Mapping[str, Any]) -> Iterator[str]:
    ttft = status.get("ttft", {})
    if "p90" in ttft:
        figures = ", ".join(f"{name} {ttft[name]}" for name in ("p50", "p90", "p99") if name in ttft)
        yield f"{figures} over {ttft.get('requests', '?')} requests lately"
    healthy = next((held for held in status["conditions"] if held["type"] == "TTFTHealthy"), None)
    if healthy is not None:
        yield healthy["message"]


def _trial(trial: Mapping[str, Any], now: datetime) -> Iterator[str]:
    if not trial:
        return
    done = f"leg {trial['legsDone']} of {trial['legsWanted']}"
    yield f"{trial['result']}, {done}, begun {age(trial['startedAt'], now)} ago: {trial['why']}"
    if trial.get("message"):
        yield trial["message"]
    for number, leg in enumerate(trial.get("legs", []), start=1):
        made = leg.get("checkpoint", "none made")
        figures = f"{leg['requests']} requests, p90 {leg['p90']}, checkpoint {made}"
        yield f"leg {number}, pool {leg['pool']}: {figures}"


def _decisions(status: Mapping[str, Any], now: datetime) -> Iterator[str]:
    for entry in status.get("decisions", []):
        times = f" ({entry['count']} times)" if entry.get("count", 1) > 1 else ""
        moved = f"; {changes(entry['from'])} -> {changes(entry['to'])}" if entry.get("to") else ""
        outcome = entry.get("outcome", "Applied")
        told = entry.get("message") or "no account was kept"
        when = f"{age(entry['time'], now)} ago{times}"
        yield f"{when}: {entry['reason']}, {outcome}{moved}. {told} [{entry['id']}]"


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, _WIDTH, initial_indent="  ", subsequent_indent="    ")
