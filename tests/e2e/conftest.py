"""End to end, on a real node: ``make test-node`` brings it up and runs these inside it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.models.hybrid import HybridShape
from tests.support import chart
from tests.support.kubectl import Kubectl
from tests.support.models import Model, manifest, provide_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Twelve recurrent layers: a checkpoint of 37.4 MiB, just above the pool's floor, and a start in seconds.
SMALL = HybridShape(layers=16)
SMALL_FILE = "small.gguf"


def pytest_configure() -> None:
    """Refuse to run anywhere else than inside the node, rather than to pass without having tested."""
    if "LLAMAPOOL_LAB_STATE" not in os.environ:
        raise pytest.UsageError("the end-to-end tests need the test node: run `make test-node`")


@pytest.fixture(scope="session")
def _installed() -> None:
    chart.install()


@pytest.fixture
def operator(_installed: None) -> Kubectl:
    """The namespace of a running operator."""
    kubectl = Kubectl(chart.NAMESPACE)
    kubectl("rollout", "status", "deployment/llamapool", "--timeout", "2m")
    return kubectl


@pytest.fixture
def kubectl(operator: Kubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A namespace of the test's own, with a model on a volume, that enforces Pod Security ``restricted``."""
    del operator
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50].strip("-")
    namespaced = Kubectl(name)
    namespaced.ensure_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    provide_model(namespaced, SMALL_FILE, SMALL)
    yield namespaced
    # Not waited for: with pods left, the namespace controller looks again after half their grace period.
    namespaced("delete", "hybridmodels", "--all", "--wait")
    namespaced("delete", "namespace", name, "--wait=false")
    namespaced("delete", "persistentvolume", f"{name}-models", "--ignore-not-found", "--wait=false")


@pytest.fixture
def create(kubectl: Kubectl) -> Callable[..., Model]:
    """Create a HybridModel in the test's namespace."""

    def make(name: str = "chat", *, limit: str = "1Gi", **spec: object) -> Model:
        kubectl.apply(manifest(name, SMALL_FILE, limit=limit, **spec))
        return Model(kubectl, name)

    return make
