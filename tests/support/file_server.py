"""A server of files as met in the field: with ranges or without, cutting connections, changing files.

It also speaks as much of the hub and of an S3-compatible store as downloads meet there.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "hf_secret"  # noqa: S105 - of no one
ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
COMMIT = "c0ffee" + "0" * 34


@dataclass
class FileServer:
    """What is served, how, and what was asked.

    Attributes:
        files: content by path.
        ranges: whether it has ranges.
        etags: whether it gives strong ETags.
        cuts: bytes of each successive body after which the connection is cut; afterwards bodies are whole.
        statuses: answers to the next requests in place of the files.
        heeds_if_range: whether a changed file is sent whole rather than continued.
        needs_token: the hub's repository is gated.
        states_size: whether an answer says how long it is; the connection ends with it otherwise.
        pause_after: bytes of a body after which the rest waits for the event.
        asked: method, path and Range of each request.
        queries: the query of each request.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    etags: bool = True
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    heeds_if_range: bool = True
    needs_token: bool = False
    states_size: bool = True
    pause_after: tuple[int, threading.Event] | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    sent_bytes: int = 0
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def downloads(self) -> int:
        """How often a body was asked for; the probe of the first byte is none."""
        return sum(method == "GET" and range_ != "bytes=0-0" for method, _, range_ in self.asked)


@contextmanager
def serving(server: FileServer) -> Iterator[FileServer]:
    """Serve until the block ends."""
    handler = type("Handler", (_Handler,), {"served": server})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listener:
        listener.daemon_threads = True
        server.port = listener.server_address[1]
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: FileServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that has seen enough
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        self.served.asked.append((self.command, parts.path, self.headers.get("Range")))
        self.served.queries.append(parts.query)
        if self.served.statuses:
            self._refuse(self.served.statuses.pop(0))
        elif match := re.fullmatch(
            r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)", parts.path
        ):
            self._resolve(match)
        elif parts.path.startswith("/bucket/"):
            self._object(parts.path, parts.query)
        elif parts.path in self.served.files:
            self._send(self.served.files[parts.path])
        else:
            self._refuse(404)

    def _refuse(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _resolve(self, match: re.Match[str]) -> None:
        """The hub: size and checksum first, then off to the storage under an address that is signed."""
        path = f"/{match['repo']}/{match['path']}"
        if self.served.needs_token and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._refuse(401, X_Error_Code="GatedRepo")
        elif match["revision"] not in ("main", COMMIT):
            self._refuse(404, X_Error_Code="RevisionNotFound")
        elif path not in self.served.files:
            self._refuse(404, X_Error_Code="EntryNotFound")
        else:
            content = self.served.files[path]
            self._refuse(
                302,
                Location=f"http://localhost:{self.served.port}{path}?signature=secret",
                X_Repo_Commit=COMMIT,
                X_Linked_Size=str(len(content)),
                X_Linked_Etag=f'"{hashlib.sha256(content).hexdigest()}"',
            )

    def _object(self, path: str, query: str) -> None:
        """The store: it verifies the signature, then sends the object."""
        if not _is_signed(path, query, self.headers["Host"]):
            self._refuse(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        elif path not in self.served.files:
            self._refuse(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._send(self.served.files[path])

    def _send(self, content: bytes) -> None:
        if self.headers.get("Authorization") and "localhost" in self.headers["Host"]:
            self._refuse(400)  # a token has no business at the storage
            return
        etag = f'"{hashlib.md5(content).hexdigest()}"'  # noqa: S324 - as stores do
        first, last, status = 0, len(content) - 1, 200
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        unchanged = not self.served.heeds_if_range or self.headers.get("If-Range", etag) == etag
        if match and self.served.ranges and unchanged:
            first, status = int(match[1]), 206
            last = min(int(match[2] or last), last)
            if first >= len(content):
                self._refuse(416, Content_Range=f"bytes */{len(content)}")
                return
        body = content[first : last + 1]
        self.send_response(status)
        if self.served.states_size:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        if self.served.etags:
            self.send_header("ETag", etag)
        self.end_headers()
        self._body(body)

    def _body(self, body: bytes) -> None:
        whole = len(body)
        probed = self.headers.get("Range") == "bytes=0-0"
        if not probed and self.served.cuts:
            body = body[: self.served.cuts.pop(0)]
        if not probed and self.served.pause_after is not None:
            count, go_on = self.served.pause_after
            self.wfile.write(body[:count])
            self.wfile.flush()
            go_on.wait(20)
            body = body[count:]
        # Before it is sent: the client may be done before this thread goes on.
        self.served.sent_bytes += len(body)
        self.wfile.write(body)
        if len(body) < whole:
            self.close_connection = True


def _is_signed(path: str, query: str, host: str) -> bool:
    """Verify a presigned request. Source: AWS Signature Version 4, authenticating by query parameters."""
    pairs = dict(parse_qsl(query))
    signature = pairs.pop("X-Amz-Signature", "")
    access_key, date, region, service, ending = (
        pairs["X-Amz-Credential"].split("/") if signature else [""] * 5
    )
    if access_key != ACCESS_KEY or pairs["X-Amz-SignedHeaders"] != "host":
        return False
    made = datetime.strptime(pairs["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if datetime.now(UTC) > made + timedelta(seconds=int(pairs["X-Amz-Expires"])):
        return False
    ordered = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(pairs.items())
    )
    canonical = f"GET\n{path}\n{ordered}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    scope = f"{date}/{region}/{service}/{ending}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{pairs['X-Amz-Date']}\n{scope}\n{digest}"
    key = f"AWS4{SECRET_KEY}".encode()
    for part in (date, region, service, ending):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.compare_digest(hmac.new(key, to_sign.encode(), "sha256").hexdigest(), signature)
