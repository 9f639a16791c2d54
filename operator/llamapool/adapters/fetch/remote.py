"""Where each remote file is to be had: addresses and headers, made anew for each try."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urljoin, urlsplit

import obstore
from obstore.store import S3Store

from llamapool.adapters.fetch.http import Answer, HttpClient, Request
from llamapool.domain.transfer import Part, Refused, TryAgain, meaning_of, size_of_range, strong_etag
from llamapool.errors import FetchError, TransferInterruptedError
from llamapool.sources import (
    ACCESS_KEY_FILES,
    TOKEN_FILE,
    HttpSource,
    HuggingFaceSource,
    RemoteSource,
    S3Source,
    shown,
)

HUB = "https://huggingface.co"
_SIGNED_FOR = timedelta(hours=1)
"""A signature has to hold until the transfer begins; each try signs anew."""
_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')
_PARTIAL, _REDIRECTS = 206, (301, 302, 303, 307, 308)
_HUB_ERRORS = {
    "GatedRepo": "the repository is gated: accept its terms on the hub, and give a token in tokenSecretRef",
    "RepoNotFound": "there is no such repository, or it is private and the token does not open it",
    "RevisionNotFound": "the repository has no such revision",
    "EntryNotFound": "the repository has no such file at that revision",
}


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a source says of a file before it is downloaded; None: it does not say."""

    size_bytes: int | None = None
    sha256: str | None = None
    etag: str | None = None


class RemoteFile(Protocol):
    """One file to download."""

    @property
    def name(self) -> str:
        """Its name in the cache."""

    @property
    def place(self) -> str:
        """Where it is, for people, without anything secret."""

    def request(self) -> Request:
        """Return how to ask for it now."""

    def published(self, client: HttpClient) -> Published:
        """Ask what its source says of it; FetchError: it is not to be had."""


def remote_files(source: RemoteSource, secrets: Path) -> tuple[RemoteFile, ...]:
    """Return the files of a source, in order.

    Args:
        source: where they are.
        secrets: the folder that its Secret is mounted in.

    Raises:
        FetchError: a Secret's file cannot be read.
    """
    match source:
        case HuggingFaceSource():
            token = None if source.token is None else _secret(secrets / TOKEN_FILE)
            repository = _Repository(source.repo, source.revision, token)
            return tuple(
                _HubFile(repository, path, name)
                for path, name in zip(source.files, source.names, strict=True)
            )
        case HttpSource():
            return tuple(
                _AddressedFile(name=name, place=shown(url), address=partial(str, url))
                for url, name in zip(source.urls, source.names, strict=True)
            )
        case S3Source():
            address = _s3_addresses(source, secrets)
            return tuple(
                _AddressedFile(name=name, place=f"s3://{source.bucket}/{key}", address=partial(address, key))
                for key, name in zip(source.keys, source.names, strict=True)
            )


@dataclass(frozen=True, kw_only=True)
class _AddressedFile:
    """A file behind an address that needs no other request to be found."""

    name: str
    place: str
    address: Callable[[], str]

    def request(self) -> Request:
        return Request(url=self.address())

    def published(self, client: HttpClient) -> Published:
        """Ask for the first byte: HEAD is not always allowed, nor covered by a signature."""
        request = Request(url=self.address(), headers={"Range": "bytes=0-0"})
        with client.open(request) as answer:
            etag = strong_etag(answer.headers.get("etag"))
            if answer.status == _PARTIAL:
                size_bytes = size_of_range(answer.headers.get("content-range", ""))
                return Published(size_bytes=size_bytes, etag=etag)
            require_success(self.place, answer)
            return Published(size_bytes=_length(answer), etag=etag)


class _Repository:
    """A repository of the hub; all its files are taken from the one commit that the first was found at."""

    def __init__(self, repo: str, revision: str, token: str | None) -> None:
        self.repo, self.revision = repo, revision
        self._endpoint = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
        self._authorization = {} if token is None else {"Authorization": f"Bearer {token}"}

    def request(self, path: str, *, method: str = "GET") -> Request:
        """Source: the hub's documented `resolve` address."""
        url = f"{self._endpoint}/{self.repo}/resolve/{quote(self.revision, safe='')}/{quote(path)}"
        return Request(url=url, headers=self._authorization, method=method, follow=method == "GET")

    def head(self, path: str, client: HttpClient, place: str) -> Published:
        """Ask for a file's size and checksum, which the hub gives ahead of the redirect to its storage."""
        request = self.request(path, method="HEAD")
        for _ in range(5):
            with client.open(request) as answer:
                location = urljoin(request.url, answer.headers.get("location", ""))
                to_storage = "x-linked-size" in answer.headers or not _same_host(location, request.url)
                if answer.status in _REDIRECTS and not to_storage:  # the repository was renamed
                    request = Request(url=location, headers=request.headers, method="HEAD", follow=False)
                    continue
                return self._noted(answer, place)
        raise FetchError(f"{place}: the hub redirects more than 5 times")

    def _noted(self, answer: Answer, place: str) -> Published:
        if answer.status not in _REDIRECTS:
            code = answer.headers.get("x-error-code", "")
            if code in _HUB_ERRORS:
                raise FetchError(f"{place}: {_HUB_ERRORS[code]}")
            if answer.status in (401, 403):
                raise FetchError(
                    f"{place}: the hub answers {answer.status}: the token is wrong, or none was given"
                )
            require_success(place, answer)
        self.revision = answer.headers.get("x-repo-commit", self.revision)
        match = _SHA256.fullmatch(answer.headers.get("x-linked-etag", ""))
        size = answer.headers.get("x-linked-size", "")
        return Published(
            size_bytes=int(size)
            if size.isdecimal()
            else _length(answer)
            if answer.status not in _REDIRECTS
            else None,
            sha256=match[1] if match else None,
        )


@dataclass(frozen=True)
class _HubFile:
    repository: _Repository
    path: str
    name: str

    @property
    def place(self) -> str:
        return f"hf:{self.repository.repo}/{self.path}"

    def request(self) -> Request:
        return self.repository.request(self.path)

    def published(self, client: HttpClient) -> Published:
        return self.repository.head(self.path, client, self.place)


def require_success(place: str, answer: Answer) -> None:
    """Raise what an answer other than success means.

    Raises:
        TransferInterruptedError: it may be another when asked again.
        FetchError: it will not.
    """
    meaning = meaning_of(answer.status, answer.headers, Part(), ranged=False)
    if isinstance(meaning, TryAgain):
        raise TransferInterruptedError(f"{place}: {meaning.why}", after_seconds=meaning.after_seconds)
    if isinstance(meaning, Refused):
        code = answer.error_code()
        raise FetchError(f"{place}: {meaning.why}{f' ({code})' if code else ''}")


def _s3_addresses(source: S3Source, secrets: Path) -> Callable[[str], str]:
    endpoint = source.endpoint or f"https://s3.{source.region}.amazonaws.com"
    if source.credentials_secret is None:
        return lambda key: f"{endpoint.rstrip('/')}/{source.bucket}/{quote(key)}"
    access_key_id, secret_access_key = (_secret(secrets / name) for name in ACCESS_KEY_FILES)
    store = S3Store(
        source.bucket,
        endpoint=endpoint,
        region=source.region,
        access_key_id=access_key_id,
        secret_access_key=secret_access_key,
        client_options={"allow_http": endpoint.startswith("http:")},
    )
    return lambda key: str(obstore.sign(store, "GET", key, _SIGNED_FOR))


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise FetchError(f"{path}: the Secret's key cannot be read: {error.strerror}") from error


def _length(answer: Answer) -> int | None:
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None


def _same_host(first: str, second: str) -> bool:
    return urlsplit(first).netloc == urlsplit(second).netloc
