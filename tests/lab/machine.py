"""What of a lab is on this machine, found without asking the lab: the kernel's tables alone."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cluster import golang, settings
from tests.cluster.settings import REPOSITORY, Lab


def lab(name: str) -> Lab:
    """A lab that has nothing to do with the one these tests may run in."""
    return settings.lab(name, {})


def run(lab: Lab, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """One command of the lab's command line, as a user gives it, but with nothing to read."""
    words = [sys.executable, "-m", "tests.cluster", command, "--name", lab.name, *arguments]
    return subprocess.run(
        words,
        cwd=REPOSITORY,
        env={
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(Path.home()),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def succeed(lab: Lab, command: str, *arguments: str) -> str:
    """Like `run`, and fails with what it said unless it exits with 0."""
    result = run(lab, command, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def kubectl(lab: Lab, *arguments: str) -> str:
    return succeed(lab, "exec", "--", "kubectl", *arguments)


def get_pod(lab: Lab, name: str) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads(kubectl(lab, "get", "pod", name, "--output=json"))
    return pod


def kubectl_program() -> Path:
    """A static program that talks to the API by its pod's service account, to be mounted into a pod."""
    return golang.kube() / "kube"


def processes(lab: Lab, network_namespace: int) -> list[str]:
    """Command lines of processes in that network namespace, in the lab's cgroups, or naming its folder."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            inside = (folder / "ns" / "net").stat().st_ino == network_namespace
            cgroups = (folder / "cgroup").read_text()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if inside or lab.identity in cgroups or str(lab.state) in command:
            found.append(f"{folder.name} {command}")
    return found


def mounts(lab: Lab) -> list[str]:
    """Lines of any process's mount table that name the lab's folder."""
    found: set[str] = set()
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            lines = table.read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError, OSError):
            continue
        found.update(line for line in lines if f"{lab.state}/" in line or f"{lab.state} " in line)
    return sorted(found)


def cgroups(lab: Lab) -> list[str]:
    """Folders of any cgroup hierarchy whose path names the lab."""
    find = ["find", "/sys/fs/cgroup", "-type", "d", "-path", f"*{lab.identity}*"]
    return subprocess.run(find, check=True, capture_output=True, text=True).stdout.splitlines()


def network_namespaces(lab: Lab) -> list[str]:
    """The lab's among those that iproute2 lists."""
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if lab.identity in line]
