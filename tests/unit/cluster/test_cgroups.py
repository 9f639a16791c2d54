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


def _machine(tmp_path: Path, mounts: str) -> tuple[cgroups.Hierarchy, ...]:
    """Folders in place of the hierarchies, with the files that a kernel has in the root of each."""
    found = _hierarchies(tmp_path, mounts.replace("/sys/fs/cgroup", str(tmp_path / "cgroup")))
    for each in found:
        each.mount.mkdir(parents=True, exist_ok=True)
        (each.mount / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
        (each.mount / "cpuset.cpus").write_text("0-1\n")
        (each.mount / "cpuset.mems").write_text("0\n")
    return found


def test_on_version_1_the_cgroup_is_made_wherever_there_are_controllers(tmp_path: Path) -> None:
    daemons = cgroups.create("lab", _machine(tmp_path, V1))
    assert daemons == tmp_path / "cgroup" / "pids" / "lab" / "daemons"
    assert sorted(path.parent.name for path in tmp_path.glob("cgroup/*/lab")) == ["cpuset", "memory", "pids"]


def test_a_version_1_cpuset_is_given_processors_and_memory_nodes(tmp_path: Path) -> None:
    cgroups.create("lab", _machine(tmp_path, V1))
    made = tmp_path / "cgroup" / "cpuset" / "lab"
    assert (made / "cpuset.cpus").read_text() == "0-1\n"
    assert (made / "cpuset.mems").read_text() == "0\n"


def test_on_version_2_every_controller_is_passed_on_to_the_cgroup(tmp_path: Path) -> None:
    daemons = cgroups.create("lab", _machine(tmp_path, V2))
    assert daemons == tmp_path / "cgroup" / "lab" / "daemons"
    assert (tmp_path / "cgroup" / "cgroup.subtree_control").read_text() == "+cpuset +cpu +memory +pids"


def test_version_2_tracks_daemons_in_its_one_hierarchy(tmp_path: Path) -> None:
    assert cgroups.tracking(_hierarchies(tmp_path, V2)).mount == Path("/sys/fs/cgroup")
