"""Reading untyped objects field by field, so that an error names the field, its value and what is right."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llamapool.errors import InvalidFieldError


@dataclass(frozen=True)
class Fields:
    """An object of a manifest together with its path in it.

    Attributes:
        values: the object.
        path: where it stands, such as `spec.server`.
    """

    values: Mapping[str, Any]
    path: str

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Return whether a field is set to something other than null."""
        return self.values.get(name) is not None

    def raw(self, name: str) -> Any:
        """Return a field as it is; None if absent."""
        return self.values.get(name)

    def child(self, name: str) -> "Fields":
        """Return an object field; an empty one if absent."""
        value = self.values.get(name)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise InvalidFieldError(self.at(name), value, "must be an object")
        return Fields(value, self.at(name))

    def items(self, name: str) -> Iterator["Fields"]:
        """Yield the objects of a list field."""
        for index, value in enumerate(self._list(name)):
            path = f"{self.at(name)}[{index}]"
            if not isinstance(value, Mapping):
                raise InvalidFieldError(path, value, "must be an object")
            yield Fields(value, path)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of text; empty if absent."""
        for index, value in enumerate(self._list(name)):
            if not isinstance(value, str):
                raise InvalidFieldError(f"{self.at(name)}[{index}]", value, "must be text; quote it")
        return tuple(self._list(name))

    def text(self, name: str) -> str:
        """Return a text field that must be there and not be empty."""
        value = self.values.get(name)
        if not isinstance(value, str) or not value:
            raise InvalidFieldError(self.at(name), value, "must be text, not empty")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text field; None if absent."""
        return self.text(name) if self.has(name) else None

    def optional_whole(self, name: str, *, least: int) -> int | None:
        """Return a whole number; None if absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidFieldError(self.at(name), value, f"must be a whole number, {least} or more")
        return value

    def whole(self, name: str, *, least: int, default: int) -> int:
        """Return a whole number."""
        value = self.optional_whole(name, least=least)
        return default if value is None else value

    def choice(self, name: str, choices: tuple[str, ...], *, default: str) -> str:
        """Return one of some words."""
        value = self.values.get(name, default)
        if value not in choices:
            raise InvalidFieldError(self.at(name), value, f"must be one of {', '.join(choices)}")
        return str(value)

    def _list(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidFieldError(self.at(name), value, "must be a list")
        return value
