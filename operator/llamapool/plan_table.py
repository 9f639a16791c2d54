"""The answer of `llamapool plan` for people: a table, a bar of the budget, and a verdict."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from llamapool.domain.memory import MemoryPlan, least_limit_bytes
from llamapool.domain.sizing import Need
from llamapool.plan_command import Answer, Request

_BAR_CELLS = 60
_PARTS = (("base", "blue"), ("state", "green"), ("headroom", "yellow"))
_BASE_PARTS = (
    ("weights", "neither offloaded nor memory-mapped"),
    ("keys_values", "of all slots, in host memory"),
    ("recurrent_state", "of all slots, in host memory"),
    ("compute", "intermediate results of a batch"),
    ("overhead", "process, vocabulary, graphs"),
)


def show(request: Request, found: Answer) -> RenderableType:
    """Return the answer for people."""
    facts, need, plan = found.model.facts, found.need, found.plan
    slots = request.flags.context.slots
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    table.add_row("model", facts.architecture, f"{facts.layers} layers, {_bytes(facts.file_bytes)} of files")
    if need.base is not None:
        for part, what in _BASE_PARTS:
            table.add_row(f"  {part.replace('_', ' ')}", _bytes(getattr(need.base, part)), what)
        table.add_row("  tolerance", _bytes(plan.tolerance_bytes), "of the prediction, until it is measured")
    table.add_row("base", _bytes(plan.base_bytes), "reserved beside state; measured once the server runs")
    table.add_row("checkpoint", _checkpoint(need), f"one a slot, {slots} slots, at least")
    table.add_row("headroom", _bytes(plan.headroom_bytes), "5 % of the limit, 256 MiB at least")
    table.add_row("state budget", _bytes(plan.state_budget_bytes), _held(plan))
    table.add_row("pool cap", _bytes(plan.pool_cap_bytes), "of the budget, at most, kept for reuse")
    table.add_row("limit", _bytes(plan.limit_bytes), "" if plan.limit_bytes else "none given; see --limit")
    parts: list[RenderableType] = [table]
    if plan.limit_bytes and plan.base_bytes is not None:
        parts += ["", _bar(plan)]
    parts += ["", _verdict(request, found), *(Text(f"• {price}", style="yellow") for price in found.prices)]
    return Group(*parts)


def _verdict(request: Request, found: Answer) -> Text:
    if found.need.unknown:
        return Text(f"? not known: {found.need.unknown}", style="yellow")
    if found.fit is None:
        least = least_limit_bytes(found.plan, request.flags.context.slots)
        return Text(f"The smallest limit that fits is {least} ({_bytes(least)}).")
    sizes = f"smallest limit {found.fit.least_limit_bytes} ({_bytes(found.fit.least_limit_bytes)})"
    slots = "" if found.most_slots is None else f", most slots {found.most_slots}"
    if found.fit.fits:
        return Text(f"✓ fits: {sizes}{slots}", style="green")
    shortfall = _bytes(found.fit.shortfall_bytes)
    return Text(f"✗ does not fit: {shortfall} short of {request.limit}; {sizes}{slots}", style="red")


def _held(plan: MemoryPlan) -> str:
    if plan.state_budget_bytes is None or not plan.buffer_bytes:
        return ""
    return f"{plan.state_budget_bytes // plan.buffer_bytes} checkpoints"


def _checkpoint(need: Need) -> str:
    return "none is made" if need.checkpoint_bytes == 0 else _bytes(need.checkpoint_bytes)


def _bar(plan: MemoryPlan) -> Text:
    sizes = (plan.base_bytes or 0, plan.state_budget_bytes or 0, plan.headroom_bytes or 0)
    whole = max(sum(sizes), plan.limit_bytes or 0, 1)
    bar = Text("  ")
    for (_, colour), size in zip(_PARTS, sizes, strict=True):
        bar.append("█" * round(_BAR_CELLS * size / whole), style=colour)
    bar.append("\n  ")
    for name, colour in _PARTS:
        bar.append(f"■ {name} ", style=colour)
    return bar


def _bytes(size_bytes: int | None) -> str:
    if size_bytes is None:
        return "not known"
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << power:
            return f"{size_bytes / (1 << power):.1f} {unit}"
    return f"{size_bytes} B"
