"""The chart installed, upgraded and removed on the node, which these tests need to themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.models.hybrid import HybridShape
from tests.support import chart
from tests.support.kubectl import Kubectl, until
from tests.support.models import Model, manifest, provide_model

if TYPE_CHECKING:
    from collections.abc import Iterator

FROZEN = Path(__file__).parent / "frozen"
FROZEN_CRD = FROZEN / "chart" / "files" / "llamapool.dev_hybridmodels.yaml"
CRD = "hybridmodels.llamapool.dev"
SMALL = HybridShape(layers=16)
SMALL_FILE = "small.gguf"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def pytest_configure() -> None:
    """Refuse to run anywhere else than inside the node, rather than to pass without having tested."""
    if "LLAMAPOOL_LAB_STATE" not in os.environ:
        raise pytest.UsageError("these tests need the test node: run `make test-node`")


@pytest.fixture(autouse=True)
def _nothing_installed() -> None:
    """Each test begins without a release, in a namespace that enforces Pod Security ``restricted``."""
    if chart.is_installed():
        chart.uninstall()
    Kubectl(chart.NAMESPACE).ensure_namespace(RESTRICTED)


@contextmanager
def namespace(name: str) -> Iterator[Kubectl]:
    """A namespace with a model file; removed afterwards."""
    kubectl = Kubectl(name)
    kubectl.ensure_namespace(RESTRICTED)
    provide_model(kubectl, SMALL_FILE, SMALL)
    try:
        yield kubectl
    finally:
        kubectl("delete", "hybridmodels", "--all", "--wait")
        kubectl("delete", "namespace", name, "--wait=false")
        kubectl("delete", "persistentvolume", f"{name}-models", "--ignore-not-found", "--wait=false")


def serve(kubectl: Kubectl, name: str = "chat") -> Model:
    """Create a model; it need not be ready yet."""
    kubectl.apply(manifest(name, SMALL_FILE, limit="1Gi"))
    return Model(kubectl, name)


def put_back_frozen_crd(kubectl: Kubectl) -> None:
    """Put the CRD of release 0.1.0 in place of the one that there is.

    What Helm adopts, it does not take fields away from; and it adopts only what bears its marks.
    """
    frozen = yaml.safe_load(FROZEN_CRD.read_text())
    frozen["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    frozen["metadata"]["annotations"] |= {
        "meta.helm.sh/release-name": chart.RELEASE,
        "meta.helm.sh/release-namespace": chart.NAMESPACE,
    }
    kubectl("replace", "--filename", "-", stdin=yaml.safe_dump(frozen))


@contextmanager
def frozen_release() -> Iterator[None]:
    """Release 0.1.0: its chart and CRD by Helm, and its operator.

    The operator runs from its wheel beside the cluster: there is no image of it, and building one from the
    past would take the tools of the past. The pod of its chart is kept from starting.
    """
    kubectl = Kubectl(chart.NAMESPACE)
    if kubectl.find("crd", CRD):
        put_back_frozen_crd(kubectl)
    chart.install_from(FROZEN / "chart", "--set", "nodeSelector.no=where", wait=False)
    environment = os.environ | {
        "PYTHONPATH": str(FROZEN / "llamapool-0.1.0-py3-none-any.whl"),
        "LLAMAPOOL_SERVER_IMAGE": chart.image("llama-server"),
        "LLAMAPOOL_METRICS_PORT": "19090",
        "LLAMAPOOL_HEALTH_PORT": "18081",
    }
    until("the frozen CRD", lambda: kubectl("get", "hybridmodels", "--all-namespaces") is not None)
    with subprocess.Popen([sys.executable, "-m", "llamapool", "operator"], env=environment) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)
