"""Headers are read from files and from HTTP servers of every kind, and little more than the headers."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar

import pytest

from llamapool.adapters.gguf_header import ModelFileError, read_model_facts
from llamapool.domain.gguf import GgufError, GgufTruncatedError
from tests.unit.gguf.test_model_facts import SSM, WEIGHTS, model, split

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.gguf.writing import File

DATA_BYTES = 64 << 20


def with_vocabulary(file: File) -> File:
    """A header of some 11 MB: more than two ranges."""
    return file.with_metadata(**{"tokenizer.ggml.tokens": [f"token{index:06}" for index in range(600_000)]})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        del format, args

    def do_GET(self) -> None:
        server = self.server
        server.requests.append((self.path, dict(self.headers)))
        if self.path in server.redirects:
            self.send_response(302)
            self.send_header("Location", server.redirects[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.split("?")[0] not in server.files:
            self.send_error(server.refusal)
        else:
            self._send(server.files[self.path.split("?")[0]])

    def _send(self, head: bytes) -> None:
        server = self.server
        size = len(head) + server.data_bytes
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if server.ranges else None
        first, last = (int(asked[1]), min(int(asked[2]), size - 1)) if asked else (0, size - 1)
        self.send_response(206 if asked else 200)
        if asked:
            shown = server.content_range or f"bytes {first}-{last}/{size}"
            self.send_header("Content-Range", shown)
            self.send_header("ETag", server.tags[min(len(server.requests), len(server.tags)) - 1])
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        try:
            for start in range(first, last + 1, 1 << 16):
                end = min(start + (1 << 16), last + 1)
                part = head[start:end]
                self.wfile.write(part + bytes(end - start - len(part)))
                server.sent_bytes += end - start
                if start >= server.cut_at_bytes:
                    self.close_connection = True
                    return
        except ConnectionError:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    """A file server with the habits that a test gives it."""

    daemon_threads = True
    address: ClassVar[tuple[str, int]] = ("127.0.0.1", 0)

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(self.address, _Handler)
        self.files = files
        self.redirects: dict[str, str] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.ranges = True
        self.refusal = 404
        self.content_range: str | None = None
        self.tags = ['"one"']
        self.data_bytes = DATA_BYTES
        self.cut_at_bytes = 1 << 62
        self.sent_bytes = 0

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Server]:
    with Server(files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def long_header() -> bytes:
    return with_vocabulary(model("mamba2", SSM)).header()


@pytest.fixture
def server(long_header: bytes) -> Iterator[Server]:
    with serving({"/m.gguf": long_header}) as running:
        yield running


def test_a_long_header_is_read_by_ranges(server: Server, long_header: bytes) -> None:
    facts = read_model_facts(f"{server.url}/m.gguf")
    assert (facts.architecture, facts.vocabulary) == ("mamba2", 600_000)
    assert [headers["Range"] for _, headers in server.requests] == [
        "bytes=0-4194303",
        "bytes=4194304-8388607",
        "bytes=8388608-12582911",
    ]
    assert server.sent_bytes <= 3 * (4 << 20) < len(long_header) + DATA_BYTES


def test_without_ranges_the_stream_is_left_once_the_header_is_complete(
    server: Server, long_header: bytes
) -> None:
    server.ranges = False
    assert read_model_facts(f"{server.url}/m.gguf").vocabulary == 600_000
    assert len(server.requests) == 1
    assert server.sent_bytes < len(long_header) + (16 << 20)  # what fits the sockets' buffers


def test_remote_and_local_files_have_the_same_facts(
    server: Server, long_header: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(long_header)
    server.data_bytes = 0
    assert read_model_facts(f"{server.url}/m.gguf") == read_model_facts(str(path))


def test_a_redirect_is_followed_without_the_token_to_another_host(server: Server, long_header: bytes) -> None:
    with serving({"/cdn": long_header}) as other:
        server.redirects["/hub.gguf"] = f"http://localhost:{other.server_port}/cdn?signature=secret"
        read_model_facts(f"{server.url}/hub.gguf", headers={"Authorization": "Bearer token"})
        assert all("Authorization" not in headers for _, headers in other.requests)
        assert all("Range" in headers for _, headers in other.requests)
    assert all(headers["Authorization"] == "Bearer token" for _, headers in server.requests)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_names_the_address_without_its_secrets(server: Server, status: int) -> None:
    server.refusal = status
    with pytest.raises(ModelFileError, match=rf"/absent.gguf: the server answers {status} ") as caught:
        read_model_facts(f"http://user:secret@127.0.0.1:{server.server_port}/absent.gguf?token=secret")
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_named() -> None:
    with serving({}) as gone:
        url = f"{gone.url}/m.gguf"
    with pytest.raises(ModelFileError, match=r"/m.gguf: cannot be had: .*refused"):
        read_model_facts(url)


def test_a_file_that_changes_between_two_ranges_is_refused(server: Server) -> None:
    server.tags = ['"one"', '"two"']
    with pytest.raises(ModelFileError, match="the file changed while it was read"):
        read_model_facts(f"{server.url}/m.gguf")


@pytest.mark.parametrize("answer", ["bytes 5-9/100", "bytes 0-4194303/*", "chunks 0-1/2"])
def test_another_range_than_asked_for_is_refused(server: Server, answer: str) -> None:
    server.content_range = answer
    with pytest.raises(ModelFileError, match="asked for bytes from 0, the server answers"):
        read_model_facts(f"{server.url}/m.gguf")


@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_is_cut_is_an_error(server: Server, ranges: bool) -> None:  # noqa: FBT001
    server.ranges, server.cut_at_bytes = ranges, 1 << 20
    with pytest.raises(ModelFileError, match="cannot be had: "):
        read_model_facts(f"{server.url}/m.gguf")


@pytest.mark.parametrize("ranges", [True, False])
def test_a_remote_file_that_is_shorter_than_its_header_says_is_refused(ranges: bool) -> None:  # noqa: FBT001
    head = model("mamba2", SSM, tensors=WEIGHTS).header()
    with serving({"/m.gguf": head}) as server:
        server.ranges, server.data_bytes = ranges, 100
        with pytest.raises(
            GgufTruncatedError, match=f"m.gguf: the file has {len(head) + 100} bytes, and its"
        ):
            read_model_facts(f"{server.url}/m.gguf")


def test_a_local_file_that_is_shorter_than_its_header_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model("mamba2", SSM, tensors=WEIGHTS).header() + bytes(100))
    with pytest.raises(GgufTruncatedError, match=r"m.gguf: the file has \d+ bytes, and its header describes"):
        read_model_facts(str(path))


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"absent.gguf: No such file or directory"):
        read_model_facts(str(tmp_path / "absent.gguf"))


def test_a_file_that_is_not_gguf_is_named(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<html>")
    with pytest.raises(GgufError, match=r"page.gguf: the file begins with b'<htm', not with b'GGUF'"):
        read_model_facts(str(path))


def test_the_files_of_a_split_model_are_found_by_name(tmp_path: Path) -> None:
    whole = tmp_path / "whole.gguf"
    whole.write_bytes(model("mamba2", SSM, tensors=WEIGHTS).header() + bytes(1 << 20))
    for number, file in enumerate(split(WEIGHTS[:2], WEIGHTS[2:]), start=1):
        (tmp_path / f"m-{number:05}-of-00002.gguf").write_bytes(file.header() + bytes(1 << 20))
    parts = read_model_facts(str(tmp_path / "m-00001-of-00002.gguf"))
    assert parts.weights == read_model_facts(str(whole)).weights


def test_a_missing_file_of_a_split_model_is_named(tmp_path: Path) -> None:
    first = split(WEIGHTS[:2], WEIGHTS[2:])[0]
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(first.header() + bytes(1 << 20))
    with pytest.raises(ModelFileError, match=r"m-00002-of-00002.gguf: No such file"):
        read_model_facts(str(tmp_path / "m-00001-of-00002.gguf"))
