"""One file, from its source to its verified name in the cache, across as many tries as it takes."""

import hashlib
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import BinaryIO, TypeVar

from llamapool.adapters.fetch.cache import Entry, PartNote, Rejection, writing
from llamapool.adapters.fetch.http import Answer, HttpClient, Request
from llamapool.adapters.fetch.progress import Progress, human
from llamapool.adapters.fetch.remote import RemoteFile
from llamapool.adapters.gguf_header import ModelFileError, read_local_header
from llamapool.domain.gguf import GgufError
from llamapool.domain.transfer import (
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
from llamapool.errors import FetchError, TransferInterruptedError

_MAGIC = b"GGUF"
_READ_BYTES = 1 << 20

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How patient a download is."""

    tries: int = 8
    """Tries in a row that bring nothing before it gives up; the kubelet then starts it again, ever later."""

    sync_bytes: int = 64 << 20
    """What a crash of the node loses at most."""

    progress_seconds: float = 10.0
    """Between two lines of the log."""

    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)


def patiently(attempt: Callable[[], Result], *, pace: Pace, say: Callable[[str], None]) -> Result:
    """Return what an attempt returns, tried again while it is interrupted.

    Raises:
        FetchError: it was refused, or interrupted too often in a row; the last cause.
    """
    failures = 0
    while True:
        try:
            return attempt()
        except _ProgressedError as error:
            failures, cause = 1, error.cause
        except TransferInterruptedError as error:
            failures, cause = failures + 1, error
        if failures >= pace.tries:
            raise FetchError(f"{cause}; given up after {failures} tries in a row") from cause
        delay = delay_seconds(failures, jitter=pace.jitter(), after_seconds=cause.after_seconds)
        say(f"{cause}; again in {delay:.1f} s")
        pace.sleep(delay)


class _ProgressedError(Exception):
    """An attempt was interrupted after it had come farther than every one before."""

    def __init__(self, cause: TransferInterruptedError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Download:
    """Brings one file into its place in the cache.

    Args:
        remote: the file.
        entry: its place; the folder's lock is held.
        sha256: what it must have; None: nobody says.
        client: the way to its source.
        pace: how patient.
        say: takes one line for the log.
    """

    def __init__(
        self,
        remote: RemoteFile,
        entry: Entry,
        sha256: str | None,
        *,
        client: HttpClient,
        pace: Pace,
        say: Callable[[str], None],
    ) -> None:
        self._remote, self._entry, self._wanted_sha256 = remote, entry, sha256
        self._client, self._pace, self._say = client, pace, say
        self._note = entry.read_part()
        self._hash = hashlib.sha256()
        self._farthest_bytes = self._note.synced_bytes

    def run(self, etag: str | None = None) -> str:
        """Download, verify, and give the file its name.

        Args:
            etag: of the version that the source has now; None: not known.

        Returns:
            Its SHA-256, in lower-case hexadecimal.

        Raises:
            FetchError: it is not to be had, is not what it should be, or the volume is full.
        """
        self._require_not_rejected(etag)
        with writing(self._entry.folder), self._opened_part() as file:
            if self._note.synced_bytes:
                self._say(f"{self._remote.name}: goes on from {human(self._note.synced_bytes)}")
            patiently(lambda: self._attempt(file), pace=self._pace, say=self._say)
            sha256 = self._verify(file)
            file.flush()
            os.fsync(file.fileno())
        with writing(self._entry.folder):
            self._entry.keep(sha256, self._remote.place)
        self._say(f"{self._remote.name}: verified, sha256 {sha256}")
        return sha256

    def _opened_part(self) -> BinaryIO:
        """Open the part at the end of what is surely held, with that much of it hashed."""
        self._entry.part.touch()
        file = self._entry.part.open("r+b")
        file.truncate(self._note.synced_bytes)
        while data := file.read(_READ_BYTES):
            self._hash.update(data)
        return file

    def _attempt(self, file: BinaryIO) -> None:
        """Ask for what is missing and take what comes.

        Raises:
            _ProgressedError, TransferInterruptedError: the rest is still missing.
            FetchError: it will not come.
        """
        held_bytes = file.tell()
        part = Part(held_bytes=held_bytes, size_bytes=self._note.size_bytes, etag=self._note.etag)
        ranged = part.request_headers(checksum_known=self._wanted_sha256 is not None)
        asked = self._remote.request()
        request = Request(url=asked.url, headers={**asked.headers, **ranged})
        try:
            with self._client.open(request) as answer:
                if self._accept(file, answer, part, ranged=bool(ranged)):
                    self._take(file, answer)
        except TransferInterruptedError as error:
            self._sync(file)
            if file.tell() > self._farthest_bytes:
                self._farthest_bytes = file.tell()
                raise _ProgressedError(error) from error
            raise

    def _accept(self, file: BinaryIO, answer: Answer, part: Part, *, ranged: bool) -> bool:
        """Make ready for the body of an answer; False: everything is held already.

        Raises:
            TransferInterruptedError: it has no body of the file; it may have when asked again.
            FetchError: it will not.
        """
        place = self._remote.place
        match meaning_of(answer.status, answer.headers, part, ranged=ranged):
            case Complete():
                return False
            case Append(size_bytes, etag):
                self._note = replace(self._note, size_bytes=size_bytes, etag=etag)
            case Begin(size_bytes, etag):
                self._require_not_rejected(etag)
                self._begin_anew(file, PartNote(size_bytes=size_bytes, etag=etag))
            case Discard(why):
                self._begin_anew(file, PartNote())
                raise TransferInterruptedError(f"{place}: {why}; begins anew")
            case TryAgain(why, after_seconds):
                raise TransferInterruptedError(f"{place}: {why}", after_seconds=after_seconds)
            case Refused(why):
                code = answer.error_code()
                raise FetchError(f"{place}: {why}{f' ({code})' if code else ''}")
        return True

    def _take(self, file: BinaryIO, answer: Answer) -> None:
        progress = Progress(
            self._remote.name,
            done_bytes=file.tell(),
            size_bytes=self._note.size_bytes,
            say=self._say,
            every_seconds=self._pace.progress_seconds,
        )
        for data in answer.chunks:
            if file.tell() == 0 and not data.startswith(_MAGIC[: len(data)]):
                raise FetchError(f"{self._remote.place}: is not a GGUF file: it begins with {data[:16]!r}")
            file.write(data)
            self._hash.update(data)
            progress.add(len(data))
            if file.tell() - self._note.synced_bytes >= self._pace.sync_bytes:
                self._sync(file)
        size_bytes = self._note.size_bytes
        if size_bytes is not None and file.tell() < size_bytes:
            raise TransferInterruptedError(
                f"{self._remote.place}: ended after {file.tell()} of {size_bytes} bytes"
            )

    def _sync(self, file: BinaryIO) -> None:
        """Note what is held once it surely is on disk."""
        file.flush()
        os.fdatasync(file.fileno())
        self._note = replace(self._note, synced_bytes=file.tell())
        self._entry.write_part(self._note)

    def _begin_anew(self, file: BinaryIO, note: PartNote) -> None:
        file.seek(0)
        file.truncate()
        self._hash = hashlib.sha256()
        self._note = note
        self._entry.write_part(note)

    def _require_not_rejected(self, etag: str | None) -> None:
        """Refuse a version that was found wrong before, rather than download it at each restart."""
        known = self._note.rejection
        if known is not None and (known.etag, known.wanted_sha256) == (etag, self._wanted_sha256):
            raise FetchError(self._mismatch(known.found_sha256))

    def _verify(self, file: BinaryIO) -> str:
        """Return the SHA-256 of the part once everything about it was found right.

        Raises:
            FetchError: it is not what it should be; it is dropped.
        """
        sha256, size_bytes = self._hash.hexdigest(), file.tell()
        wrong = None
        if self._note.size_bytes not in (None, size_bytes):
            wrong = f"{self._remote.place}: {size_bytes} bytes came of {self._note.size_bytes}"
        elif self._wanted_sha256 not in (None, sha256):
            wrong = self._mismatch(sha256)
        else:
            file.flush()
            try:
                read_local_header(self._entry.part)
            except (GgufError, ModelFileError) as error:
                wrong = f"{self._remote.place}: {error}"
        if wrong is None:
            return sha256
        rejection = None
        if self._note.etag is not None and self._wanted_sha256 not in (None, sha256):
            rejection = Rejection(
                etag=self._note.etag, wanted_sha256=str(self._wanted_sha256), found_sha256=sha256
            )
        self._begin_anew(file, PartNote(rejection=rejection))
        raise FetchError(wrong)

    def _mismatch(self, found_sha256: str) -> str:
        return (
            f"{self._remote.place}: its sha256 is {found_sha256}, not {self._wanted_sha256} as asked for;"
            " it is not served"
        )
