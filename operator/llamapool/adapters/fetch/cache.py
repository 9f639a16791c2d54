"""The cache volume: a folder a source, in it each file with a note of what was verified, or a part of it.

KEY/model.gguf                   a whole file, verified before it got this name
KEY/model.gguf.verified.json     its size, modification time and SHA-256: it need not be read again
KEY/model.gguf.part              what is held of it
KEY/model.gguf.part.json         of which version of the file that is, and how much of it surely is on disk
KEY/lock                         held by the process that downloads into the folder; goes with it
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from llamapool.errors import FetchError

LOCK_POLL_SECONDS, LOCK_SAY_SECONDS = 0.2, 60.0
_VERSION = 1
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What a whole file was when it was verified."""

    sha256: str
    size_bytes: int
    modified_ns: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """A version of a file that did not have the checksum that was asked for: it is not downloaded again.

    Attributes:
        etag: of that version.
        wanted_sha256, found_sha256: what it should have been, and what it was.
    """

    etag: str
    wanted_sha256: str
    found_sha256: str


@dataclass(frozen=True, kw_only=True)
class PartNote:
    """What is held of a file.

    Attributes:
        synced_bytes: from its start, surely on disk, even after a crash of the node.
        size_bytes: of the whole file; None: not known.
        etag: strong ETag of the version that it is of; None: there was none.
        rejection: a version that was downloaded and found wrong.
    """

    synced_bytes: int = 0
    size_bytes: int | None = None
    etag: str | None = None
    rejection: Rejection | None = None


@dataclass(frozen=True)
class Entry:
    """One file in the cache."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        """The file under the name that the server opens."""
        return self.folder / self.name

    @property
    def part(self) -> Path:
        """What is held of it."""
        return self.folder / f"{self.name}.part"

    def verified(self) -> Verified | None:
        """Return what was verified of the file as it is now; None: absent, or changed since."""
        note = _read_note(self._verified_note)
        try:
            verified, now = Verified(**note), self.path.stat()
        except (TypeError, FileNotFoundError):
            return None
        unchanged = (now.st_size, now.st_mtime_ns) == (verified.size_bytes, verified.modified_ns)
        return verified if unchanged else None

    def noted_sha256(self) -> str | None:
        """Return the checksum that the file had when it was verified, whether it has changed since or not."""
        sha256 = _read_note(self._verified_note).get("sha256")
        return sha256 if isinstance(sha256, str) else None

    def read_part(self) -> PartNote:
        """Return what is held, no more than there is."""
        note = _read_note(self._part_note)
        try:
            rejection = note.pop("rejection", None)
            part = PartNote(**note, rejection=Rejection(**rejection) if rejection else None)
            there_bytes = self.part.stat().st_size
        except (TypeError, AttributeError):
            return PartNote()
        except FileNotFoundError:
            there_bytes = 0
        synced_bytes = min(part.synced_bytes, there_bytes)
        return PartNote(**{**vars(part), "synced_bytes": synced_bytes})

    def write_part(self, note: PartNote) -> None:
        """Note what is held; the bytes themselves must be on disk."""
        _write_note(self._part_note, asdict(note))

    def keep(self, sha256: str, source: str) -> None:
        """Give the part, verified and on disk, the name of the file. The note is there before the file is."""
        self._note_verified(self.part, sha256, source)
        self.part.replace(self.path)
        self._part_note.unlink(missing_ok=True)
        _sync_folder(self.folder)

    def confirm(self, sha256: str, source: str) -> None:
        """Note that the file as it is was read and found right."""
        self._note_verified(self.path, sha256, source)

    def drop(self) -> None:
        """Remove the file, which is not what it should be."""
        self.path.unlink(missing_ok=True)
        self._verified_note.unlink(missing_ok=True)

    @property
    def _verified_note(self) -> Path:
        return self.folder / f"{self.name}.verified.json"

    @property
    def _part_note(self) -> Path:
        return self.folder / f"{self.name}.part.json"

    def _note_verified(self, path: Path, sha256: str, source: str) -> None:
        now = path.stat()
        verified = Verified(sha256=sha256, size_bytes=now.st_size, modified_ns=now.st_mtime_ns, source=source)
        _write_note(self._verified_note, asdict(verified))


@contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder's lock; made where it is absent. The kernel releases it when the process ends.

    Raises:
        FetchError: the volume cannot be written to, or has no locks.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o664)
    try:
        said_at: float | None = None
        while not _taken(descriptor, folder):
            if said_at is None or time.monotonic() - said_at > LOCK_SAY_SECONDS:
                said_at = time.monotonic()
                say(f"{folder.name}: another process downloads into it; waiting for it to end")
            time.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn errors of the volume into what to do about them.

    Raises:
        FetchError: the volume is full, or cannot be written to.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise FetchError(
                f"the cache volume is full ({free_bytes(folder)} bytes free): raise spec.model.cache.size,"
                " or remove what else is on it"
            ) from error
        raise FetchError(
            f"the cache volume cannot be written to: {error.strerror}: {error.filename or folder}"
        ) from error


def free_bytes(folder: Path) -> int:
    """Return what may still be written to the volume of a folder, which may not be there yet."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    figures = os.statvfs(there)
    return figures.f_bavail * figures.f_frsize


def _taken(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise FetchError(
            f"{folder}: the cache volume has no file locks ({error.strerror}); use another"
        ) from error
    return True


def _read_note(path: Path) -> dict[str, Any]:
    """Return a note; empty where there is none that can be read: it is then found out anew."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(note, dict) or note.pop("v", None) != _VERSION:
        return {}
    return note


def _write_note(path: Path, note: dict[str, Any]) -> None:
    """Write whole or not at all, whatever happens."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"v": _VERSION, **note}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
