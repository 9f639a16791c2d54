"""The project's own images: what each is built from, its content hash, and its archive in the cache."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import buildah, cache, progress
from tests.cluster.errors import LabError
from tests.cluster.settings import PAUSE_IMAGE, REPOSITORY

LIST = REPOSITORY / "build" / "images.json"
_KEPT_ARCHIVES = 3
_PAUSE = Path(__file__).parent / "pause"


@dataclass(frozen=True)
class Image:
    """How one image is built.

    Attributes:
        name: of the repository, docker.io/llamapool/NAME, and of the folder below images/.
        context: build context, a folder relative to the repository's root.
        inputs: git pathspecs, relative to the context, of what the build sees; everything else is left out.
    """

    name: str
    context: str
    inputs: tuple[str, ...]

    @property
    def dockerfile(self) -> str:
        """Path relative to the repository's root."""
        return f"images/{self.name}/Dockerfile"


_NOT_IN_THE_SERVER_IMAGE = (
    "README.md",
    "bench",
    "tests",
    "pool/tests",
    "pool/test.sh",
    "pool/.clang-tidy",
    "pool/.clang-format",
)

IMAGES = (
    Image(
        "operator",
        ".",
        (
            "operator",
            "crds",
            "images/operator",
            "requirements/operator.txt",
            "pyproject.toml",
            "README.md",
            "LICENSE",
        ),
    ),
    Image(
        "llama-server",
        "images/llama-server",
        (".", *(f":(exclude){path}" for path in _NOT_IN_THE_SERVER_IMAGE)),
    ),
)


@dataclass(frozen=True)
class Built:
    """An image that was built: what to call it in a pod, and the docker archive it is in."""

    reference: str
    archive: Path


def pause() -> Path:
    """Archive of the image of `PAUSE_IMAGE`."""
    sources = [_PAUSE / "pause.c", _PAUSE / "Dockerfile"]
    key = cache.digest(*(path.read_bytes() for path in sources))[:12]
    return cache.entry(f"pause-{key}", _build_pause) / "pause.tar"


def build(image: Image, build_arguments: Mapping[str, str]) -> Built:
    """Builds the image, unless one of the same content is in the cache."""
    files = input_files(image, REPOSITORY)
    key = content_hash(REPOSITORY / image.context, files, build_arguments)
    reference = f"docker.io/llamapool/{image.name}:lab-{key[:12]}"
    archive = cache.root() / "images" / f"{image.name}-{key[:12]}.tar"
    with cache.lock(cache.root() / f".{image.name}.lock"):
        if archive.exists():
            progress.say(f"{reference} is built already")
            return Built(reference, archive)
        buildah.base_image()
        staged = cache.root() / f".{image.name}.context"
        _stage(REPOSITORY / image.context, files, staged)
        dockerfile = staged / Path(image.dockerfile).relative_to(image.context)
        log = cache.log_file(image.name)
        buildah.build(staged, dockerfile, reference, archive, build_arguments=build_arguments, log=log)
        cache.remove(staged)
        remove_older(archive.parent, image.name)
    return Built(reference, archive)


def remove_older(archives: Path, name: str) -> None:
    """Keeps an image's newest archives, as many as one goes back to between branches; each is some 100 MB."""
    newest_first = sorted(
        archives.glob(f"{name}-{'[0-9a-f]' * 12}.tar"), key=lambda path: -path.stat().st_mtime
    )
    for archive in newest_first[_KEPT_ARCHIVES:]:
        archive.unlink()


def add_to_list(name: str, built: Built) -> None:
    """Writes the image into build/images.json, {NAME: {"reference", "archive"}}, in place of an older one."""
    entry = {"reference": built.reference, "archive": str(built.archive)}
    LIST.parent.mkdir(parents=True, exist_ok=True)
    LIST.write_text(json.dumps(_read() | {name: entry}, indent=2) + "\n")


def read_list() -> dict[str, Built]:
    """What `add_to_list` wrote.

    Raises:
        LabError: nothing was built yet.
    """
    if not LIST.exists():
        raise LabError(f"{LIST} is not there: build the images first, python -m tests.cluster images")
    return {name: Built(each["reference"], Path(each["archive"])) for name, each in _read().items()}


def _read() -> dict[str, dict[str, str]]:
    content: dict[str, dict[str, str]] = json.loads(LIST.read_text()) if LIST.exists() else {}
    return content


def input_files(image: Image, repository: Path) -> list[str]:
    """Paths, relative to the context, of what the build sees: committed or not, but nothing that git ignores.

    Raises:
        LabError: the Dockerfile is not among them.
    """
    context = repository / image.context
    command = "git -c safe.directory=* ls-files -z --cached --others --exclude-standard --".split()  # noqa: SIM905
    listed = subprocess.run(
        [*command, *image.inputs], cwd=context, check=False, capture_output=True, text=True
    )
    if listed.returncode:
        raise LabError(f"the inputs of {image.name}: git ls-files in {context}: {listed.stderr.strip()}")
    # A file that was deleted but not committed yet is listed still.
    files = sorted({path for path in listed.stdout.split("\0") if path and os.path.lexists(context / path)})
    if str(Path(image.dockerfile).relative_to(image.context)) not in files:
        raise LabError(f"{image.dockerfile} is not there (or git ignores it)")
    return files


def content_hash(context: Path, files: list[str], build_arguments: Mapping[str, str]) -> str:
    """SHA-256 over names, executable bits and contents of the files, and the build arguments."""
    parts = [f"{name}={value}".encode() for name, value in sorted(build_arguments.items())]
    for file in sorted(files):
        path = context / file
        mode = b"link" if path.is_symlink() else b"program" if os.access(path, os.X_OK) else b"file"
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        parts += [file.encode(), mode, content]
    return cache.digest(*parts)


def _stage(context: Path, files: list[str], folder: Path) -> None:
    """Copies the inputs alone, so that the build cannot see what the hash does not cover."""
    cache.remove(folder)
    for file in files:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(context / file, target, follow_symlinks=False)


def _build_pause(folder: Path) -> None:
    folder.mkdir()
    log = cache.log_file("pause")
    compiler = ["gcc", "-std=c17", "-Os", "-static", "-s", "-Wall", "-Wextra", "-Werror"]
    progress.run("building the pause image", [*compiler, "-o", folder / "pause", _PAUSE / "pause.c"], log)
    dockerfile = _PAUSE / "Dockerfile"
    buildah.build(folder, dockerfile, PAUSE_IMAGE, folder / "pause.tar", build_arguments={}, log=log)
