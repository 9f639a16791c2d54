"""Image builds without a container engine: buildah, with its storage in the cache and nothing pulled."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.cluster import cache, progress

BASE_REFERENCE = "docker.io/library/debian:bookworm-slim"
_SUITE = "bookworm"
_MIRROR = "http://deb.debian.org/debian"


def base_image() -> Path:
    """Makes debian:bookworm-slim with debootstrap, since no registry is used; once a cache.

    Returns:
        Its docker archive, beside the copy in buildah's storage that Dockerfiles build on.
    """
    return cache.entry(f"base-{_SUITE}-slim", _build_base) / "base.tar"


def build(
    context: Path,
    dockerfile: Path,
    reference: str,
    archive: Path,
    *,
    build_arguments: Mapping[str, str],
    log: Path,
) -> None:
    """Builds a Dockerfile and saves the image as a docker archive.

    The machine's certificates are mounted read-only for the time of the build, so that it works where TLS is
    inspected; caches that the Dockerfile asks for (RUN --mount=type=cache) are kept between builds.
    """
    arguments = [f"--build-arg={name}={value}" for name, value in sorted(build_arguments.items())]
    command = [
        *_buildah("build"),
        "--isolation=chroot",
        "--pull-never",
        "--network=host",
        "--layers",
        "--format=docker",
        "--volume=/etc/ssl/certs:/etc/ssl/certs:ro",
        *arguments,
        f"--tag={reference}",
        f"--file={dockerfile}",
        context,
    ]
    _run(f"building {reference}", command, log)
    _save(reference, archive, log)


def _build_base(folder: Path) -> None:
    log = cache.log_file("base")
    root = folder / "root"
    root.mkdir(parents=True)
    progress.run(
        "making debian:bookworm-slim with debootstrap, about 1 minute",
        ["debootstrap", "--variant=minbase", "--include=ca-certificates", _SUITE, root, _MIRROR],
        log,
    )
    for name in ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists"):
        cache.remove(root / name)
        (root / name).mkdir()
    (folder / "Dockerfile").write_text('FROM scratch\nADD root.tar /\nCMD ["bash"]\n')
    tar = f"tar --create --numeric-owner --one-file-system --file={folder / 'root.tar'} --directory={root} ."
    progress.run("packing it", tar.split(), log)
    cache.remove(root)
    command = [*_buildah("build"), "--format=docker", f"--tag={BASE_REFERENCE}", folder]
    _run(f"building {BASE_REFERENCE}", command, log)
    (folder / "root.tar").unlink()
    _save(BASE_REFERENCE, folder / "base.tar", log)


def _save(reference: str, archive: Path, log: Path) -> None:
    temporary = archive.with_suffix(".tmp")
    cache.remove(temporary)  # buildah would add to an archive that an interrupted run left
    archive.parent.mkdir(parents=True, exist_ok=True)
    command = [*_buildah("push"), reference, f"docker-archive:{temporary}:{reference}"]
    _run(f"saving {reference}", command, log)
    temporary.rename(archive)


def _buildah(subcommand: str) -> list[str | Path]:
    storage = cache.root() / "buildah"
    for name in ("storage", "run", "tmp"):
        (storage / name).mkdir(parents=True, exist_ok=True)
    policy = storage / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    (storage / "registries.conf").write_text('unqualified-search-registries = ["docker.io"]\n')
    # In a mount namespace of its own, so that no mount of a build outlives it.
    return [
        *("unshare", "--mount", "buildah"),
        *("--storage-driver=overlay", f"--root={storage / 'storage'}", f"--runroot={storage / 'run'}"),
        *(subcommand, f"--signature-policy={policy}"),
    ]


def _run(what: str, command: list[str | Path], log: Path) -> None:
    storage = cache.root() / "buildah"
    environment = dict(os.environ) | {
        "TMPDIR": str(storage / "tmp"),
        "CONTAINERS_REGISTRIES_CONF": str(storage / "registries.conf"),
    }
    with cache.lock(storage / "lock"):
        progress.run(what, command, log, environment=environment)
