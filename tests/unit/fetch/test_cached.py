"""What is in the cache and was verified is neither downloaded nor read again, and nothing else is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llamapool.errors import FetchError
from tests.unit.fetch.conftest import asked, digest, model_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from llamapool.sources import Artifacts
    from tests.support.file_server import FileServer
    from tests.unit.fetch.conftest import Volume


def file_of(volume: Volume, model: Artifacts) -> Path:
    return volume.folder / model.model.path.removeprefix("/")


def test_a_restart_asks_nobody(volume: Volume, server: FileServer, source: dict[str, Any]) -> None:
    model = asked(source)
    first = volume.fetch(model)
    requests = len(server.asked)
    again = volume.fetch(model)
    assert len(server.asked) == requests
    assert first is not None
    assert again is not None
    assert again.sha256 == first.sha256 == digest(server.files["/model.gguf"])


def test_a_new_signature_in_the_address_is_the_same_file(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    volume.fetch(asked(source))
    requests = len(server.asked)
    volume.fetch(asked({"http": {"urls": [f"{server.address}/model.gguf?signature=new"]}}))
    assert len(server.asked) == requests


def test_a_truncated_file_is_downloaded_again(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    model = asked(source)
    volume.fetch(model)
    with file_of(volume, model).open("r+b") as file:
        file.truncate(1000)
    volume.fetch(model)
    assert volume.served(model) == server.files["/model.gguf"]


def test_a_swapped_file_is_downloaded_again(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    model = asked(source)
    volume.fetch(model)
    file_of(volume, model).write_bytes(model_bytes(1))
    volume.fetch(model)
    assert volume.served(model) == server.files["/model.gguf"]


def test_a_file_that_was_only_touched_is_read_and_kept(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    model = asked(source)
    volume.fetch(model)
    file_of(volume, model).touch()
    requests = len(server.asked)
    volume.fetch(model)
    assert len(server.asked) == requests
    assert "read and verified" in volume.log


def test_a_file_that_a_person_put_there_is_taken_for_its_checksum_only(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    content = server.files["/model.gguf"]
    model = asked(source, sha256=digest(content))
    path = file_of(volume, model)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    volume.fetch(model)
    assert server.asked == []
    without = asked(source)
    path.with_name("model.gguf.verified.json").unlink()
    volume.fetch(without)
    assert server.downloads() == 1


def test_another_checksum_asks_for_another_version_and_keeps_the_old_one_until_it_is_whole(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    old = server.files["/model.gguf"]
    volume.fetch(asked(source))
    new = server.files["/model.gguf"] = model_bytes(1)
    wrong = asked(source, sha256="0" * 64)
    with pytest.raises(FetchError):
        volume.fetch(wrong)
    assert volume.served(wrong) == old
    right = asked(source, sha256=digest(new))
    volume.fetch(right)
    assert volume.served(right) == new


def test_two_models_share_a_volume(volume: Volume, server: FileServer, source: dict[str, Any]) -> None:
    server.files["/other/model.gguf"] = model_bytes(1)
    one, two = asked(source), asked({"http": {"urls": [f"{server.address}/other/model.gguf"]}})
    volume.fetch(one)
    volume.fetch(two)
    assert volume.served(one) == server.files["/model.gguf"]
    assert volume.served(two) == server.files["/other/model.gguf"]
