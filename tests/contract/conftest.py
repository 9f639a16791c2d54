"""The CRD and the chart against a real apiserver, the one that KUBECONFIG names."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import pytest
from kubernetes import client, config

from tests.contract.chart import installed
from tests.contract.crd import install_crd
from tests.contract.hybridmodels import HybridModels
from tests.support.kubectl import Kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.chart import Release


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate-chart-golden",
        action="store_true",
        help="write tests/contract/golden anew from what the chart renders now",
    )


@pytest.fixture(scope="session")
def cluster() -> Kubectl:
    """The apiserver of KUBECONFIG, with this tree's CRD in it."""
    if not os.environ.get("KUBECONFIG"):
        pytest.fail(
            "KUBECONFIG is not set: the contract tests need a real apiserver. Run them on the test node:"
            " python -m tests.cluster exec -- .venv/bin/python -m pytest tests/contract"
        )
    kubectl = Kubectl("default")
    install_crd(kubectl)
    return kubectl


@pytest.fixture(scope="session")
def namespace(cluster: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a namespace of these tests' own."""
    kubectl = Kubectl(f"contract-{secrets.token_hex(3)}")
    kubectl.ensure_namespace()
    yield kubectl
    cluster("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture(scope="session")
def hybridmodels(namespace: Kubectl) -> Iterator[HybridModels]:
    """The API of HybridModels in that namespace."""
    config.load_kube_config()
    with client.ApiClient() as connection:
        yield HybridModels(client.CustomObjectsApi(connection), namespace.namespace)


@pytest.fixture(scope="session")
def release(namespace: Kubectl) -> Iterator[Release]:
    """The chart, installed in that namespace; its pod never starts, since only its rights are looked at."""
    with installed(namespace) as release:
        yield release
