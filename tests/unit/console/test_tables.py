"""The tables of the command line, as a person reads them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console, RenderableType

from llamapool.console import tables
from llamapool.domain.facts import ServerSample
from llamapool.domain.histogram import Histogram
from tests.unit.builders import GIB, MIB, model_body

NOW = datetime(2026, 12, 1, 12, 10, tzinfo=UTC)
STATUS: dict[str, Any] = {
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Serving",
            "message": "1 of 1 replicas answer requests",
        },
        {"type": "MemoryFits", "status": "False", "reason": "BudgetTooSmall", "message": "x" * 300},
    ],
    "memory": {
        "limit": "2Gi",
        "limitBytes": 2 * GIB,
        "baseBytes": 512 * MIB,
        "stateBudgetBytes": 1280 * MIB,
        "headroomBytes": 256 * MIB,
    },
    "pool": {"cap": "450Mi"},
    "ttft": {"p90": "0.42s"},
    "limits": {
        "acknowledged": {"pods": 0, "of": 1},
        "pods": [
            {"name": "tiny-1", "ready": True, "restarts": 2, "generation": 7, "poolCapBytes": 450 * MIB}
        ],
    },
    "decisions": [
        {
            "id": "7-a1",
            "time": "2026-12-01T12:00:00Z",
            "reason": "PoolCapChanged",
            "from": {"poolCapBytes": None},
            "to": {"poolCapBytes": 450 * MIB},
        }
    ],
}


def text(shown: RenderableType, *, width: int = 200) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def test_a_fleet_is_one_line_a_model() -> None:
    lines = text(tables.fleet([model_body() | {"status": STATUS}], now=NOW, namespaces=True)).splitlines()
    assert len(lines) == 2
    for told in ("models", "tiny", "True", "False", "0/1", "2Gi", "512Mi", "1280Mi", "450Mi", "0.42s"):
        assert told in lines[1].split()
    assert "PoolCapChanged 10m ago" in lines[1]


def test_a_model_that_no_operator_has_seen_is_shown_as_not_known() -> None:
    (_, line) = text(tables.fleet([model_body()], now=NOW, namespaces=False)).splitlines()
    assert line.split() == ["tiny", *["–"] * 9]
    assert "no operator has seen it yet" in text(tables.one(model_body(), now=NOW))


def test_one_model_shows_conditions_with_their_whole_messages_budget_pods_and_decisions() -> None:
    shown = text(tables.one(model_body() | {"status": STATUS}, now=NOW))
    assert shown.count("x") >= 300
    assert "■ base 512Mi" in shown
    assert "tiny-1" in shown
    assert "poolCap –" in shown
    assert "poolCap 450Mi" in shown


def test_the_budget_bar_has_the_lengths_of_its_parts() -> None:
    bar = tables.budget_bar(STATUS["memory"])
    lengths = [span.end - span.start for span in bar.spans if "█" in bar.plain[span.start : span.end]]
    assert lengths == [10, 25, 5]


@pytest.mark.parametrize("base", [None, 10 * GIB])
def test_a_budget_bar_stays_within_its_width_whatever_is_unknown_or_too_large(base: int | None) -> None:
    bar = tables.budget_bar(STATUS["memory"] | {"baseBytes": base}).plain
    assert bar.count("█") + bar.count("░") == 40


def test_a_condition_that_is_good_when_false_is_green_when_false() -> None:
    status = {"conditions": [{"type": "Degraded", "status": "False"}, {"type": "Ready", "status": "False"}]}
    assert tables.condition(status, "Degraded").style == "green"
    assert tables.condition(status, "Ready").style == "red"


def test_usage_shows_what_a_server_reports_and_why_another_does_not() -> None:
    sample = ServerSample(
        cgroup_unreclaimable_bytes=700 * MIB,
        cgroup_limit_bytes=GIB,
        pool_hits=3,
        pool_misses=1,
        time_to_first_token=Histogram((0.5, float("inf")), (4, 4)),
    )
    shown = text(tables.usage([("n", "m", "pod-a", sample), ("n", "m", "pod-b", "ServiceUnavailable")]))
    first, second = shown.splitlines()[1:]
    assert {"700Mi", "1Gi", "75%", "0.45s"} <= set(first.split())
    assert "ServiceUnavailable" in second


@pytest.mark.parametrize(
    ("time", "told"),
    [("12:09:30", "30s"), ("12:08:30", "90s"), ("12:05:00", "5m"), ("09:00:00", "3h"), ("12:11:00", "0s")],
)
def test_an_age_is_told_in_one_unit(time: str, told: str) -> None:
    assert tables.age(f"2026-12-01T{time}Z", NOW) == told
