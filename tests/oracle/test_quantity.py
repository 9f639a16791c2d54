"""The quantity parser reads and refuses what apimachinery's does."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from llamapool.domain.quantity import parse_quantity
from llamapool.errors import InvalidFieldError
from tests.cluster import golang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HAS_NUMBER = re.compile(r"[+-]?\.?[0-9]")
NUMBERS = st.from_regex(r"[0-9]{0,20}\.?[0-9]{0,12}", fullmatch=True)
SUFFIXES = st.sampled_from(["", *"numkMGTPEKg", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "KB", "iB", "GiB", " Gi"])
EXPONENTS = st.from_regex(r"[eE][+-]?[0-9]{0,4}", fullmatch=True)
QUANTITIES = st.builds(
    "".join, st.tuples(st.sampled_from(["", "", "+", "-"]), NUMBERS, st.one_of(SUFFIXES, EXPONENTS))
)
NEARLY = st.text("0123456789.eE+-KMGTPimkun ", max_size=10)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Callable[[str], int | None]]:
    program = golang.quantity_oracle() / "quantity"
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        to_it, from_it = process.stdin, process.stdout
        assert to_it is not None
        assert from_it is not None

        def ask(text: str) -> int | None:
            to_it.write(json.dumps(text) + "\n")
            to_it.flush()
            answer: int | None = json.loads(from_it.readline())
            return answer

        yield ask
        to_it.close()
        assert process.wait(10) == 0


def ours(text: str) -> int | None:
    try:
        return parse_quantity(text, field="memory")
    except InvalidFieldError:
        return None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "3060164198400m",
            "129e6",
            "128974848000m",
            "2e9",
            "1E",
            "1E3",
            ".5Gi",
            "0.5",
            "1G",
            "500M",
            "+1Gi",
        ),
        *(
            "1.5 Gi",
            "1GiB",
            "-1",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775809",
            "1e-20",
        ),
    ],
)
def test_quantities_from_the_field_are_read_alike(oracle: Callable[[str], int | None], text: str) -> None:
    assert ours(text) == oracle(text)


@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=QUANTITIES | NEARLY)
def test_any_text_is_read_or_refused_alike(oracle: Callable[[str], int | None], text: str) -> None:
    assume(HAS_NUMBER.match(text))
    assert ours(text) == oracle(text)


@pytest.mark.parametrize("text", ["Ki", "n", ".", "+", "-", "e3", ".k"])
def test_a_suffix_without_a_number_which_apimachinery_takes_for_0_is_refused(
    oracle: Callable[[str], int | None], text: str
) -> None:
    assert oracle(text) == 0
    assert ours(text) is None
