"""The commands of a page of the docs, as a person would run them: one after the other, in one shell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*$")
_FILE_NAME = re.compile(r"`([\w.-]+\.yaml)`")


@dataclass(frozen=True)
class Commands:
    """What a page tells its reader to do.

    Attributes:
        script: its `sh` blocks in order, one after the other.
        files: the `yaml` blocks whose paragraph before names a file, by that name.
        left_out: why a block is not run, for each that is not.
    """

    script: str
    files: dict[str, str]
    left_out: tuple[str, ...]


def commands_of(page: Path) -> Commands:
    """Read a page. `sh` blocks are commands, but for one right behind a comment `<!-- not run: why -->`."""
    text = page.read_text(encoding="utf-8")
    script, files, left_out = [], {}, []
    for match in _FENCE.finditer(text):
        language, body = match[1], match[2]
        before = text[: match.start()].rstrip()
        if language == "sh":
            exempted = _NOT_RUN.search(before)
            if exempted:
                left_out.append(exempted[1])
            else:
                script.append(body)
        elif language == "yaml":
            named = _FILE_NAME.findall(before.rpartition("\n\n")[2])
            if named:
                files[named[-1]] = body
    return Commands("".join(script), files, tuple(left_out))
