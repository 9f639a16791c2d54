"""Where the files of a model come from (`spec.model`), and where they are in its pods.

Both the operator, which writes the server's arguments, and `llamapool fetch`, which brings the files there,
read it from here: the place of a downloaded file follows from its source alone, before it is there.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import unquote, urlsplit

from llamapool.errors import InvalidFieldError, UnsupportedFieldError
from llamapool.fields import Fields

CACHE_FOLDER: Final = "/cache"
"""Where downloaded files are in the pod."""
SECRETS_FOLDER: Final = "/etc/llamapool-secrets"
TOKEN_FILE: Final = "token"  # noqa: S105 - a name
ACCESS_KEY_FILES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
KINDS: Final = ("huggingFace", "http", "s3", "pvc", "image")

_FIELDS = ("source", "sha256", "mmproj", "draft")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


class Role(StrEnum):
    """What the server uses a file for; also names its volume and its folder."""

    MODEL = "model"
    MMPROJ = "mmproj"
    DRAFT = "draft"


CLAIM_FOLDERS: Final = {Role.MODEL: "/models", Role.MMPROJ: "/mmproj", Role.DRAFT: "/draft"}
"""Where the user's own claims are mounted in the pod."""


@dataclass(frozen=True, kw_only=True)
class SecretKey:
    """One key of a Secret in the model's namespace."""

    name: str
    key: str


@dataclass(frozen=True, kw_only=True)
class HuggingFaceSource:
    """Files of a repository on the hub; `files` are paths in it, in the order of a split model's parts."""

    repo: str
    files: tuple[str, ...]
    revision: str
    token: SecretKey | None

    @property
    def names(self) -> tuple[str, ...]:
        """File names in the cache, in order."""
        return tuple(path.rpartition("/")[2] for path in self.files)

    @property
    def identity(self) -> Sequence[object]:
        """What tells this source from every other one; nothing secret."""
        return ("huggingFace", self.repo, self.revision, self.files)


@dataclass(frozen=True, kw_only=True)
class HttpSource:
    """Files behind HTTP(S) addresses, in the order of a split model's parts."""

    urls: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """File names in the cache, in order."""
        return tuple(_name_of_url(url) for url in self.urls)

    @property
    def identity(self) -> Sequence[object]:
        """What tells this source from every other one: without query, since a signature changes."""
        return ("http", [shown(url) for url in self.urls])


@dataclass(frozen=True, kw_only=True)
class S3Source:
    """Objects of an S3-compatible store; endpoint None: AWS's of the region."""

    endpoint: str | None
    region: str
    bucket: str
    keys: tuple[str, ...]
    credentials_secret: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """File names in the cache, in order."""
        return tuple(key.rpartition("/")[2] for key in self.keys)

    @property
    def identity(self) -> Sequence[object]:
        """What tells this source from every other one; nothing secret."""
        return ("s3", self.endpoint, self.region, self.bucket, self.keys)


@dataclass(frozen=True, kw_only=True)
class PvcSource:
    """A file on a PersistentVolumeClaim; `path` is relative to the volume's root."""

    claim_name: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ImageSource:
    """A file in the server's image; `path` is absolute."""

    path: str


RemoteSource = HuggingFaceSource | HttpSource | S3Source
Source = RemoteSource | PvcSource | ImageSource


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One file that the server loads, or several parts of one.

    Attributes:
        role: what for.
        source: where it comes from.
        sha256: checksum of the file (of the first part) that was given; None: none was.
    """

    role: Role
    source: Source
    sha256: str | None = None

    @property
    def remote(self) -> RemoteSource | None:
        """The source, if the file is downloaded."""
        return self.source if isinstance(self.source, RemoteSource) else None

    @property
    def path(self) -> str:
        """Where the file (the first part) is in the pod."""
        match self.source:
            case ImageSource(path=path):
                return path
            case PvcSource(path=path):
                return f"{CLAIM_FOLDERS[self.role]}/{path}"
            case remote:
                return f"{CACHE_FOLDER}/{cache_key(remote)}/{remote.names[0]}"


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """All files of a model; iterates over those that there are.

    Attributes:
        model, mmproj, draft: the model, its projector and its draft model.
        spec: what of `spec.model` they were read from, as JSON; `llamapool fetch` is given it.
    """

    spec: str
    model: Artifact
    mmproj: Artifact | None = None
    draft: Artifact | None = None

    def __iter__(self) -> Iterator[Artifact]:
        """Yield model, projector and draft model, as far as there are any."""
        return (each for each in (self.model, self.mmproj, self.draft) if each is not None)

    @property
    def downloaded(self) -> bool:
        """Whether any of them is downloaded."""
        return any(each.remote is not None for each in self)

    @property
    def digest(self) -> str:
        """What tells these files from all others that could be asked for."""
        return hashlib.sha256(self.spec.encode()).hexdigest()[:16]


def cache_key(source: RemoteSource) -> str:
    """Return the folder of a source in the cache: the same for the same source, another for any other."""
    return hashlib.sha256(json.dumps(source.identity).encode()).hexdigest()[:16]


def shown(location: str) -> str:
    """Return an address without what may be secret in it: user, password, query. A path stays as it is."""
    parts = urlsplit(location)
    if parts.scheme not in ("http", "https"):
        return location
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def parse_artifacts(model: Fields) -> Artifacts:
    """Read `spec.model`.

    Raises:
        InvalidFieldError: a field cannot be used; names it, its value and what would be right.
        UnsupportedFieldError: a valid field that this release does not act on.
    """
    asked = {name: model.raw(name) for name in _FIELDS if model.has(name)}
    return Artifacts(
        spec=json.dumps(asked, sort_keys=True, separators=(",", ":")),
        model=_artifact(model, Role.MODEL),
        mmproj=_artifact(model.child("mmproj"), Role.MMPROJ) if model.has("mmproj") else None,
        draft=_artifact(model.child("draft"), Role.DRAFT) if model.has("draft") else None,
    )


def _artifact(fields: Fields, role: Role) -> Artifact:
    source = _source(fields)
    sha256 = fields.optional_text("sha256")
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise InvalidFieldError(fields.at("sha256"), sha256, "must be 64 digits 0-9 and a-f in lower case")
    if sha256 is not None and isinstance(source, ImageSource):
        raise UnsupportedFieldError(
            fields.at("sha256"), sha256, "is not checked of a file in an image; name the image by its digest"
        )
    return Artifact(role=role, source=source, sha256=sha256)


def _source(model: Fields) -> Source:
    source = model.child("source")
    given = [kind for kind in KINDS if source.has(kind)]
    if len(given) != 1:
        raise InvalidFieldError(source.path, given, f"must be exactly one of {', '.join(KINDS)}")
    place = source.child(given[0])
    match given[0]:
        case "huggingFace":
            return _hugging_face(place)
        case "http":
            return _http(place)
        case "s3":
            return _s3(place)
        case "pvc":
            return PvcSource(
                claim_name=place.text("claimName"), path=_relative(place, "path", place.text("path"))
            )
        case _:
            return ImageSource(path=_absolute(place))


def _hugging_face(place: Fields) -> HuggingFaceSource:
    repo, token = place.text("repo"), place.child("tokenSecretRef")
    if not _REPO.fullmatch(repo):
        raise InvalidFieldError(place.at("repo"), repo, "must be OWNER/NAME")
    files = _paths(place, "files")
    return HuggingFaceSource(
        repo=repo,
        files=files,
        revision=place.optional_text("revision") or "main",
        token=SecretKey(name=token.text("name"), key=token.text("key")) if token.values else None,
    )


def _http(place: Fields) -> HttpSource:
    urls = _not_empty(place, "urls")
    for index, url in enumerate(urls):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            expected = "must begin with http:// or https:// and have a host and a path"
            raise InvalidFieldError(f"{place.at('urls')}[{index}]", shown(url), expected)
    _require_names(place.at("urls"), [_name_of_url(url) for url in urls])
    return HttpSource(urls=urls)


def _s3(place: Fields) -> S3Source:
    endpoint, credentials = place.optional_text("endpoint"), place.child("credentialsSecretRef")
    if endpoint is not None and not re.match(r"https?://[^/]", endpoint):
        raise InvalidFieldError(
            place.at("endpoint"), endpoint, "must begin with http:// or https:// and have a host"
        )
    return S3Source(
        endpoint=endpoint,
        region=place.optional_text("region") or "us-east-1",
        bucket=place.text("bucket"),
        keys=_paths(place, "keys"),
        credentials_secret=credentials.text("name") if credentials.values else None,
    )


def _paths(place: Fields, name: str) -> tuple[str, ...]:
    paths = _not_empty(place, name)
    for index, path in enumerate(paths):
        _relative(place, f"{name}[{index}]", path)
    _require_names(place.at(name), [path.rpartition("/")[2] for path in paths])
    return paths


def _not_empty(place: Fields, name: str) -> tuple[str, ...]:
    values = place.texts(name)
    if not values:
        raise InvalidFieldError(place.at(name), [], "must have one entry or more")
    return values


def _relative(place: Fields, name: str, path: str) -> str:
    if path.startswith("/"):
        raise InvalidFieldError(place.at(name), path, "must be relative, without the first /")
    if ".." in path.split("/"):
        raise InvalidFieldError(place.at(name), path, 'must not contain ".."')
    return path


def _absolute(place: Fields) -> str:
    path = place.text("path")
    if not path.startswith("/"):
        raise InvalidFieldError(place.at("path"), path, "must be the absolute path in the image")
    if ".." in path.split("/"):
        raise InvalidFieldError(place.at("path"), path, 'must not contain ".."')
    return path


def _require_names(field: str, names: Sequence[str]) -> None:
    """Require names to store the files under; several must be all parts of one model, in their order.

    llama-server finds the other parts by the name of the first.
    """
    for index, name in enumerate(names):
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            raise InvalidFieldError(
                f"{field}[{index}]", name, "must end in the name of a file, such as model.gguf"
            )
    if len(names) == 1:
        return
    matches = [_PART.fullmatch(name) for name in names]
    expected = [(f"{number:05}", f"{len(names):05}") for number in range(1, len(names) + 1)]
    stems = {match["stem"] for match in matches if match}
    if len(stems) != 1 or [match and (match["number"], match["count"]) for match in matches] != expected:
        several = f"must be all parts of one model in order: NAME-00001-of-{len(names):05}.gguf and so on"
        raise InvalidFieldError(field, list(names), several)


def _name_of_url(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])
