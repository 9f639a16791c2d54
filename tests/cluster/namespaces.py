"""The lab's network and mount namespaces: its own addresses and ports, and its own copies of fixed paths."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.errors import LabError
from tests.cluster.settings import NODE_ADDRESS, NODE_NETWORK, Lab

_NODE_DEVICE = "node0"


# Unmounts on the machine still reach the lab's copies (slave), so that the lab keeps none alive; among its
# own processes mounts are shared, which kubelet and container runtime need.
_UNSHARE = ("unshare", "--mount", "--propagation", "slave")
_REPLACE_FOLDERS = """\
set -e
mount --make-rshared /
while [ "$1" != -- ]; do
    mount --bind "$1" "$2"
    shift 2
done
shift
exec "$@"
"""


def create_network(lab: Lab) -> None:
    """Makes the network namespace and the node's address in it, unless they are there."""
    if not is_mounted(lab.network_namespace):
        _run("ip", "netns", "add", lab.identity)
    inside = enter_network(lab)
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


def enter_network(lab: Lab) -> list[str]:
    """The words to put before a command to run it in the lab's network.

    Not `ip netns exec`, which mounts a new /sys without the cgroups.
    """
    return ["nsenter", f"--net={lab.network_namespace}", "--"]


def enter_all(lab: Lab, member: int | None) -> list[str | Path]:
    """The words to put before a component's command to run it in the lab's network and with its mounts.

    Arguments:
        member: pid of a component that runs already, whose mount namespace is joined; without one the command
            gets a new one. Only processes hold that namespace, no file: within another mount namespace than
            the machine's first, Linux 6.18 refuses to bind one that was made on another CPU (EINVAL).
    """
    if member is not None:
        return [*enter_network(lab)[:-1], f"--mount=/proc/{member}/ns/mnt", "--"]
    for source, target in lab.private_folders.items():
        source.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
    pairs = [path for pair in lab.private_folders.items() for path in pair]
    return [*enter_network(lab), *_UNSHARE, "sh", "-c", _REPLACE_FOLDERS, "sh", *pairs, "--"]


def members(lab: Lab) -> Iterator[int]:
    """Pids of the processes in the lab's network namespace, whoever started them."""
    if not is_mounted(lab.network_namespace):
        return
    inode = lab.network_namespace.stat().st_ino
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                found = (folder / "ns" / "net").stat().st_ino
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # gone, or with more rights than root has here, which the lab cannot give
            if found == inode:
                yield int(folder.name)


def delete(lab: Lab) -> None:
    """Removes the network namespace, and with it the lab's interfaces, addresses and packet filter rules.

    Its mounts went with the last of its processes; any that somebody else made below its folder are undone.
    """
    if is_mounted(lab.network_namespace):
        _run("ip", "netns", "delete", lab.identity)
    lab.network_namespace.unlink(missing_ok=True)  # its file outlives it where /run survives a restart
    for path in reversed(mounts_below(lab.state)):
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


def _run(*command: str | Path) -> None:
    result = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode:
        words = " ".join(map(str, command))
        raise LabError(
            f"{words}: exited with {result.returncode}: {(result.stderr or result.stdout).strip()}"
        )
