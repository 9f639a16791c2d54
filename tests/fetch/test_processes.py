"""`llamapool fetch` as a process: killed, told to end, two at once, on a full volume. Needs root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.file_server import FileServer, serving
from tests.support.kubectl import until
from tests.unit.fetch.conftest import asked, digest, model_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

MEBIBYTE = 1 << 20
SYNCED = 64 * MEBIBYTE
FULL_VOLUME = (
    'mount -t tmpfs -o size=700k none "$0" && chmod 777 "$0" && "$@"; code=$?; ls "$0"/*/; exit $code'
)


@dataclass
class Command:
    """The command, for one model and one cache."""

    folder: Path
    source: dict[str, Any]
    others: dict[str, Any]

    @property
    def arguments(self) -> list[str]:
        model = json.dumps({"source": self.source, **self.others})
        log = self.folder / "termination-log"
        return [
            sys.executable, "-m", "llamapool", "fetch", "--model", model,
            "--cache", str(self.cache), "--termination-log", str(log),
        ]  # fmt: skip

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def path(self) -> Path:
        return self.folder / asked(self.source, **self.others).model.path.removeprefix("/")

    @contextmanager
    def started(self, *within: str) -> Iterator[subprocess.Popen[bytes]]:
        """The command, started by the program ``within``; what it says is in ``log``."""
        with (
            self.log.open("ab") as log,
            subprocess.Popen([*within, *self.arguments], stdout=log, stderr=log) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def until_it_says(self, words: str) -> None:
        until(words, lambda: words in self.log.read_text(), timeout_seconds=30)

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.arguments, text=True, capture_output=True, timeout=60, check=False)

    def message(self) -> Any:
        return json.loads((self.folder / "termination-log").read_text())


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(FileServer()) as running:
        yield running


@pytest.fixture
def command(tmp_path: Path, server: FileServer) -> Command:
    server.files["/model.gguf"] = model_bytes()
    return Command(tmp_path, {"http": {"urls": [f"{server.address}/model.gguf"]}}, {})


def begun(server: FileServer) -> None:
    until("a download", lambda: server.downloads() > 0, timeout_seconds=30)


def test_the_facts_of_a_model_are_the_termination_message(command: Command, server: FileServer) -> None:
    done = command.run()
    assert done.returncode == 0, done.stderr
    assert command.path.read_bytes() == server.files["/model.gguf"]
    assert command.message() == json.loads(done.stdout)
    message = command.message()
    assert (message["v"], message["architecture"]) == (1, "mamba2")
    assert message["sha256"] == digest(server.files["/model.gguf"])
    assert message["spec"] == asked(command.source).digest


def test_the_error_is_the_termination_message(command: Command) -> None:
    command.others = {"sha256": "0" * 64}
    done = command.run()
    assert done.returncode == 1
    assert "as asked for; it is not served" in command.message()["error"]
    assert "Traceback" not in done.stderr
    assert not command.path.exists()


def test_a_person_gives_it_the_manifest_of_a_model(command: Command, server: FileServer) -> None:
    manifest = command.folder / "hybridmodel.yaml"
    manifest.write_text(json.dumps({"kind": "HybridModel", "spec": {"model": {"source": command.source}}}))
    words = [sys.executable, "-m", "llamapool", "fetch", str(manifest), "--cache", str(command.cache)]
    done = subprocess.run(words, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert command.path.read_bytes() == server.files["/model.gguf"]


def test_a_process_that_is_killed_goes_on_from_what_was_on_disk(command: Command, server: FileServer) -> None:
    content = server.files["/model.gguf"] = model_bytes(kibibytes=96 * 1024)
    go_on = threading.Event()
    server.pause_after = (SYNCED + 4 * MEBIBYTE, go_on)
    note = command.path.with_name("model.gguf.part.json")

    def synced() -> bool:
        return note.exists() and json.loads(note.read_text())["synced_bytes"] >= SYNCED

    with command.started() as process:
        until("64 MiB on disk", synced, timeout_seconds=60)
        process.kill()
        assert process.wait(10) == -signal.SIGKILL
    go_on.set()
    assert not command.path.exists()

    server.pause_after = None
    assert command.run().returncode == 0
    assert command.path.read_bytes() == content
    last = server.asked[-1][2]
    assert last is not None
    assert int(last.removeprefix("bytes=").removesuffix("-")) >= SYNCED


def test_of_two_processes_one_downloads_and_the_other_takes_what_it_left(
    command: Command, server: FileServer
) -> None:
    go_on = threading.Event()
    server.pause_after = (MEBIBYTE // 2, go_on)
    with command.started() as first:
        begun(server)
        with command.started() as second:
            command.until_it_says("another process downloads into it")
            go_on.set()
            assert (first.wait(30), second.wait(30)) == (0, 0)
    assert server.downloads() == 1
    assert command.path.read_bytes() == server.files["/model.gguf"]


def test_a_process_that_waits_takes_over_from_one_that_is_killed(
    command: Command, server: FileServer
) -> None:
    go_on = threading.Event()
    server.pause_after = (MEBIBYTE // 2, go_on)
    with command.started() as first:
        begun(server)
        with command.started() as second:
            command.until_it_says("another process downloads into it")
            server.pause_after = None
            first.kill()
            assert second.wait(30) == 0
    go_on.set()
    assert command.path.read_bytes() == server.files["/model.gguf"]


def test_a_process_that_is_told_to_end_ends_though_it_is_the_first_of_its_container(
    command: Command, server: FileServer
) -> None:
    go_on = threading.Event()
    server.pause_after = (MEBIBYTE // 2, go_on)
    # As process 1 of a pid namespace it would ignore SIGTERM if it did not say otherwise.
    with command.started("unshare", "--pid", "--fork", "--kill-child") as process:
        begun(server)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    go_on.set()
    assert not command.path.exists()


@pytest.mark.parametrize("states_size", [True, False])
def test_a_volume_that_is_full_is_named_and_nothing_is_served(
    command: Command,
    server: FileServer,
    states_size: bool,  # noqa: FBT001 - a case
) -> None:
    server.states_size, server.ranges = states_size, states_size
    command.cache.mkdir()
    shell = ["unshare", "--mount", "sh", "-c", FULL_VOLUME, str(command.cache), *command.arguments]
    done = subprocess.run(shell, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert "model.gguf\n" not in done.stdout
    error = command.message()["error"]
    assert "spec.model.cache.size" in error
    if states_size:
        assert f"{len(server.files['/model.gguf'])} are to be downloaded" in error
        assert server.downloads() == 0
    else:
        assert "the cache volume is full (0 bytes free)" in error
