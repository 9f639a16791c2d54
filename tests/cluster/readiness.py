"""Waiting for what each component brings about, and no longer than the component lives."""

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.cluster import client, daemons, namespaces, progress, runtime
from tests.cluster.errors import LabError
from tests.cluster.settings import API_SERVICE_ADDRESS, Lab


def wait_for_component(lab: Lab, component: str) -> None:
    """Waits until those that start after it can use it.

    Raises:
        LabError: it ended or takes too long; the message says where to look.
    """
    if component == "kube-apiserver":
        _wait(lab, "the API", component, lambda: client.kubectl(lab, "get", "--raw=/readyz").stdout == "ok")
    elif component == "containerd":
        # The kubelet gives up at once on a runtime that does not answer yet.
        _wait(lab, "containerd", component, lambda: runtime.answers(lab))
    elif component == "kubelet":
        path = lab.state / "kubelet" / "device-plugins" / "kubelet.sock"
        _wait(lab, "the kubelet's socket for device plugins", component, lambda: _accepts(path))


def wait_for_node(lab: Lab, gpus: int) -> None:
    """Waits until pods can be scheduled, have a service account, and reach services and GPUs.

    Raises:
        LabError: a component ended or takes too long; the message says where to look.
    """
    since = daemons.started_at(lab, "kubelet").replace(microsecond=0)  # the API tells whole seconds
    _wait(lab, "the node to be Ready", "kubelet", lambda: client.ready_since(lab, since))
    _wait(lab, f"the node to offer {gpus} GPUs", "device-plugin", lambda: client.gpus(lab) == gpus)
    _wait(lab, "services to be programmed", "kube-proxy", lambda: _services_programmed(lab))
    account = ("get", "serviceaccount", "default")
    _wait(
        lab, "the default service account", "kube-controller-manager", lambda: client.succeeds(lab, *account)
    )


def _wait(lab: Lab, what: str, component: str, condition: Callable[[], bool]) -> None:
    log = lab.log / f"{component}.log"

    def holds() -> bool:
        if not daemons.running(lab, component):
            raise LabError(f"{what}: {component} has ended; {log} ends with\n{progress.tail(log, 15)}")
        return condition()

    progress.wait_until(what, holds, 120, f"log: {log}")


def _accepts(path: Path) -> bool:
    """Whether something listens on the socket; its file outlives a process that was killed."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


def _services_programmed(lab: Lab) -> bool:
    command = [*namespaces.enter_network(lab), "iptables-save", "-t", "nat"]
    rules = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    return f"-d {API_SERVICE_ADDRESS}/32" in rules
