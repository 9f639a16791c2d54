"""The lab's network and mount namespaces: its own addresses and ports, and its own copies of fixed paths."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.errors import LabError
from tests.cluster.settings import NODE_ADDRESS, NODE_NETWORK, Lab

_NODE_DEVICE = "node0"


def create(lab: Lab) -> None:
    """Makes both namespaces, unless they are there."""
    if not is_mounted(lab.network_namespace):
        _run("ip", "netns", "add", lab.identity)
    _configure_network(lab)
    if not is_mounted(lab.mount_namespace):
        _create_mount_namespace(lab)


def enter(lab: Lab, *, mounts: bool) -> list[str]:
    """The words to put before a command to run it in the lab's network, with its mounts or the machine's.

    Not `ip netns exec`, which mounts a new /sys without the cgroups.
    """
    words = ["nsenter", f"--net={lab.network_namespace}"]
    return [*words, f"--mount={lab.mount_namespace}", "--"] if mounts else [*words, "--"]


def members(lab: Lab) -> Iterator[int]:
    """Pids of the processes in either of the lab's namespaces, whoever started them."""
    paths = (lab.network_namespace, lab.mount_namespace)
    inodes = {path.stat().st_ino for path in paths if is_mounted(path)}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                found = {(folder / "ns" / kind).stat().st_ino for kind in ("net", "mnt")}
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # gone, or with more rights than root has here, which the lab cannot give
            if found & inodes:
                yield int(folder.name)


def delete(lab: Lab) -> None:
    """Removes both; with them go the lab's mounts, interfaces, addresses and packet filter rules."""
    if is_mounted(lab.network_namespace):
        _run("ip", "netns", "delete", lab.identity)
    for path in sorted(mounts_below(lab.state), key=lambda mount: len(mount.parts), reverse=True):
        _run("umount", path)


def mounts_below(folder: Path) -> list[Path]:
    """Mount points at or below a folder, in the order in which they were mounted."""
    points = (Path(os.fsdecode(_unescape(line.split()[4]))) for line in _mount_table())
    return [point for point in points if point.is_relative_to(folder)]


def is_mounted(path: Path) -> bool:
    """Whether something is mounted exactly there."""
    return path in mounts_below(path)


def _mount_table() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()


def _unescape(field: str) -> bytes:
    # proc(5): space, tab, newline and backslash are octal escapes.
    return field.encode().decode("unicode_escape").encode("latin-1")


def _configure_network(lab: Lab) -> None:
    inside = enter(lab, mounts=False)
    known = subprocess.run([*inside, "ip", "link", "show", _NODE_DEVICE], check=False, capture_output=True)
    if known.returncode:
        # A bridge without ports, since not every kernel has the dummy device.
        _run(*inside, "ip", "link", "add", _NODE_DEVICE, "type", "bridge")
    for words in (
        ("ip", "link", "set", "lo", "up"),
        ("ip", "address", "replace", f"{NODE_ADDRESS}/{NODE_NETWORK.partition('/')[2]}", "dev", _NODE_DEVICE),
        ("ip", "link", "set", _NODE_DEVICE, "up"),
        # For the node's own traffic to services, which is translated once it is routed; none of it gets out.
        ("ip", "route", "replace", "default", "dev", _NODE_DEVICE),
        ("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"),
    ):
        _run(*inside, *words)


def _create_mount_namespace(lab: Lab) -> None:
    folder = lab.mount_namespace.parent
    for source, target in lab.private_folders.items():
        source.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
    if not is_mounted(folder):
        # The kernel binds a mount namespace only where mounts are not propagated to others.
        _run("mount", "--bind", folder, folder)
        _run("mount", "--make-private", folder)
    lab.mount_namespace.touch()
    # Unmounts on the machine still reach the lab's copies (slave), so that the lab keeps none alive; among
    # its own processes mounts are shared, which kubelet and container runtime need.
    script = 'set -e; mount --make-rshared /; while [ $# != 0 ]; do mount --bind "$1" "$2"; shift 2; done'
    pairs = [word for pair in lab.private_folders.items() for word in pair]
    unshare = ("unshare", f"--mount={lab.mount_namespace}", "--propagation", "slave")
    try:
        _run(*unshare, "sh", "-c", script, "sh", *pairs)
    except LabError:
        if is_mounted(lab.mount_namespace):  # it is there as soon as the script begins
            _run("umount", lab.mount_namespace)
        raise


def _run(*command: str | Path) -> None:
    result = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode:
        words = " ".join(map(str, command))
        raise LabError(
            f"{words}: exited with {result.returncode}: {(result.stderr or result.stdout).strip()}"
        )
