from pathlib import Path

import pytest

from tests.cluster import kernel


@pytest.fixture
def sysctl(tmp_path: Path) -> Path:
    (tmp_path / "sys" / "vm").mkdir(parents=True)
    (tmp_path / "sys" / "vm" / "overcommit_memory").write_text("0\n")
    return tmp_path / "sys"


def test_what_a_kubelet_changed_is_put_back(tmp_path: Path, sysctl: Path) -> None:
    kernel.save(tmp_path / "note", sysctl)
    (sysctl / "vm" / "overcommit_memory").write_text("1\n")
    kernel.restore(tmp_path / "note", sysctl)
    assert (sysctl / "vm" / "overcommit_memory").read_text() == "0"


def test_a_second_lab_keeps_the_first_ones_note(tmp_path: Path, sysctl: Path) -> None:
    kernel.save(tmp_path / "note", sysctl)
    (sysctl / "vm" / "overcommit_memory").write_text("1\n")
    kernel.save(tmp_path / "note", sysctl)
    kernel.restore(tmp_path / "note", sysctl)
    assert (sysctl / "vm" / "overcommit_memory").read_text() == "0"


def test_without_a_note_nothing_is_put_back(tmp_path: Path, sysctl: Path) -> None:
    kernel.restore(tmp_path / "note", sysctl)
    assert (sysctl / "vm" / "overcommit_memory").read_text() == "0\n"
