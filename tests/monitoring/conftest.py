"""A real operator, servers and Prometheus for all tests of this folder; one model has steady traffic.

The tests run in the order in which they stand: what their faults leave behind fills the panels in the end.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.models.hybrid import HybridShape
from tests.monitoring.load import traffic
from tests.monitoring.prometheus import Prometheus, by_annotations, running
from tests.support import chart
from tests.support.kubectl import Kubectl
from tests.support.models import Model, manifest, provide_model

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = HybridShape(layers=16)
SMALL_FILE = "small.gguf"


def pytest_configure() -> None:
    """Refuse to run anywhere else than inside the node, rather than to pass without having tested."""
    if "LLAMAPOOL_LAB_STATE" not in os.environ:
        raise pytest.UsageError("the monitoring tests need the test node: run `make test-monitoring`")


@pytest.fixture(scope="session")
def operator() -> Kubectl:
    """The namespace of a running operator."""
    chart.install()
    return Kubectl(chart.NAMESPACE)


@pytest.fixture(scope="session")
def kubectl(operator: Kubectl) -> Iterator[Kubectl]:
    """A namespace with a model file, which enforces Pod Security ``restricted``."""
    del operator
    namespace = Kubectl("monitoring")
    namespace.ensure_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    provide_model(namespace, SMALL_FILE, SMALL)
    yield namespace
    namespace("delete", "hybridmodels", "--all", "--wait")
    namespace("delete", "namespace", namespace.namespace, "--wait=false")
    namespace(
        "delete", "persistentvolume", f"{namespace.namespace}-models", "--ignore-not-found", "--wait=false"
    )


@pytest.fixture(scope="session")
def prometheus(operator: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, scraping what asks for it."""
    del operator
    folder = tmp_path_factory.mktemp("prometheus")
    with running(folder, by_annotations(folder)) as server:
        yield server


@pytest.fixture(scope="session")
def chat(kubectl: Kubectl, prometheus: Prometheus) -> Iterator[Model]:
    """A model under traffic."""
    del prometheus  # it has to see the model from its beginning
    kubectl.apply(manifest("chat", SMALL_FILE, limit="1Gi", tuning={"targetP90Seconds": 60}))
    model = Model(kubectl, "chat")
    model.until_condition("Ready")
    with traffic(model):
        yield model
