"""Long conversations under a small limit on a real node, while memory comes and goes beside them.

`make test-soak` runs them inside the node, `make test-soak CASE=resized` one of them; each leaves its figures
as build/soak/CASE.json.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.bench.builds import Build, server
from tests.models.hybrid import HybridShape
from tests.soak.server_pod import MODEL_FILE, STOCK_FILE, ServerPod
from tests.support.kubectl import Kubectl
from tests.support.models import provide_model, volume_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pytest_configure() -> None:
    """Refuse to run anywhere else than inside the node, rather than to pass without having tested."""
    if "LLAMAPOOL_LAB_STATE" not in os.environ:
        raise pytest.UsageError("the soak needs the test node: run `make test-soak`")


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[..., ServerPod]]:
    """Start a server of its own in a pod of 2 GiB; it ends with the test."""
    # Cases differ in the ends of their names, and the namespace of the one before may still be going.
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[-50:].strip("-")
    kubectl = Kubectl(name)
    kubectl.ensure_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    provide_model(kubectl, MODEL_FILE, HybridShape())

    def make(*flags: str, stock: bool = False) -> ServerPod:
        if stock:
            shutil.copy(server(Build.UPSTREAM), volume_folder() / "models" / STOCK_FILE)
        pod = ServerPod(kubectl, "server")
        pod.create(*flags, stock=stock)
        return pod

    yield make
    kubectl("delete", "namespace", name, "--wait=false")
    kubectl("delete", "persistentvolume", f"{name}-models", "--ignore-not-found", "--wait=false")
