"""Read a model's facts from where its files are: a path, or an HTTP(S) address.

Only headers are read. Of a remote file that is a few requests for ranges of some megabytes; a server that has
no ranges is read from the front and left as soon as the header is complete.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import urllib3

from llamapool.domain.gguf import GgufError, GgufHeader, GgufTruncatedError, read_header
from llamapool.domain.model_facts import ModelFacts, facts_of, split_count
from llamapool.errors import LlamapoolError

RANGE_BYTES = 4 << 20
CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
_RETRIES = urllib3.Retry(
    total=3, redirect=5, backoff_factor=0.2, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False
)
_FIRST_OF_SPLIT = re.compile(r"-00001-of-(\d{5})\.gguf$")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_OK, _PARTIAL = 200, 206


class ModelFileError(LlamapoolError):
    """A model's file could not be read: it is not there, not to be had, or changed while it was read.

    Attributes:
        location: path or address, without credentials or query.
    """

    def __init__(self, location: str, message: str) -> None:
        super().__init__(f"{location}: {message}")
        self.location = location


def read_model_facts(location: str, *, headers: Mapping[str, str] | None = None) -> ModelFacts:
    """Read the facts of a model, of all its files where `location` is the first of several.

    Args:
        location: path, or http:// or https:// address, of a GGUF file.
        headers: sent with each HTTP request, such as Authorization; not sent on to another host.

    Raises:
        ModelFileError: a file cannot be read.
        GgufError: a file is not GGUF, is truncated, or lacks a key that its architecture needs.
    """
    if not re.match(r"https?://", location):
        return _facts(location, lambda place: read_local_header(Path(place)))
    with urllib3.PoolManager(retries=_RETRIES, timeout=_timeout()) as pool:
        return _facts(location, lambda place: read_remote_header(place, pool=pool, headers=headers))


def read_local_header(path: Path) -> GgufHeader:
    """Read the header of a file.

    Raises:
        ModelFileError: the file cannot be read.
        GgufError: it is not GGUF, or shorter than its header says.
    """
    try:
        with path.open("rb") as source:
            return _checked(read_header(source), path.stat().st_size)
    except OSError as error:
        raise ModelFileError(str(path), error.strerror or "cannot be read") from error
    except GgufError as error:
        raise type(error)(f"{path}: {error}") from error


def read_remote_header(
    url: str, *, pool: urllib3.PoolManager | None = None, headers: Mapping[str, str] | None = None
) -> GgufHeader:
    """Read the header of a file on an HTTP server.

    Args:
        url: of the file.
        pool: the connections to use; None: new ones.
        headers: sent with each request; not sent on to another host.

    Raises:
        ModelFileError: the file cannot be read.
        GgufError: it is not GGUF, or shorter than its header says.
    """
    connections = pool or urllib3.PoolManager(retries=_RETRIES, timeout=_timeout())
    shown = _shown(url)
    try:
        with _RemoteFile(connections, url, headers or {}) as source:
            return _checked(read_header(source), source.size_bytes)
    except urllib3.exceptions.HTTPError as error:
        raise ModelFileError(shown, f"cannot be had: {error}") from error
    except GgufError as error:
        raise type(error)(f"{shown}: {error}") from error


class _RemoteFile:
    """The front of a remote file, read range by range, or as one stream where the server has no ranges.

    Attributes:
        size_bytes: of the whole file; None: the server does not say.
    """

    def __init__(self, pool: urllib3.PoolManager, url: str, headers: Mapping[str, str]) -> None:
        self._pool, self._url = pool, url
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._response: urllib3.BaseHTTPResponse | None = None
        self._position = 0
        self._tag: str | None = None
        self._by_ranges = True
        self.size_bytes: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def read(self, size: int, /) -> bytes:
        while self._response is not None or self._more():
            if self._response is None:
                self._response = self._request()
            data = self._response.read(size)
            if data:
                self._position += len(data)
                return data
            self._close()
        return b""

    def _more(self) -> bool:
        """Whether there is something to ask for behind what was read."""
        if self._position == 0:
            return True
        return self._by_ranges and self.size_bytes is not None and self._position < self.size_bytes

    def _request(self) -> urllib3.BaseHTTPResponse:
        last = self._position + RANGE_BYTES - 1
        headers = {**self._headers, "Range": f"bytes={self._position}-{last}"}
        response = self._pool.request("GET", self._url, headers=headers, preload_content=False)
        if response.status == _PARTIAL:
            self._note_range(response)
        elif response.status == _OK and self._position == 0:
            self._by_ranges = False
            length = response.headers.get("Content-Length", "")
            self.size_bytes = int(length) if length.isdecimal() else None
        else:
            response.close()
            raise ModelFileError(_shown(self._url), f"the server answers {response.status} {response.reason}")
        return response

    def _note_range(self, response: urllib3.BaseHTTPResponse) -> None:
        described = response.headers.get("Content-Range", "")
        match = _CONTENT_RANGE.fullmatch(described)
        if match is None or int(match[1]) != self._position:
            response.close()
            asked = f"asked for bytes from {self._position}, the server answers {described!r}"
            raise ModelFileError(_shown(self._url), asked)
        version = int(match[3]), response.headers.get("ETag")
        if self._position and version != (self.size_bytes, self._tag):
            response.close()
            raise ModelFileError(_shown(self._url), "the file changed while it was read")
        self.size_bytes, self._tag = version

    def _close(self) -> None:
        if self._response is not None:
            self._response.close()  # what is left of a stream is not read
            self._response = None


def _facts(location: str, read: Callable[[str], GgufHeader]) -> ModelFacts:
    first = read(location)
    try:
        match = _FIRST_OF_SPLIT.search(urlsplit(location).path)
        if match is None or int(match[1]) != split_count(first):
            return facts_of([first])
        names = [f"-{number:05}-of-{match[1]}.gguf" for number in range(2, int(match[1]) + 1)]
        return facts_of([first, *(read(location.replace(match[0], name)) for name in names)])
    except GgufError as error:
        raise type(error)(f"{_shown(location)}: {error}") from error


def _checked(header: GgufHeader, size_bytes: int | None) -> GgufHeader:
    if size_bytes is not None and size_bytes < header.file_bytes:
        raise GgufTruncatedError(
            f"the file has {size_bytes} bytes, and its header describes {header.file_bytes}"
        )
    return header


def _shown(location: str) -> str:
    """Return an address without what may be secret in it; a path as it is."""
    parts = urlsplit(location)
    if not parts.scheme.startswith("http"):
        return location
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _timeout() -> urllib3.Timeout:
    return urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
