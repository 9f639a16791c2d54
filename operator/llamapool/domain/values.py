"""Reading the operator's own JSON back: every error names the field, its value and what would be right."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from llamapool.errors import LimitsFileError

Values = Mapping[str, Any]


def load(text: str, name: str) -> dict[str, Any]:
    """Read the text of one object.

    Raises:
        LimitsFileError: it is not JSON, or not an object.
    """
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise LimitsFileError(f"{name}: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise LimitsFileError(f"{name}: {values!r} must be an object")
    return values


def whole(values: Values, name: str) -> int:
    """Return a whole number, 0 or more."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise LimitsFileError(f"{name}: {value!r} must be a whole number, 0 or more")
    return value


def optional_whole(values: Values, name: str) -> int | None:
    """Return a whole number, 0 or more; None if absent or null."""
    return None if values.get(name) is None else whole(values, name)


def number(values: Values, name: str) -> float:
    """Return a number, 0 or more."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise LimitsFileError(f"{name}: {value!r} must be a number, 0 or more")
    return float(value)


def optional_number(values: Values, name: str) -> float | None:
    """Return a number, 0 or more; None if absent or null."""
    return None if values.get(name) is None else number(values, name)


def text(values: Values, name: str) -> str:
    """Return text."""
    value = values.get(name)
    if not isinstance(value, str):
        raise LimitsFileError(f"{name}: {value!r} must be text")
    return value


def optional_text(values: Values, name: str) -> str | None:
    """Return text; None if absent or null."""
    return None if values.get(name) is None else text(values, name)


def mapping(values: Values, name: str) -> Mapping[str, Any]:
    """Return an object."""
    value = values.get(name)
    if not isinstance(value, dict):
        raise LimitsFileError(f"{name}: {value!r} must be an object")
    return value


def optional_mapping(values: Values, name: str) -> Mapping[str, Any]:
    """Return an object; an empty one if absent or null."""
    return {} if values.get(name) is None else mapping(values, name)


def items(values: Values, name: str) -> list[Mapping[str, Any]]:
    """Return a list of objects; an empty one if absent or null."""
    value = values.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise LimitsFileError(f"{name}: must be a list of objects")
    return value


def time_text(seconds: float) -> str:
    """Write Unix seconds as RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_seconds(written: str) -> float:
    """Read RFC 3339 as Unix seconds.

    Raises:
        LimitsFileError: it is not RFC 3339 with an offset.
    """
    try:
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        raise LimitsFileError(f"{written!r} must be a time, RFC 3339") from error
    if moment.tzinfo is None:
        raise LimitsFileError(f"{written!r} must be a time with its offset, RFC 3339")
    return moment.timestamp()


def optional_time(values: Values, name: str) -> float | None:
    """Return Unix seconds of a time, RFC 3339; None if absent or null."""
    written = optional_text(values, name)
    return None if written is None else time_seconds(written)
