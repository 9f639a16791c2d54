"""containerd of a lab: whether it answers, and the images in it."""

import subprocess
from pathlib import Path

from tests.cluster import progress
from tests.cluster.errors import LabError
from tests.cluster.settings import Lab


def answers(lab: Lab) -> bool:
    """Whether containerd serves requests."""
    return lab.containerd_socket.is_socket() and _run(lab, "version").returncode == 0


def images(lab: Lab) -> set[str]:
    """References of the images that pods can use."""
    result = _run(lab, "images", "list", "--quiet")
    if result.returncode:
        raise LabError(f"containerd at {lab.containerd_socket}: {result.stderr.strip()}; is the lab up?")
    return set(result.stdout.split())


def load(lab: Lab, archive: Path, reference: str | None = None) -> None:
    """Imports a docker or OCI archive, unless the image of that reference is there already."""
    if reference and reference in images(lab):
        return
    progress.run(
        f"loading {archive.name}", _ctr(lab, "images", "import", str(archive)), lab.log / "images.log"
    )


def remove_older(lab: Lab, reference: str) -> None:
    """Removes images of the same repository under other tags, except those that containers were made of."""
    repository = reference.rpartition(":")[0]
    # CONTAINER, IMAGE and RUNTIME, after a line with these headings.
    containers = _run(lab, "containers", "list").stdout.splitlines()[1:]
    used = {line.split()[1] for line in containers}
    old = [each for each in images(lab) if each.rpartition(":")[0] == repository and each != reference]
    if unused := [each for each in old if each not in used]:
        _run(lab, "images", "remove", *unused)


def _ctr(lab: Lab, *arguments: str) -> list[str]:
    return ["ctr", f"--address={lab.containerd_socket}", "--namespace=k8s.io", *arguments]


def _run(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = _ctr(lab, *arguments)
    return subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
