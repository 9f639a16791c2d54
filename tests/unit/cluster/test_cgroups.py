from pathlib import Path

from tests.cluster import cgroups

V1 = """\
proc /proc proc rw,relatime 0 0
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""
V2 = """\
proc /proc proc rw,relatime 0 0
cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate,memory_recursiveprot 0 0
"""


def _hierarchies(tmp_path: Path, mounts: str) -> tuple[cgroups.Hierarchy, ...]:
    (tmp_path / "mounts").write_text(mounts)
    return cgroups.hierarchies(tmp_path / "mounts")


def test_every_mounted_hierarchy_is_found_and_nothing_else(tmp_path: Path) -> None:
    found = _hierarchies(tmp_path, V1)
    assert [each.mount.name for each in found] == ["cpuset", "memory", "pids", "unified"]


def test_a_hybrid_system_is_not_version_2(tmp_path: Path) -> None:
    assert not cgroups.is_v2(_hierarchies(tmp_path, V1))


def test_a_unified_system_is_version_2(tmp_path: Path) -> None:
    assert cgroups.is_v2(_hierarchies(tmp_path, V2))


def test_version_1_tracks_daemons_where_their_memory_is_not_moved(tmp_path: Path) -> None:
    assert cgroups.tracking(_hierarchies(tmp_path, V1)).mount == Path("/sys/fs/cgroup/pids")


def test_version_2_tracks_daemons_in_its_one_hierarchy(tmp_path: Path) -> None:
    assert cgroups.tracking(_hierarchies(tmp_path, V2)).mount == Path("/sys/fs/cgroup")
