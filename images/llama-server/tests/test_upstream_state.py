"""Upstream's own tests of state, built in both trees, print the same."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.bench import builds
from tests.bench.builds import Build
from tests.models.architectures import TINY_MODELS, write_tiny_model

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 300


@pytest.fixture(scope="session")
def recurrent_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of each architecture, those without recurrent layers included."""
    folder = tmp_path_factory.mktemp("models")
    for architecture, model in TINY_MODELS.items():
        write_tiny_model(folder / f"{architecture}.gguf", model)
    return folder


def printed(build: Build, program: str, folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and report, from standard output or error; the log that libraries write is left out."""
    environment = os.environ | {"LLAMAPOOL_BENCH_TIMES": str(folder / f"times-{build}")}
    done = subprocess.run(
        [builds.folder(build) / program, *arguments, "--threads", "1"],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",  # a piece of a random model's token need not be text
        timeout=SECONDS,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("main :")]
    return done.returncode, "\n".join([done.stdout, *said])


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("program", ["test-recurrent-state-rollback", "test-save-load-state"])
def test_state_is_saved_rolled_back_and_restored_as_upstream_does_it(
    program: str, recurrent_models: Path, tmp_path: Path
) -> None:
    arguments = (program, tmp_path, "--models", str(recurrent_models))
    upstream = printed(Build.UPSTREAM, *arguments)
    assert "PASS" in upstream[1]
    assert printed(Build.LLAMAPOOL, *arguments) == upstream


def test_state_is_restored_into_a_fragmented_cache_as_upstream_does_it(
    hybrid_model: Path, tmp_path: Path
) -> None:
    arguments = ("test-state-restore-fragmented", tmp_path, "--model", str(hybrid_model))
    upstream = printed(Build.UPSTREAM, *arguments)
    assert "SUCCESS" in upstream[1]
    assert printed(Build.LLAMAPOOL, *arguments) == upstream
