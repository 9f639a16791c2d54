"""A download that is interrupted goes on where it ended; what is served is right, or nothing is."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from llamapool.errors import FetchError
from tests.unit.fetch.conftest import asked, digest, model_bytes

if TYPE_CHECKING:
    from tests.support.file_server import FileServer
    from tests.unit.fetch.conftest import Volume

CUTS = sorted(random.Random(5).sample(range(1, 1 << 20), 20))  # noqa: S311


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_is_cut_leaves_a_right_file_in_the_end(
    volume: Volume,
    server: FileServer,
    source: dict[str, Any],
    cut: int,
    ranges: bool,  # noqa: FBT001 - a case
) -> None:
    server.cuts, server.ranges = [cut], ranges
    model = asked(source)
    volume.fetch(model)
    whole = server.files["/model.gguf"]
    assert volume.served(model) == whole
    assert server.downloads() == 2
    if ranges:
        assert server.sent_bytes == len(whole) + 1, "each byte once, and the probe's"


def test_a_connection_that_is_cut_at_twenty_places_is_resumed_at_each(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.cuts = [after - before for before, after in zip([0, *CUTS], CUTS, strict=False) if after > before]
    model = asked(source)
    volume.fetch(model)
    assert volume.served(model) == server.files["/model.gguf"]
    assert server.sent_bytes == len(server.files["/model.gguf"]) + 1


def test_a_restart_goes_on_from_what_is_on_disk(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.cuts = [300_000]
    volume.tries = 1
    model = asked(source)
    with pytest.raises(FetchError, match=r"the connection was cut; given up after 1 tries"):
        volume.fetch(model)
    assert volume.served(model) is None
    volume.fetch(model)
    assert volume.served(model) == server.files["/model.gguf"]
    assert server.asked[-1] == ("GET", "/model.gguf", "bytes=300000-")
    assert "goes on from 293.0 KiB" in volume.log


@pytest.mark.parametrize("heeds_if_range", [True, False])
@pytest.mark.parametrize("same_size", [True, False])
def test_a_file_that_was_swapped_between_two_tries_is_downloaded_anew(
    volume: Volume,
    server: FileServer,
    source: dict[str, Any],
    heeds_if_range: bool,  # noqa: FBT001 - a case
    same_size: bool,  # noqa: FBT001 - a case
) -> None:
    server.cuts, server.heeds_if_range = [500_000], heeds_if_range
    volume.tries = 1
    model = asked(source)
    with pytest.raises(FetchError):
        volume.fetch(model)
    server.files["/model.gguf"] = model_bytes(1, kibibytes=1024 if same_size else 900)
    volume.tries = 3
    volume.fetch(model)
    assert volume.served(model) == server.files["/model.gguf"]


def test_a_part_that_cannot_be_told_from_another_file_s_is_not_continued(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.cuts, server.etags = [500_000], False
    model = asked(source)
    volume.fetch(model)
    assert [range_ for _, _, range_ in server.asked] == ["bytes=0-0", None, None]
    assert volume.served(model) == server.files["/model.gguf"]


def test_with_a_checksum_a_part_without_an_etag_is_continued(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.cuts, server.etags = [500_000], False
    model = asked(source, sha256=digest(server.files["/model.gguf"]))
    volume.fetch(model)
    assert server.asked[-1][2] == "bytes=500000-"
    assert volume.served(model) == server.files["/model.gguf"]


def test_a_server_that_fails_for_a_while_is_asked_again_ever_later(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.statuses = [503, 429]
    model = asked(source)
    volume.fetch(model)
    assert volume.slept == [0.25, 0.5]
    assert volume.served(model) == server.files["/model.gguf"]


def test_a_server_that_never_gets_past_a_place_is_given_up(
    volume: Volume, server: FileServer, source: dict[str, Any]
) -> None:
    server.cuts, server.ranges = [400_000] * 20, False
    with pytest.raises(FetchError, match="given up after 3 tries in a row"):
        volume.fetch(asked(source))
    assert server.downloads() == 3


def test_a_server_that_is_not_there_is_named_with_the_cause(volume: Volume) -> None:
    model = asked({"http": {"urls": ["http://user:secret@127.0.0.1:9/m.gguf?signature=secret"]}})
    with pytest.raises(FetchError) as raised:
        volume.fetch(model)
    assert "http://127.0.0.1:9/m.gguf: no connection: " in str(raised.value)
    assert "Connection refused" in str(raised.value)
    assert "secret" not in str(raised.value) + volume.log
