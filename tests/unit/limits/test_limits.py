"""limits.json and record.json are read back as they were written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamapool.domain.limits import DECISIONS_KEPT, DecisionEntry, Learned, Limits, Record
from llamapool.errors import LimitsFileError

SIZES = st.none() | st.integers(0, 2**63 - 1)
FIGURES = st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text(max_size=8), max_size=3)
LEARNED = st.builds(
    Learned, shape=st.text(max_size=16), checkpoint_bytes=SIZES, base_bytes=SIZES, limit_bytes=SIZES
)
ENTRIES = st.builds(
    DecisionEntry,
    id=st.text(max_size=16),
    time=st.text(max_size=20),
    reason=st.text(max_size=16),
    before=FIGURES,
    after=FIGURES,
    evidence=FIGURES,
)


def entry(number: int) -> DecisionEntry:
    return DecisionEntry(
        id=str(number), time="2026-12-01T00:00:00Z", reason="PoolCapChanged", before={}, after={}, evidence={}
    )


@given(
    st.builds(
        Limits, generation=st.integers(0), decision=st.text(), pool_cap_bytes=SIZES, state_budget_bytes=SIZES
    )
)
def test_limits_survive_their_json(limits: Limits) -> None:
    assert Limits.from_json(limits.to_json()) == limits


@given(st.builds(Record, learned=LEARNED, decisions=st.lists(ENTRIES, max_size=3).map(tuple)))
def test_a_record_survives_its_json(record: Record) -> None:
    assert Record.from_json(record.to_json()) == record


def test_limits_json_has_the_fields_that_the_server_reads() -> None:
    limits = Limits(generation=7, decision="7-abc", pool_cap_bytes=268435456)
    assert json.loads(limits.to_json()) == {
        "generation": 7,
        "decision": "7-abc",
        "poolCapBytes": 268435456,
        "stateBudgetBytes": None,
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"generation": "7"}, "generation"),
        ({"generation": -1}, "generation"),
        ({"generation": None}, "generation"),
        ({"generation": True}, "generation"),
        ({"decision": 7}, "decision"),
        ({"poolCapBytes": 1.5}, "poolCapBytes"),
        ({"stateBudgetBytes": "1Gi"}, "stateBudgetBytes"),
    ],
)
def test_a_field_of_another_kind_is_an_error_that_names_it(change: dict[str, Any], field: str) -> None:
    values = {"generation": 7, "decision": "x", "poolCapBytes": None} | change
    with pytest.raises(LimitsFileError, match=field):
        Limits.from_json(json.dumps(values))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '"x"', '{"decisions": 1, "learned": {"shape": ""}}', "{}"]
)
def test_text_that_is_no_record_is_an_error(text: str) -> None:
    with pytest.raises(LimitsFileError):
        Record.from_json(text)


def test_a_record_keeps_the_newest_twenty_decisions_the_newest_first() -> None:
    record = Record(learned=Learned(shape="s"))
    for number in range(DECISIONS_KEPT + 5):
        record = record.adding(entry(number))
    assert [int(kept.id) for kept in record.decisions] == list(range(DECISIONS_KEPT + 4, 4, -1))
