"""Resuming a download over HTTP: what to ask for, and what an answer means for what is held already.

A part of a file is only ever continued with bytes of the same file: the server says so itself (`If-Range`
with a strong ETag, RFC 9110, section 13.1.5), or a checksum known beforehand will tell. A server that sends
the whole file, having no ranges or another file, makes the download begin anew.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.5, 60.0
_CONTENT_RANGE = re.compile(r"bytes (?P<first>\d+)-(?P<last>\d+)/(?P<size>\d+|\*)")
_UNSATISFIED = re.compile(r"bytes \*/(?P<size>\d+)")
_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is held of a file.

    Attributes:
        held_bytes: from its start.
        size_bytes: of the whole file; None: not known.
        etag: strong ETag of the answer that it is from; None: there was none.
    """

    held_bytes: int = 0
    size_bytes: int | None = None
    etag: str | None = None

    def request_headers(self, *, checksum_known: bool) -> dict[str, str]:
        """Return what to send to be given the rest; empty: the whole file is to be asked for.

        Args:
            checksum_known: the whole file will be compared with a checksum.
        """
        if not self.held_bytes or not (self.etag or checksum_known):
            return {}
        condition = {} if self.etag is None else {"If-Range": self.etag}
        return {"Range": f"bytes={self.held_bytes}-", **condition}


@dataclass(frozen=True)
class Append:
    """The answer continues what is held."""

    size_bytes: int | None
    etag: str | None


@dataclass(frozen=True)
class Begin:
    """The answer is the whole file: what is held is to be dropped."""

    size_bytes: int | None
    etag: str | None


@dataclass(frozen=True)
class Complete:
    """Everything is held already."""


@dataclass(frozen=True)
class Discard:
    """What is held is of another file, or more than there is: ask again for the whole file."""

    why: str


@dataclass(frozen=True)
class TryAgain:
    """The server cannot answer now; after_seconds: when it says it can."""

    why: str
    after_seconds: float | None


@dataclass(frozen=True)
class Refused:
    """The server will not answer otherwise when it is asked again."""

    why: str


Meaning = Append | Begin | Complete | Discard | TryAgain | Refused


def meaning_of(status: int, headers: Mapping[str, str], part: Part, *, ranged: bool) -> Meaning:
    """Return what an answer means.

    Args:
        status: HTTP status.
        headers: of the answer; names in lower case.
        part: what is held.
        ranged: the request asked for the rest only.
    """
    etag = strong_etag(headers.get("etag"))
    if headers.get("content-encoding", "identity") != "identity":
        return Refused(
            f"it sends the file with content encoding {headers['content-encoding']}, though asked not to"
        )
    if status == _OK:
        return Begin(_whole(headers.get("content-length")), etag)
    if status == _PARTIAL and ranged:
        return _continued(headers.get("content-range", ""), etag, part)
    if status == _UNSATISFIABLE and ranged:
        return _behind_the_end(headers.get("content-range", ""), part)
    if status in _TRY_AGAIN:
        return TryAgain(f"it answers {status}", _retry_after_seconds(headers.get("retry-after")))
    return Refused(f"it answers {status}")


def strong_etag(etag: str | None) -> str | None:
    """Return the ETag if two answers with it have the same bytes; a weak one says less."""
    return etag if etag is not None and etag.startswith('"') else None


def size_of_range(content_range: str) -> int | None:
    """Return the size of the whole file that a Content-Range states; None: none."""
    match = _CONTENT_RANGE.fullmatch(content_range)
    return None if match is None else _whole(match["size"])


def delay_seconds(failures: int, *, jitter: float, after_seconds: float | None = None) -> float:
    """Return how long to wait before the next try.

    Args:
        failures: tries in a row that brought nothing, this one included; at least 1.
        jitter: from 0 to 1, random: many pods that failed together should not come back together.
        after_seconds: what the server asks for.
    """
    longest = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** (min(failures, 16) - 1))
    asked = min(LONGEST_DELAY_SECONDS, after_seconds or 0.0)
    return max(asked, longest * (0.5 + jitter / 2))


def _continued(content_range: str, etag: str | None, part: Part) -> Meaning:
    match = _CONTENT_RANGE.fullmatch(content_range)
    if match is None or int(match["first"]) != part.held_bytes:
        return Discard(f"asked for bytes from {part.held_bytes}, it sends {content_range!r}")
    size_bytes = _whole(match["size"])
    if part.size_bytes not in (None, size_bytes):
        return Discard(f"the file had {part.size_bytes} bytes and has {size_bytes} now")
    if part.etag is not None and etag is not None and etag != part.etag:
        return Discard("the file has changed")
    return Append(size_bytes, etag or part.etag)


def _behind_the_end(content_range: str, part: Part) -> Meaning:
    match = _UNSATISFIED.fullmatch(content_range)
    if match and int(match["size"]) == part.held_bytes == part.size_bytes:
        return Complete()
    return Discard("it has no such range of the file")


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _retry_after_seconds(text: str | None) -> float | None:
    """Read the number of seconds; the form with a date is not worth a clock."""
    seconds = _whole(text)
    return None if seconds is None else float(seconds)
