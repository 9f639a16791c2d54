"""Quantities mean what the API server takes them for."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamapool.domain.quantity import format_bytes, parse_quantity, parse_size
from llamapool.errors import InvalidFieldError

FIELD = "spec.resources.limits.memory"
LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3060164198400m", 3060164199),
        ("129e6", 129_000_000),
        ("128974848000m", 128974848),
        ("2e9", 2_000_000_000),
        ("1E", 10**18),
        ("1E3", 1000),
        (".5Gi", 512 << 20),
        ("0.5", 1),
        ("1G", 10**9),
        ("500M", 500_000_000),
        ("+1Gi", 1 << 30),
        ("-1", -1),
        ("5.", 5),
        ("0", 0),
        ("1n", 1),
        ("1e-3", 1),
        ("16Ei", LARGEST),
        ("1e400000000000", LARGEST),
        ("1e-400000000000", 1),
        ("-0.5", -1),
        (1073741824, 1 << 30),
        (1.5, 2),
    ],
)
def test_a_quantity_is_read_as_apimachinery_reads_it(text: str | float, value: int) -> None:
    assert parse_quantity(text, field=FIELD) == value


@pytest.mark.parametrize(
    "text",
    [
        "1.5 Gi",
        "1GiB",
        "",
        " 1",
        "1 ",
        "Gi",
        "1K",
        "1gi",
        "1e",
        "e3",
        ".",
        "1.2.3",
        "--1",
        "0x10",
        "\u0661",
        True,
        None,
    ],
)
def test_what_is_no_quantity_is_an_error_that_names_field_value_and_what_is_right(text: str) -> None:
    with pytest.raises(InvalidFieldError) as raised:
        parse_quantity(text, field=FIELD)
    assert raised.value.field == FIELD
    assert repr(text) in str(raised.value)
    assert "512Mi" in raised.value.expected


def test_a_negative_quantity_is_not_a_size() -> None:
    with pytest.raises(InvalidFieldError, match=r"spec\.resources\.limits\.memory: '-1' is negative"):
        parse_size("-1", field=FIELD)


@given(
    whole=st.integers(0, 10**12),
    digits=st.text("0123456789", max_size=6),
    suffix=st.sampled_from(
        [("", 1), ("k", 10**3), ("M", 10**6), ("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)]
    ),
)
def test_a_fraction_is_rounded_up_to_the_next_byte(whole: int, digits: str, suffix: tuple[str, int]) -> None:
    exact = Fraction(f"{whole}.{digits or 0}") * suffix[1]
    read = parse_quantity(f"{whole}.{digits}{suffix[0]}", field=FIELD)
    assert read - 1 < exact <= read or read == LARGEST


def read_or_refused_field(text: str) -> int | str:
    try:
        return parse_quantity(text, field=FIELD)
    except InvalidFieldError as error:
        return error.field


@given(st.text(max_size=12) | st.text("0123456789.eE+-KMGimk", max_size=8))
def test_any_text_is_read_or_refused_with_its_field(text: str) -> None:
    outcome = read_or_refused_field(text)
    assert outcome == FIELD or (isinstance(outcome, int) and abs(outcome) <= LARGEST)


@given(st.integers(0, LARGEST))
def test_bytes_shown_to_people_lose_at_most_a_hundredth_and_never_gain(size_bytes: int) -> None:
    shown = parse_size(format_bytes(size_bytes), field=FIELD)
    assert size_bytes * 0.99 <= shown <= size_bytes


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (450 << 20, "450Mi"),
        (1536 << 20, "1536Mi"),
        (2 << 30, "2Gi"),
        (0, "0"),
        (1000, "1000"),
        (2 * 10**9, "1907Mi"),
    ],
)
def test_bytes_are_shown_in_the_largest_unit_that_fits(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text
