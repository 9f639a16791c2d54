"""Tables of HybridModels, from what the API server has of them; pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from llamapool.domain.facts import ServerSample
from llamapool.domain.quantity import format_bytes

Model = Mapping[str, Any]

NOT_KNOWN = "–"
_COLOURS = {"True": "green", "False": "red", "Unknown": "yellow"}
_GOOD_WHEN_FALSE = ("Degraded",)
_SWAPPED = {"True": "False", "False": "True"}
_BAR_CELLS = 40
_PARTS = (("base", "blue"), ("state", "green"), ("headroom", "yellow"))


def fleet(models: Iterable[Model], *, now: datetime, namespaces: bool) -> Table:
    """Return one line a model.

    Args:
        models: as the API server has them.
        now: the time, for ages.
        namespaces: show whose namespace a model is in.
    """
    table = _table(*(["NAMESPACE"] if namespaces else []), "NAME", "READY", "FITS", "LIMITS", "LIMIT")
    for name in ("BASE", "STATE BUDGET", "POOL CAP", "TTFT P90", "LAST DECISION"):
        table.add_column(name)
    for model in models:
        metadata, status = model["metadata"], model.get("status") or {}
        memory, decisions = status.get("memory", {}), status.get("decisions", [])
        told = [Text(metadata["namespace"])] if namespaces else []
        table.add_row(
            *told,
            Text(metadata["name"]),
            condition(status, "Ready"),
            condition(status, "MemoryFits"),
            _acknowledged(status),
            memory.get("limit", NOT_KNOWN),
            _bytes(memory.get("baseBytes")),
            _bytes(memory.get("stateBudgetBytes")),
            status.get("pool", {}).get("cap", NOT_KNOWN),
            status.get("ttft", {}).get("p90", NOT_KNOWN),
            f"{decisions[0]['reason']} {age(decisions[0]['time'], now)} ago" if decisions else NOT_KNOWN,
        )
    return table


def one(model: Model, *, now: datetime) -> RenderableType:
    """Return everything of one model that fits a screen: conditions, budget, pods, decisions."""
    metadata, status = model["metadata"], model.get("status") or {}
    parts: list[RenderableType] = [Text(f"{metadata['namespace']}/{metadata['name']}", style="bold")]
    if status.get("paused"):
        parts.append(Text("paused: the operator changes nothing", style="yellow"))
    conditions = _table("CONDITION", "STATUS", "REASON", "MESSAGE")
    for held in status.get("conditions", []):
        conditions.add_row(
            held["type"], condition(status, held["type"]), held["reason"], Text(held.get("message", ""))
        )
    parts.append(conditions if status.get("conditions") else Text("no operator has seen it yet"))
    if status.get("memory", {}).get("limitBytes"):
        parts += [Text(""), budget_bar(status["memory"])]
    pods = _table("POD", "READY", "RESTARTS", "LIMIT", "POOL CAP", "GENERATION")
    for pod in status.get("limits", {}).get("pods", []):
        pods.add_row(
            pod["name"],
            "yes" if pod.get("ready") else "no",
            str(pod.get("restarts", NOT_KNOWN)),
            _bytes(pod.get("limitBytes")),
            _bytes(pod.get("poolCapBytes")),
            str(pod.get("generation", NOT_KNOWN)),
        )
    if pods.row_count:
        parts += [Text(""), pods]
    decisions = _table("DECISION", "AGE", "FROM", "TO", "ID")
    for entry in status.get("decisions", [])[:5]:
        decisions.add_row(
            entry["reason"],
            age(entry["time"], now),
            changes(entry.get("from", {})),
            changes(entry.get("to", {})),
            entry["id"],
        )
    if decisions.row_count:
        parts += [Text(""), decisions]
    return Group(*parts)


def budget_bar(memory: Mapping[str, Any]) -> Text:
    """Return a bar of the memory limit: base, state budget, headroom, and what is not known."""
    limit_bytes = memory["limitBytes"]
    sizes = (memory.get("baseBytes"), memory.get("stateBudgetBytes"), memory.get("headroomBytes"))
    text, cells = Text(f"{format_bytes(limit_bytes)} "), 0
    for (_, colour), size_bytes in zip(_PARTS, sizes, strict=True):
        length = round(_BAR_CELLS * (size_bytes or 0) / limit_bytes)
        length = min(length, _BAR_CELLS - cells)
        text.append("█" * length, style=colour)
        cells += length
    text.append("░" * (_BAR_CELLS - cells))
    for (name, colour), size_bytes in zip(_PARTS, sizes, strict=True):
        text.append("  ■ ", style=colour)
        text.append(f"{name} {_bytes(size_bytes)}")
    return text


def usage(pods: Iterable[tuple[str, str, str, ServerSample | str]]) -> Table:
    """Return one line a pod with what its server reports now.

    Args:
        pods: namespace, model, pod, and what its server reports, or why that is not known.
    """
    table = _table("NAMESPACE", "POD", "UNRECLAIMABLE", "LIMIT", "BASE", "STATE", "OF BUDGET", "POOL HELD")
    table.add_column("HITS")
    table.add_column("TTFT P90")
    for namespace, _, pod, sample in pods:
        if isinstance(sample, str):
            table.add_row(namespace, pod, Text(sample, style="red"))
            continue
        ttft = None if sample.time_to_first_token is None else sample.time_to_first_token.quantile(0.9)
        table.add_row(
            namespace,
            pod,
            _bytes(sample.cgroup_unreclaimable_bytes),
            _bytes(sample.cgroup_limit_bytes),
            _bytes(sample.base_bytes),
            _bytes(sample.state_bytes),
            _bytes(sample.state_budget_bytes),
            _bytes(sample.pool_held_bytes),
            _share(sample.pool_hits, sample.pool_misses),
            NOT_KNOWN if ttft is None else str(ttft),
        )
    return table


def condition(status: Mapping[str, Any], kind: str) -> Text:
    """Return a condition's status, coloured by whether it is good; `–` where it is not there."""
    found = [held["status"] for held in status.get("conditions", []) if held["type"] == kind]
    if not found:
        return Text(NOT_KNOWN)
    judged = _SWAPPED.get(found[0], found[0]) if kind in _GOOD_WHEN_FALSE else found[0]
    return Text(found[0], style=_COLOURS.get(judged, ""))


def changes(values: Mapping[str, Any]) -> str:
    """Return the limits before or after a decision, sizes as quantities."""
    told = {
        name.removesuffix("Bytes"): _bytes(value) if name.endswith("Bytes") else str(value)
        for name, value in values.items()
    }
    return ", ".join(f"{name} {value}" for name, value in told.items()) or NOT_KNOWN


def age(time: str, now: datetime) -> str:
    """Return how long ago a time (RFC 3339) was, as kubectl puts it."""
    seconds = max(0, int((now - datetime.fromisoformat(time)).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _acknowledged(status: Mapping[str, Any]) -> Text:
    told = status.get("limits", {}).get("acknowledged")
    if not isinstance(told, Mapping):
        return Text(NOT_KNOWN)
    pods, of = told.get("pods", 0), told.get("of", 0)
    return Text(f"{pods}/{of}", style="green" if pods == of else "red")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for name in columns:
        table.add_column(name, overflow="fold" if name == "MESSAGE" else "ellipsis")
    return table


def _bytes(size_bytes: int | None) -> str:
    return NOT_KNOWN if size_bytes is None else format_bytes(size_bytes)


def _share(hits: int | None, misses: int | None) -> str:
    asked = (hits or 0) + (misses or 0)
    return f"{100 * (hits or 0) / asked:.0f}%" if asked else NOT_KNOWN
