"""A folder of things that are built once: each under a lock, to a temporary name, then renamed."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.progress import say


def root() -> Path:
    """$LLAMAPOOL_CACHE, else ~/.cache/llamapool: what is built once and used by every lab."""
    chosen = os.environ.get("LLAMAPOOL_CACHE")
    return Path(chosen).absolute() if chosen else Path.home() / ".cache" / "llamapool"


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on a file, waiting for its holder; the kernel frees it if the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for the process that holds {path}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def entry(name: str, build: Callable[[Path], None]) -> Path:
    """The cached file or folder of that name; if it is not there, `build` makes it at the path it is given.

    The name has to carry everything the content depends on: versions, or a `digest`.
    """
    folder = root()
    path = folder / name
    if path.exists():
        return path
    with lock(folder / f".{name}.lock"):
        if not path.exists():
            temporary = folder / f".{name}.tmp"
            remove(temporary)
            build(temporary)
            temporary.rename(path)
    return path


def digest(*parts: bytes) -> str:
    """SHA-256 (hexadecimal) of the parts, their boundaries included."""
    content = hashlib.sha256()
    for part in parts:
        content.update(len(part).to_bytes(8, "big"))
        content.update(part)
    return content.hexdigest()


def log_file(name: str) -> Path:
    """Where builds write what their tools print."""
    return root() / "log" / f"{name}.log"


def remove(path: Path) -> None:
    """Removes a file or a folder, read-only ones included, and is content if there is none."""
    if path.is_dir() and not path.is_symlink():
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o700)  # Go's module cache is read-only
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
