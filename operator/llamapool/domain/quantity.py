"""Kubernetes quantities as whole bytes, by the rules of apimachinery's `resource.ParseQuantity`.

Source of the grammar: k8s.io/apimachinery/pkg/api/resource/quantity.go (sign, decimal number, then one of
the binary suffixes Ki to Ei, the decimal suffixes n to E, or a decimal exponent), and `Quantity.Value()`,
which rounds a fraction away from zero.
"""

import math
import re
from fractions import Fraction

from llamapool.errors import InvalidFieldError

_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,19}))?"
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MAX = (1 << 63) - 1
_LONGEST_NUMBER = 100  # digits; no number that anyone means is longer
_EXPONENT_CAP = 200  # beyond it every such number is over the maximum, or under one

_EXPECTED = "is not a quantity; write a number with an optional suffix, such as 512Mi, 1.5Gi or 2e9"


def parse_quantity(value: str | float, *, field: str) -> int:
    """Read a Kubernetes quantity.

    Args:
        value: the quantity as the API gives it: text, or a number.
        field: path of the field it came from, for the error.

    Returns:
        The value in its base unit (bytes, for memory), a fraction rounded away from zero. Values beyond
        ±(2^63 - 1) become that, as in apimachinery. May be negative.

    Raises:
        InvalidFieldError: the value is not a quantity.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidFieldError(field, value, _EXPECTED)
    match = _GRAMMAR.fullmatch(str(value))
    if match is None or len(match["number"]) > _LONGEST_NUMBER:
        raise InvalidFieldError(field, value, _EXPECTED)
    if match["suffix"] in _BINARY:
        unit = Fraction(1 << 10 * _BINARY[match["suffix"]])
    else:
        power = int(match["exponent"] or 0) if match["suffix"] is None else _DECIMAL[match["suffix"]]
        unit = Fraction(10) ** max(-_EXPONENT_CAP, min(power, _EXPONENT_CAP))
    whole = min(math.ceil(Fraction(match["number"]) * unit), _MAX)
    return -whole if match["sign"] == "-" else whole


def parse_size(value: str | float, *, field: str) -> int:
    """Read a quantity of bytes: as `parse_quantity`, but a negative one is refused.

    Raises:
        InvalidFieldError: the value is not a quantity, or is below zero.
    """
    size_bytes = parse_quantity(value, field=field)
    if size_bytes < 0:
        raise InvalidFieldError(field, value, "is negative; write 0 or more, such as 512Mi")
    return size_bytes


def format_bytes(size_bytes: int) -> str:
    """Write bytes for people, as a quantity in the largest binary unit that loses at most a hundredth.

    What does not fill the unit is cut off, so that what is shown never exceeds what is there; below one Ki
    the number is exact.
    """
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        unit = 1 << 10 * _BINARY[suffix]
        if size_bytes >= unit and (size_bytes % unit) * 100 <= size_bytes:
            return f"{size_bytes // unit}{suffix}"
    return str(size_bytes)
