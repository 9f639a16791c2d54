"""What the benchmark of the plan covers, and when it says that the plan was wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.plan import WRONG, grid, summary

MIB = 1 << 20
SAID = {"base_bytes": 200 * MIB, "state_bytes": 1000, "peak_bytes": 300 * MIB}


def point(*, fits: bool = True, survived: bool = True, **seen: int) -> dict[str, Any]:
    measured = {**SAID, **seen} if fits else None
    return {"fits": fits, "survived": survived, "predicted": SAID, "measured": measured}


def test_the_grid_has_24_shapes_with_every_value_of_every_dimension() -> None:
    shapes = list(grid())
    assert len(set(shapes)) == 24
    assert {shape.layers for shape in shapes} == {16, 32, 64}
    assert {shape.slots for shape in shapes} == {1, 2, 4, 8}
    assert {shape.context_tokens for shape in shapes} == {1024, 4096, 16384}
    assert {shape.cache_type for shape in shapes} == {"f16", "q8_0"}
    assert {(shape.mmap, shape.cache) for shape in shapes} == {
        (mmap, cache) for mmap in (True, False) for cache in (True, False)
    }


def test_a_plan_that_holds_has_nothing_to_tell() -> None:
    found = summary([point(), point(fits=False, survived=False)])
    assert (found["fitting"], found["too_small"]) == (1, 1)
    assert not any(found[name] for name in WRONG)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (point(base_bytes=150 * MIB), "base_off"),
        (point(state_bytes=1001), "state_off"),
        (point(peak_bytes=300 * MIB + 1), "peak_above_plan"),
        (point(survived=False), "killed"),
        (point(fits=False), "survived"),
        ({**point(), "measured": None}, "unmeasured"),
    ],
)
def test_whatever_is_not_as_planned_is_counted(wrong: dict[str, Any], name: str) -> None:
    assert summary([point(), wrong])[name] == 1


def test_a_base_within_32_mib_or_5_percent_is_as_planned() -> None:
    assert summary([point(base_bytes=231 * MIB)])["base_off"] == 0
