"""The chart as helm renders and installs it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.support.kubectl import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.kubectl import Kubectl

CHART = Path(__file__).parents[2] / "charts" / "llamapool"
# Helm arguments for a cluster that has its kinds.
PROMETHEUS_OPERATOR = (
    "--api-versions", "monitoring.coreos.com/v1/PodMonitor",
    "--api-versions", "monitoring.coreos.com/v1/PrometheusRule",
)  # fmt: skip


def render(*arguments: str, namespace: str = "llamapool-system") -> str:
    """What ``helm template`` prints for a release named ``llamapool``, on Kubernetes 1.35."""
    return run(
        "helm", "template", "llamapool", str(CHART), "--namespace", namespace, "--kube-version", "1.35.0",
        *arguments,
    )  # fmt: skip


def objects(*arguments: str, namespace: str = "llamapool-system") -> list[dict[str, Any]]:
    """The rendered objects."""
    return [found for found in yaml.safe_load_all(render(*arguments, namespace=namespace)) if found]


@dataclass(frozen=True)
class Release:
    """An installed chart."""

    namespace: str

    @property
    def user(self) -> str:
        """The user name of the operator's service account."""
        return f"system:serviceaccount:{self.namespace}:llamapool"


@contextmanager
def installed(kubectl: Kubectl) -> Iterator[Release]:
    """The chart as release ``llamapool`` in the namespace of ``kubectl``, its pod never started."""
    arguments = ("--namespace", kubectl.namespace)
    run(
        "helm", "install", "llamapool", str(CHART), *arguments, "--set", "crd.install=false",
        # What is tested here are the rights; no operator must run beside the other tests.
        "--set", "nodeSelector.no=where",
    )  # fmt: skip
    try:
        yield Release(kubectl.namespace)
    finally:
        run("helm", "uninstall", "llamapool", *arguments)
