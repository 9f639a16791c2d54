"""Every command of the docs, run on the node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import chart
from tests.support.documents import commands_of
from tests.support.kubectl import Kubectl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.models import Model

DOCS = chart.ROOT / "docs"
# The README's first block is what continuous integration does; docs/decisions have no commands.
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if "decisions" not in page.parts and commands_of(page).script
)


NAMED_NAMESPACES = ("models", "research")
"""Those that the docs call by name."""


@pytest.fixture
def installed_again() -> Iterator[None]:
    """The chart as the tests want it, whatever a page has done to it."""
    yield
    chart.install()


def environment(namespace: str, model: str, home: Path) -> dict[str, str]:
    """What the docs call by a name."""
    images = json.loads((chart.ROOT / "build" / "images.json").read_text())
    registry, _, _ = images["operator"]["reference"].rpartition("/")
    return os.environ | {
        "NAMESPACE": namespace,
        "MODEL": model,
        "REGISTRY": registry,
        "OPERATOR_TAG": images["operator"]["reference"].rpartition(":")[2],
        "SERVER_TAG": images["llama-server"]["reference"].rpartition(":")[2],
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
    }


def as_on_the_node(script: str) -> str:
    """The node's images carry a tag each, by their content; a person's carry one tag."""
    return script.replace('--set image.tag="$TAG"', '--set image.tag="$OPERATOR_TAG"').replace(
        '--set serverImage.tag="$TAG"', '--set serverImage.tag="$SERVER_TAG"'
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of(
    page: Path,
    create: Callable[..., Model],
    kubectl: Kubectl,
    installed_again: None,
    tmp_path: Path,
) -> None:
    del installed_again
    model = create("example")
    model.until_condition("Ready")
    commands = commands_of(page)
    if "helm install llamapool" in commands.script:
        chart.uninstall()
    for name in NAMED_NAMESPACES:
        Kubectl(name).ensure_namespace()
    # In a folder that looks like a checkout, so that files a page writes do not end up in the tree.
    for name in ("charts", "crds", "docs", "tests", "images", "Makefile"):
        (tmp_path / name).symlink_to(chart.ROOT / name)
    for name, text in commands.files.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-x", "-c", as_on_the_node(commands.script)],
        cwd=tmp_path,
        env=environment(kubectl.namespace, model.name, tmp_path),
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, f"{page.name}:\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
