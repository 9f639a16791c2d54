"""The chart, installed as a person installs it, with the images that were built from this tree."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.kubectl import run

ROOT = Path(__file__).parents[2]
RELEASE, NAMESPACE = "llamapool", "llamapool-system"
OPERATOR_USER = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"


def image(name: str) -> str:
    """Reference of an image of ``build/images.json`` (written by ``make images``)."""
    images = json.loads((ROOT / "build" / "images.json").read_text())
    reference: str = images[name]["reference"]
    return reference


def image_values() -> list[str]:
    """Helm arguments that name the images of this tree."""
    arguments: list[str] = []
    for value, name in (("image", "operator"), ("serverImage", "llama-server")):
        repository, _, tag = image(name).rpartition(":")
        arguments += ["--set", f"{value}.repository={repository}", "--set", f"{value}.tag={tag}"]
    return arguments


def install(*arguments: str) -> str:
    """Install or upgrade the release, and wait until the operator is ready; what helm printed."""
    return install_from(ROOT / "charts" / "llamapool", *arguments)


def install_from(folder: Path, *arguments: str, wait: bool = True) -> str:
    """Install or upgrade the release from a chart; what helm printed."""
    return run(
        "helm", "upgrade", "--install", RELEASE, str(folder),
        "--namespace", NAMESPACE, "--create-namespace", *(["--wait", "--timeout", "3m"] if wait else []),
        *image_values(), *arguments,
    )  # fmt: skip


def is_installed() -> bool:
    """Whether there is a release, a failed one included."""
    releases = json.loads(run("helm", "list", "--all", "--namespace", NAMESPACE, "--output", "json"))
    return any(release["name"] == RELEASE for release in releases)


def uninstall() -> str:
    """Uninstall the release and wait; what helm printed."""
    return run("helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout", "2m")
