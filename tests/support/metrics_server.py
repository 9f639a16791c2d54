"""metrics-server on the test node, so that an autoscaler sees what pods use.

It is a process of the node rather than a pod: started by whoever needs it, ended with that.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cluster import golang
from tests.cluster.settings import NODE_ADDRESS
from tests.support.kubectl import Kubectl, until

if TYPE_CHECKING:
    from collections.abc import Iterator

_PORT = 4443
_NAME = "metrics-server"
_API = "v1beta1.metrics.k8s.io"


@contextmanager
def metrics_server() -> Iterator[None]:
    """Serve metrics.k8s.io on the node for as long as the block runs."""
    state = Path(os.environ["LLAMAPOOL_LAB_STATE"])
    command = [
        str(golang.metrics_server() / _NAME),
        f"--kubeconfig={os.environ['KUBECONFIG']}",
        f"--authentication-kubeconfig={os.environ['KUBECONFIG']}",
        f"--authorization-kubeconfig={os.environ['KUBECONFIG']}",
        f"--secure-port={_PORT}",
        f"--cert-dir={state / 'run' / 'metrics-server'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-certificate-authority={state / 'pki' / 'ca.crt'}",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=8s",  # it has to be shorter
    ]
    kubectl = Kubectl("kube-system")
    with (state / "log" / "metrics-server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            kubectl.apply(*_manifests())
            until(
                f"{_API} is available (log: {log.name})",
                lambda: (
                    process.poll() is None
                    and '"usage"' in kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")
                ),
                timeout_seconds=90,
            )
            yield
        finally:
            kubectl("delete", "apiservice", _API, "--ignore-not-found")
            kubectl("delete", "service", _NAME, "--ignore-not-found")
            process.terminate()
            process.wait(timeout=20)


def _manifests() -> tuple[dict[str, Any], ...]:
    """A Service without a selector, the process as its endpoint, and the API behind it."""
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _NAME},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": _PORT}]},
    }
    slice_: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": _NAME, "labels": {"kubernetes.io/service-name": _NAME}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": _PORT, "protocol": "TCP"}],
        "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
    }
    group, version = "metrics.k8s.io", "v1beta1"
    api: dict[str, Any] = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": _API},
        "spec": {
            "group": group,
            "version": version,
            "service": {"name": _NAME, "namespace": "kube-system", "port": 443},
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
        },
    }
    return service, slice_, api
