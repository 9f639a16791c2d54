"""What an answer means for what is held: a part is never continued with another file's bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llamapool.domain.transfer import (
    LONGEST_DELAY_SECONDS,
    Append,
    Begin,
    Complete,
    Discard,
    Part,
    Refused,
    TryAgain,
    delay_seconds,
    meaning_of,
)

sizes = st.integers(min_value=1, max_value=1 << 45)
etags = st.sampled_from(['"a"', '"b"', 'W/"a"', None])
parts = st.builds(
    Part,
    held_bytes=st.integers(0, 1 << 45),
    size_bytes=st.none() | sizes,
    etag=st.sampled_from(['"a"', '"b"', None]),
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, dict[str, str]]:
    """Any answer, of a server that may be wrong about everything."""
    status = draw(st.sampled_from([200, 206, 416, 404, 503, 301]))
    headers = {}
    if (etag := draw(etags)) is not None:
        headers["etag"] = etag
    if draw(st.booleans()):
        first, size = draw(sizes), draw(sizes)
        headers["content-range"] = draw(
            st.sampled_from(
                [f"bytes {first}-{size - 1}/{size}", f"bytes */{size}", "bytes 0-0/*", "lines 1-2/3"]
            )
        )
    return status, headers


@given(part=parts, answer=answers(), known=st.booleans())
def test_a_part_is_continued_only_where_it_ends_and_only_with_the_same_version(
    part: Part, answer: tuple[int, dict[str, str]], *, known: bool
) -> None:
    asked = part.request_headers(checksum_known=known)
    meaning = meaning_of(*answer, part, ranged=bool(asked))
    if isinstance(meaning, Append):
        assert asked
        assert answer[1]["content-range"].startswith(f"bytes {part.held_bytes}-")
        assert part.size_bytes in (None, meaning.size_bytes)
        assert part.etag is None or meaning.etag == part.etag
    if isinstance(meaning, Complete):
        assert part.held_bytes == part.size_bytes


@given(part=parts, known=st.booleans())
def test_what_nothing_would_tell_from_another_file_s_is_asked_for_anew(part: Part, *, known: bool) -> None:
    asked = part.request_headers(checksum_known=known)
    if asked:
        assert part.held_bytes
        assert known or asked["If-Range"] == part.etag


@given(
    part=parts,
    size=sizes,
    changes=st.lists(st.sampled_from(["swap", "none"]), max_size=5),
)
def test_an_honest_server_leads_to_the_whole_file_whatever_happens_in_between(
    part: Part, size: int, changes: list[str]
) -> None:
    """Each round the server may swap the file; after the last one, the next answers bring all of it."""
    etag = '"a"'
    for change in changes:
        etag = '"b"' if change == "swap" else etag
    held = Part(held_bytes=min(part.held_bytes, size), size_bytes=part.size_bytes, etag=part.etag)
    for _ in range(3):
        asked = held.request_headers(checksum_known=False)
        fresh = asked.get("If-Range") == etag
        if asked and fresh and held.held_bytes < size:
            answer = (206, {"etag": etag, "content-range": f"bytes {held.held_bytes}-{size - 1}/{size}"})
        elif asked and fresh:
            answer = (416, {"content-range": f"bytes */{size}"})
        else:
            answer = (200, {"etag": etag, "content-length": str(size)})
        match meaning_of(*answer, held, ranged=bool(asked)):
            case Complete():
                assert held.held_bytes == size
                return
            case Append() | Begin():
                return
            case Discard():
                held = Part()
            case other:
                raise AssertionError(other)
    raise AssertionError("never came to the whole file")


@given(failures=st.integers(1, 10_000), jitter=st.floats(0, 1), after=st.none() | st.floats(0, 1e6))
def test_a_pause_is_never_longer_than_a_minute(failures: int, jitter: float, after: float | None) -> None:
    assert 0 < delay_seconds(failures, jitter=jitter, after_seconds=after) <= LONGEST_DELAY_SECONDS


def test_an_answer_in_another_encoding_is_not_the_file() -> None:
    assert isinstance(meaning_of(200, {"content-encoding": "gzip"}, Part(), ranged=False), Refused)


def test_a_busy_server_says_when_it_can_be_asked_again() -> None:
    assert meaning_of(429, {"retry-after": "7"}, Part(), ranged=False) == TryAgain("it answers 429", 7.0)
