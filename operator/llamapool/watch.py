"""Noticing a watch that has silently died: its index stops following what the API server has."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from llamapool.adapters.metrics import ModelKey

Versions = Mapping[ModelKey, str]
"""The resourceVersion of every model."""


@dataclass
class WatchCheck:
    """Compares an index with the API server, check by check.

    Attributes:
        stale: an index entry was behind at the last check but one, and had not moved by the last.
    """

    stale: bool = False
    _behind: dict[ModelKey, str | None] = field(default_factory=dict)

    def compare(self, indexed: Versions, served: Versions) -> None:
        """Take in one check; the checks must lie further apart than an event takes to arrive.

        Args:
            indexed: what the watch has brought.
            served: what the API server answers to a list.
        """
        behind = {
            key: indexed.get(key)
            for key in indexed.keys() | served.keys()
            if indexed.get(key) != served.get(key)
        }
        self.stale = any(key in self._behind and self._behind[key] == seen for key, seen in behind.items())
        self._behind = behind
