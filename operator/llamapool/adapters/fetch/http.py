"""HTTP as the downloads need it: streamed, through proxies, with errors that show nothing secret."""

import re
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    IncompleteRead,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    ResponseError,
    SSLError,
)

from llamapool.errors import FetchError, TransferInterruptedError
from llamapool.sources import shown

CHUNK_BYTES = 1 << 20
CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
_REDIRECTS = urllib3.Retry(total=5, connect=0, read=0, redirect=5, status=0, other=0)
_ERROR_BODY_BYTES = 2048
_S3_CODE = re.compile(rb"<Code>(\w+)</Code>")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to ask for.

    Attributes:
        url: may hold what is secret, such as a signature; never shown.
        headers: may hold a token; Authorization is not sent on to another host.
        follow: redirects are followed.
        method: GET or HEAD.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    follow: bool = True
    method: str = "GET"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back; `chunks` streams the body and may raise TransferInterruptedError."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes] = field(repr=False)

    def error_code(self) -> str:
        """Return the code that an S3-compatible store gives in the body of an error; empty: none."""
        body = b"".join(piece for _, piece in zip(range(1), self.chunks, strict=False))[:_ERROR_BODY_BYTES]
        match = _S3_CODE.search(body)
        return match[1].decode() if match else ""


class HttpClient:
    """Opens requests; proxies are those of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY)."""

    def __init__(self, *, read_seconds: float = READ_SECONDS) -> None:
        self._timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds)
        self._managers: dict[str | None, urllib3.PoolManager] = {}

    @contextmanager
    def open(self, request: Request) -> Iterator[Answer]:
        """Send a request and yield the answer; its body is read only as far as it is asked for.

        Raises:
            TransferInterruptedError: there was no answer, or its body ended early.
            FetchError: the address cannot be used at all.
        """
        url, headers = _without_user(request)
        try:
            response = self._manager(url).request(
                request.method,
                url,
                headers={"Accept-Encoding": "identity", "User-Agent": "llamapool", **headers},
                preload_content=False,
                decode_content=False,
                redirect=request.follow,
                retries=_REDIRECTS if request.follow else False,
            )
        except HTTPError as error:
            raise _translated(request.url, error) from error
        try:
            lowered = {name.lower(): value for name, value in response.headers.items()}
            yield Answer(status=response.status, headers=lowered, chunks=_chunks(request.url, response))
        finally:
            response.close()  # what is left of a body is not read

    def _manager(self, url: str) -> urllib3.PoolManager:
        parts = urlsplit(url)
        proxy = urllib.request.getproxies_environment().get(parts.scheme)
        if proxy and urllib.request.proxy_bypass(parts.hostname or ""):
            proxy = None
        if proxy not in self._managers:
            self._managers[proxy] = (
                urllib3.ProxyManager(proxy, timeout=self._timeout)
                if proxy
                else urllib3.PoolManager(timeout=self._timeout)
            )
        return self._managers[proxy]


def _chunks(url: str, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    try:
        yield from response.stream(CHUNK_BYTES, decode_content=False)
    except HTTPError as error:
        raise _translated(url, error) from error


def _without_user(request: Request) -> tuple[str, dict[str, str]]:
    """Return the address without user and password, and the headers with them in."""
    parts = urlsplit(request.url)
    if parts.username is None:
        return request.url, dict(request.headers)
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, {**urllib3.make_headers(basic_auth=user), **request.headers}


def _translated(url: str, error: HTTPError) -> FetchError:
    """Return the error in words of our own: urllib3's show the whole address, query included."""
    cause: BaseException | None = error
    if isinstance(error, MaxRetryError):
        cause = error.reason
    place = shown(url)
    match cause:
        case SSLError():
            return FetchError(f"{place}: its certificate cannot be trusted: {cause.args[0]}")
        case ResponseError():
            return FetchError(f"{place}: it redirects more than {_REDIRECTS.redirect} times")
        case NameResolutionError():
            words = f"the name {urlsplit(url).hostname} cannot be resolved"
        case NewConnectionError():
            words = "no connection: " + str(cause).rpartition(": ")[2]
        case ConnectTimeoutError() | ReadTimeoutError():
            words = "it does not answer in time"
        case IncompleteRead():
            words = "the connection ended before the file did"
        case ProtocolError():
            words = "the connection was cut"
        case _:
            words = type(cause).__name__
    return TransferInterruptedError(f"{place}: {words}")
