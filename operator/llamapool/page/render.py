"""The pages, from values to HTML; pure but for the templates, which are read once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import ChainableUndefined, Environment, PackageLoader

from llamapool.domain.quantity import format_bytes
from llamapool.page.chart import HEIGHT, WIDTH, budget_segments, ttft_lines
from llamapool.page.history import Point

Model = Mapping[str, Any]
_GOOD_WHEN_FALSE = ("Degraded",)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What every page shows around its content.

    Attributes:
        now: the time.
        replica: of the operator, whose page this is.
        leads: it is the one that acts.
        trouble: why what is shown may be old; empty: it is not.
    """

    now: datetime
    replica: str
    leads: bool
    trouble: str = ""


def fleet_page(models: Iterable[Model], frame: Frame) -> str:
    """Return the table of all models, those in trouble first."""
    ordered = sorted(
        models,
        key=lambda model: (
            not _in_trouble(model),
            model["metadata"]["namespace"],
            model["metadata"]["name"],
        ),
    )
    return _render("fleet.html", frame, models=ordered)


def model_page(model: Model, points: Sequence[Point], frame: Frame) -> str:
    """Return the page of one model.

    Args:
        model: as the API server has it.
        points: its time to first token over the last hour.
        frame: around it.
    """
    status = model.get("status") or {}
    return _render(
        "model.html",
        frame,
        model=model,
        segments=budget_segments(status.get("memory") or {}),
        lines=ttft_lines(points, now=frame.now.timestamp()),
        width=WIDTH,
        height=HEIGHT,
    )


def error_page(title: str, message: str, frame: Frame) -> str:
    """Return a page that says what went wrong."""
    return _render("error.html", frame, title=title, message=message)


def stylesheet() -> str:
    """Return the one stylesheet."""
    return _ENVIRONMENT.get_template("style.css").render()


def _render(template: str, frame: Frame, **values: Any) -> str:
    return _ENVIRONMENT.get_template(template).render(frame=frame, **values)


def _held(model: Model, kind: str) -> Mapping[str, Any]:
    conditions = (model.get("status") or {}).get("conditions") or []
    return next((held for held in conditions if held["type"] == kind), {})


def _verdict(held: Mapping[str, Any]) -> str:
    """Return how good a condition is: good, bad or unknown."""
    if held.get("status") not in ("True", "False"):
        return "unknown"
    wanted = "False" if held["type"] in _GOOD_WHEN_FALSE else "True"
    return "good" if held["status"] == wanted else "bad"


def _in_trouble(model: Model) -> bool:
    conditions = (model.get("status") or {}).get("conditions") or []
    return any(_verdict(held) == "bad" for held in conditions)


def _figure(name: str, value: Any) -> str:
    """Return a figure of a decision for people: bytes as a quantity, the rest as it is."""
    if value is None:
        return "the server's own"
    if name.endswith("Bytes") and isinstance(value, int):
        return f"{format_bytes(value)} ({value:,} bytes)" if value else "0"
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)


def _time(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z") + " UTC"


_ENVIRONMENT = Environment(
    loader=PackageLoader("llamapool.page"),
    autoescape=True,
    # Of a status any part may be absent, at any depth.
    undefined=ChainableUndefined,
    trim_blocks=True,
)
_ENVIRONMENT.filters |= {"verdict": _verdict, "time": _time}
_ENVIRONMENT.globals |= {"held": _held, "figure": _figure}
