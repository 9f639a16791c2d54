import os
import subprocess
from pathlib import Path

import pytest

from tests.cluster import images
from tests.cluster.errors import LabError

IMAGE = images.Image("server", ".", ("pool", "images/server"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for path, content in {
        "images/server/Dockerfile": "FROM scratch\n",
        "pool/pool.cpp": "int main() {}\n",
        "README.md": "read\n",
        ".gitignore": "*.o\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    return tmp_path


def _hash(repository: Path, **build_arguments: str) -> str:
    return images.content_hash(repository, images.input_files(IMAGE, repository), build_arguments)


def test_the_build_sees_its_inputs_and_nothing_else(repository: Path) -> None:
    assert images.input_files(IMAGE, repository) == ["images/server/Dockerfile", "pool/pool.cpp"]


def test_what_git_ignores_is_no_input(repository: Path) -> None:
    before = _hash(repository)
    (repository / "pool" / "pool.o").write_text("object\n")
    assert _hash(repository) == before


def test_what_is_excluded_is_no_input(repository: Path) -> None:
    image = images.Image("server", ".", (".", ":(exclude)pool"))
    assert "pool/pool.cpp" not in images.input_files(image, repository)
    assert "README.md" in images.input_files(image, repository)


def test_a_changed_file_changes_the_hash(repository: Path) -> None:
    before = _hash(repository)
    (repository / "pool" / "pool.cpp").write_text("int main() { return 1; }\n")
    assert _hash(repository) != before


def test_a_changed_mode_changes_the_hash(repository: Path) -> None:
    before = _hash(repository)
    (repository / "pool" / "pool.cpp").chmod(0o755)
    assert _hash(repository) != before


def test_a_renamed_file_changes_the_hash(repository: Path) -> None:
    before = _hash(repository)
    (repository / "pool" / "pool.cpp").rename(repository / "pool" / "pond.cpp")
    assert _hash(repository) != before


def test_a_link_in_place_of_a_file_changes_the_hash(repository: Path) -> None:
    (repository / "pool" / "link").write_text("pool.cpp")
    before = _hash(repository)
    (repository / "pool" / "link").unlink()
    (repository / "pool" / "link").symlink_to("pool.cpp")
    assert _hash(repository) != before


def test_a_build_argument_changes_the_hash(repository: Path) -> None:
    assert _hash(repository, BACKEND="cpu") != _hash(repository, BACKEND="cuda")


def test_another_file_of_the_repository_does_not_change_the_hash(repository: Path) -> None:
    before = _hash(repository)
    (repository / "README.md").write_text("read again\n")
    assert _hash(repository) == before


def test_a_deleted_file_that_git_still_lists_is_no_input(repository: Path) -> None:
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    (repository / "pool" / "pool.cpp").unlink()
    assert images.input_files(IMAGE, repository) == ["images/server/Dockerfile"]


def test_a_missing_dockerfile_is_named(repository: Path) -> None:
    (repository / "images/server/Dockerfile").unlink()
    with pytest.raises(LabError, match=r"images/server/Dockerfile is not there"):
        images.input_files(IMAGE, repository)


def test_the_newest_archives_of_an_image_are_kept_and_those_of_others_left_alone(tmp_path: Path) -> None:
    for age, digit in enumerate("abcde"):
        archive = tmp_path / f"server-{digit * 12}.tar"
        archive.touch()
        os.utime(archive, (1000 - age, 1000 - age))
    (tmp_path / f"server-side-{'a' * 12}.tar").touch()
    images.remove_older(tmp_path, "server")
    kept = sorted(path.name[:-16] + path.name[-5] for path in tmp_path.iterdir())
    assert kept == ["server-a", "server-b", "server-c", "server-side-a"]
