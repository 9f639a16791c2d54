"""The chart, installed as a person installs it, with the images that were built from this tree."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.kubectl import run

ROOT = Path(__file__).parents[2]
RELEASE, NAMESPACE = "llamapool", "llamapool-system"


def image_values() -> list[str]:
    """Helm arguments that name the images of ``build/images.json`` (written by ``make images``)."""
    images = json.loads((ROOT / "build" / "images.json").read_text())
    arguments: list[str] = []
    for value, image in (("image", "operator"), ("serverImage", "llama-server")):
        repository, _, tag = images[image]["reference"].rpartition(":")
        arguments += ["--set", f"{value}.repository={repository}", "--set", f"{value}.tag={tag}"]
    return arguments


def install(*arguments: str) -> str:
    """Install or upgrade the release, and wait until the operator is ready; what helm printed."""
    return run(
        "helm", "upgrade", "--install", RELEASE, str(ROOT / "charts" / "llamapool"),
        "--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout", "3m",
        *image_values(), *arguments,
    )  # fmt: skip


def uninstall() -> str:
    """Uninstall the release and wait; what helm printed."""
    return run("helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout", "2m")
