"""All files of a model, brought into place and verified; what is there already costs no request."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from llamapool.adapters.fetch.cache import Entry, free_bytes, locked, writing
from llamapool.adapters.fetch.download import Download, Pace, patiently
from llamapool.adapters.fetch.http import HttpClient
from llamapool.adapters.fetch.progress import human
from llamapool.adapters.fetch.remote import RemoteFile, remote_files
from llamapool.adapters.gguf_header import read_local_header, read_model_facts
from llamapool.domain.facts_message import FetchedModel
from llamapool.domain.gguf import GgufHeader
from llamapool.domain.model_facts import split_count
from llamapool.errors import FetchError
from llamapool.sources import (
    CLAIM_FOLDERS,
    Artifact,
    Artifacts,
    ImageSource,
    PvcSource,
    RemoteSource,
    Role,
    cache_key,
)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where things are.

    Attributes:
        cache: the volume that files are downloaded to.
        secrets: a folder a role, with the files of its source's Secret.
        root: the user's claims are mounted below it, as in the pod.
    """

    cache: Path
    secrets: Path
    root: Path = Path("/")


@dataclass
class _File:
    """One file to download, and what is found out about it on the way."""

    remote: RemoteFile
    entry: Entry
    sha256: str | None
    """What it must have; None: nobody says."""

    etag: str | None = None
    """Of the version that its source has now; None: not known."""


@dataclass(kw_only=True)
class Fetcher:
    """Brings models into place.

    Attributes:
        places: where things are.
        say: takes one line for the log.
        client: the way to the sources.
        pace: how patient downloads are.
    """

    places: Places
    say: Callable[[str], None]
    client: HttpClient = field(default_factory=HttpClient)
    pace: Pace = field(default_factory=Pace)

    def fetch(self, artifacts: Artifacts) -> FetchedModel | None:
        """Bring all files of a model into place.

        Returns:
            The model's facts; None: it is in the server's image, where it cannot be read from here.

        Raises:
            FetchError: a file is not to be had, is not what it should be, or there is no room for it. No file
                is under the name that the server opens unless it was verified.
            GgufError, ModelFileError: a file on a claim is not there, or not a whole GGUF file.
        """
        self._download(artifacts)
        checksums = {each.role: self._checked(each) for each in artifacts}
        draft, mmproj = _seen(artifacts.draft), _seen(artifacts.mmproj)
        headers = {each.role: self._header(each) for each in artifacts if _seen(each)}
        if _seen(artifacts.model) is None:
            return None
        return FetchedModel(
            sha256=checksums[Role.MODEL],
            facts=read_model_facts(str(self.path_of(artifacts.model))),
            draft=None if draft is None else read_model_facts(str(self.path_of(draft))),
            projector_bytes=None
            if mmproj is None
            else sum(each.size_bytes for each in headers[Role.MMPROJ].tensors),
        )

    def path_of(self, artifact: Artifact) -> Path:
        """Return where the file (the first part) of an artifact is."""
        match artifact.source:
            case PvcSource(path=path):
                return self.places.root / CLAIM_FOLDERS[artifact.role].lstrip("/") / path
            case ImageSource(path=path):
                return Path(path)
            case source:
                return self.places.cache / cache_key(source) / source.names[0]

    def _download(self, artifacts: Artifacts) -> None:
        remote = [(each, each.remote) for each in artifacts if each.remote is not None]
        folders = sorted({self.places.cache / cache_key(source) for _, source in remote})
        with ExitStack() as locks:
            for folder in folders:  # all in one order: two processes never wait for each other
                locks.enter_context(locked(folder, self.say))
            missing = [file for each, source in remote for file in self._missing(each, source)]
            self._find_out(missing)
            for file in missing:
                download = Download(
                    file.remote, file.entry, file.sha256, client=self.client, pace=self.pace, say=self.say
                )
                download.run(file.etag)

    def _missing(self, artifact: Artifact, source: RemoteSource) -> Iterator[_File]:
        """Yield the files that are not in the cache as they should be."""
        folder = self.places.cache / cache_key(source)
        for index, remote in enumerate(remote_files(source, self.places.secrets / artifact.role.value)):
            entry, sha256 = Entry(folder, remote.name), artifact.sha256 if index == 0 else None
            if not self._is_in_place(entry, sha256, remote.place):
                yield _File(remote, entry, sha256)

    def _is_in_place(self, entry: Entry, sha256: str | None, place: str) -> bool:
        verified = entry.verified()
        if verified is not None and sha256 in (None, verified.sha256):
            self.say(f"{entry.name}: in the cache, verified before, sha256 {verified.sha256}")
            return True
        if verified is not None or not entry.path.exists():
            return False  # an earlier version stays until the one that is asked for is whole
        with writing(entry.folder):
            known = sha256 or entry.noted_sha256()
            if known is not None and known == self._sha256_of(entry.path):
                entry.confirm(known, place)
                self.say(f"{entry.name}: in the cache, read and verified, sha256 {known}")
                return True
            self.say(f"{entry.name}: the file in the cache is not what was verified; it is downloaded again")
            entry.drop()
        return False

    def _find_out(self, files: list[_File]) -> None:
        """Ask the sources for sizes and checksums, and make sure that there is room for everything.

        Raises:
            FetchError: a file is not to be had, or there is not enough room.
        """
        missing_bytes = 0
        for file in files:
            ask = partial(file.remote.published, self.client)
            published = patiently(ask, pace=self.pace, say=self.say)
            if file.sha256 and published.sha256 and file.sha256 != published.sha256:
                raise FetchError(
                    f"{file.remote.place}: its sha256 is {published.sha256} by its source, not {file.sha256}"
                    " as asked for; nothing is downloaded"
                )
            file.sha256, file.etag = file.sha256 or published.sha256, published.etag
            held_bytes = file.entry.read_part().synced_bytes
            missing_bytes += max(0, (published.size_bytes or 0) - held_bytes)
            size = "unknown size" if published.size_bytes is None else human(published.size_bytes)
            self.say(f"{file.remote.name}: {size}, from {file.remote.place}")
        there_bytes = free_bytes(self.places.cache)
        if missing_bytes > there_bytes:
            raise FetchError(
                f"the cache volume has {there_bytes} bytes free, and {missing_bytes} are to be downloaded:"
                f" raise spec.model.cache.size by {human(missing_bytes - there_bytes)} or more,"
                " or remove what else is on it"
            )

    def _checked(self, artifact: Artifact) -> str | None:
        """Return the SHA-256 of an artifact's file as far as it is known; compare that of a claim's file.

        Raises:
            FetchError: it is not the one that was asked for.
        """
        path = self.path_of(artifact)
        if artifact.remote is not None:
            verified = Entry(path.parent, path.name).verified()
            return None if verified is None else verified.sha256
        if artifact.sha256 is None:
            return None
        self.say(f"{path}: compared with its sha256")
        found = self._sha256_of(path)
        if found != artifact.sha256:
            raise FetchError(
                f"{path}: its sha256 is {found}, not {artifact.sha256} as asked for; it is not served"
            )
        return found

    def _header(self, artifact: Artifact) -> GgufHeader:
        """Read the header of an artifact's first file.

        Raises:
            FetchError: it is one of several, and not all are listed: llama-server would not find the others.
        """
        header = read_local_header(self.path_of(artifact))
        count = split_count(header)
        if artifact.remote is not None and count != len(artifact.remote.names):
            listed = len(artifact.remote.names)
            raise FetchError(
                f"{artifact.remote.names[0]}: is one of {count} parts; list all {count}, not {listed}"
            )
        return header

    @staticmethod
    def _sha256_of(path: Path) -> str:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise FetchError(f"{path}: {error.strerror}") from error


def _seen(artifact: Artifact | None) -> Artifact | None:
    """Return an artifact whose file can be read here; one in the server's image cannot."""
    return None if artifact is None or isinstance(artifact.source, ImageSource) else artifact
