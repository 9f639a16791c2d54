from pathlib import Path

import pytest

from tests.cluster import cache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLAMAPOOL_CACHE", str(tmp_path))
    return tmp_path


def test_an_entry_is_built_once(folder: Path) -> None:
    built: list[Path] = []

    def build(path: Path) -> None:
        built.append(path)
        path.write_text("content")

    assert cache.entry("thing-1", build) == cache.entry("thing-1", build) == folder / "thing-1"
    assert len(built) == 1


def test_a_build_that_fails_leaves_no_entry(folder: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.entry("thing-1", fail)
    assert not (folder / "thing-1").exists()


def test_a_build_begins_with_nothing_of_one_that_was_interrupted(folder: Path) -> None:
    (folder / ".thing-1.tmp").mkdir()
    (folder / ".thing-1.tmp" / "half").write_text("half")
    entry = cache.entry("thing-1", lambda path: path.mkdir())
    assert list(entry.iterdir()) == []


def test_a_digest_depends_on_where_its_parts_end() -> None:
    assert cache.digest(b"ab", b"c") != cache.digest(b"a", b"bc")


def test_read_only_folders_are_removed(folder: Path) -> None:
    (folder / "module").mkdir()
    (folder / "module" / "file").write_text("x")
    (folder / "module").chmod(0o500)
    cache.remove(folder / "module")
    assert not (folder / "module").exists()


def test_a_link_is_removed_and_what_it_points_to_stays(folder: Path) -> None:
    (folder / "target").mkdir()
    (folder / "link").symlink_to("target")
    cache.remove(folder / "link")
    assert (folder / "target").is_dir()
