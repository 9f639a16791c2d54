"""The record of several runs."""

from typing import Any

import pytest

from tests.bench.errors import BenchError
from tests.bench.record import join


def _record(at: str, *loads: str, cores: int = 2, quiet: bool = True) -> dict[str, Any]:
    return {
        "at": at,
        "upstream": {"release": "b1"},
        "machine": {"processor": "AMD EPYC", "cores": cores, "memory_gib": 23.5, "virtual": True},
        "quick": False,
        "quiet": quiet,
        "arms": {"ours": "llamapool"},
        "loads": [{"load": load, "of": at} for load in loads],
        "comparisons": [{"load": load, "of": at} for load in loads],
    }


def test_each_load_is_as_its_last_run_showed() -> None:
    joined = join([_record("monday", "steady", "cold"), _record("tuesday", "cold")])
    seen = {"steady": "monday", "cold": "tuesday"}
    assert {each["load"]: each["of"] for each in joined["loads"]} == seen
    assert {each["load"]: each["of"] for each in joined["comparisons"]} == seen


def test_a_run_beside_other_programs_makes_the_whole_no_result() -> None:
    assert not join([_record("monday", "steady", quiet=False), _record("tuesday", "cold")])["quiet"]


def test_runs_on_different_machines_are_not_joined() -> None:
    with pytest.raises(BenchError, match=r"machine: .* at tuesday, want that of monday"):
        join([_record("monday", "steady"), _record("tuesday", "cold", cores=4)])
