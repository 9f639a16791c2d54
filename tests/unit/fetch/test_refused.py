"""A file that is not what it should be never gets the name that the server opens, and the error says why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from llamapool.errors import FetchError
from tests.unit.fetch.conftest import asked, digest, model_bytes

if TYPE_CHECKING:
    from tests.support.file_server import FileServer
    from tests.unit.fetch.conftest import Volume

WRONG = "0" * 64


def refusal(volume: Volume, model: Any) -> str:
    with pytest.raises(FetchError) as raised:
        volume.fetch(model)
    assert volume.served(model) is None
    return str(raised.value)


def test_a_wrong_checksum_is_told_with_both(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    message = refusal(volume, asked(source, sha256=WRONG))
    assert digest(server.files["/model.gguf"]) in message
    assert WRONG in message


def test_a_version_that_was_found_wrong_is_not_downloaded_again_at_a_restart(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    model = asked(source, sha256=WRONG)
    first = refusal(volume, model)
    assert refusal(volume, model) == first
    assert server.downloads() == 1


def test_a_version_put_right_at_the_source_is_taken(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    right = model_bytes(1)
    model = asked(source, sha256=digest(right))
    refusal(volume, model)
    server.files["/model.gguf"] = right
    volume.fetch(model)
    assert volume.served(model) == right


def test_a_page_in_place_of_a_file_is_recognized_by_its_first_bytes(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.files["/model.gguf"] = b"<!DOCTYPE html>" + bytes(1 << 20)
    assert "is not a GGUF file: it begins with b'<!DOCTYPE html>" in refusal(volume, asked(source))


def test_a_file_that_is_truncated_at_its_source_is_refused(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.files["/model.gguf"] = server.files["/model.gguf"][:-1]
    assert "its header describes" in refusal(volume, asked(source))


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_an_answer_that_will_not_change_is_not_asked_for_again(
    volume: Volume, server: FileServer, source: dict[str, Any], status: int
) -> None:
    server.statuses = [status]
    assert f"it answers {status}" in refusal(volume, asked(source))
    assert len(server.asked) == 1


def test_one_part_of_several_is_not_enough(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.files["/model.gguf"] = model_bytes(**{"split.count": 3})
    with pytest.raises(FetchError, match="is one of 3 parts; list all 3, not 1"):
        volume.fetch(asked(source))


def test_a_volume_without_room_is_told_before_anything_is_downloaded(
    volume: Volume, server: FileServer, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(volume.folder)
    small = os.statvfs_result((*real[:3], 100, 100, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: small)
    message = refusal(volume, asked(source))
    assert f"has {100 * real.f_frsize} bytes free" in message
    assert "spec.model.cache.size" in message
    assert server.downloads() == 0


def test_a_volume_that_cannot_be_written_to_is_named(volume: Volume, source: dict[str, Any]) -> None:
    (volume.folder / "cache").write_text("a file")
    assert "cannot be written to" in refusal(volume, asked(source))
