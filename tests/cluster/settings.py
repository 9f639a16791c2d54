"""Where everything is, and which versions: pure values that the other modules share."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import LabError

KUBERNETES_VERSION = "v1.35.4"  # also in kube/go.mod
HELM_VERSION = "v3.19.0"
METRICS_SERVER_VERSION = "v0.8.0"
PROMETHEUS_VERSION = "v3.13.0"  # v0.313.0 in prometheus/go.mod
GO_VERSION = "1.26.8"
GO_SHA256 = "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7"

REPOSITORY = Path(__file__).resolve().parents[2]
DEFAULT_NAME = "llamapool"

# Every lab has a network namespace of its own, so that all of them use the same addresses and ports.
NODE_ADDRESS = "10.200.0.1"
NODE_NETWORK = "10.200.0.0/24"
POD_NETWORK = "10.244.0.0/24"
CLUSTER_NETWORK = "10.244.0.0/16"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
API_PORT = 6443

GPU_RESOURCE = "nvidia.com/gpu"
PAUSE_IMAGE = "docker.io/llamapool/pause:lab"

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclass(frozen=True)
class Lab:
    """One lab: everything it owns on this machine derives from its name and its state folder."""

    name: str
    state: Path

    @property
    def identity(self) -> str:
        """Name of its network namespace and of its cgroup in every hierarchy."""
        return f"llamapool-lab-{self.name}"

    @property
    def node_name(self) -> str:
        return f"{self.name}-node"

    @property
    def network_namespace(self) -> Path:
        return Path("/run/netns") / self.identity

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def config(self) -> Path:
        return self.state / "config"

    @property
    def log(self) -> Path:
        return self.state / "log"

    @property
    def run(self) -> Path:
        """Folder of the pidfiles."""
        return self.state / "run"

    @property
    def volumes(self) -> Path:
        """Folder for hostPath volumes: world-readable and traversable, so that a non-root pod can use it."""
        return self.state / "volumes"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's; it works inside the lab's network namespace only."""
        return self.config / "admin.kubeconfig"

    @property
    def kubectl_cache(self) -> Path:
        """What kubectl keeps of the API; not in the user's home, since all labs have the same address."""
        return self.state / "kubectl-cache"

    @property
    def containerd_socket(self) -> Path:
        return self.state / "containerd" / "run" / "containerd.sock"

    @property
    def private_folders(self) -> dict[Path, Path]:
        """Folder of the state → the fixed path it replaces in the lab's mount namespace.

        Kubelet, containerd and the CNI plugins have these paths built in; without replacing them two labs, or
        a lab and a real node, would share device plugins, shim sockets and pod addresses.
        """
        return {
            self.state / "kubelet": Path("/var/lib/kubelet"),
            self.state / "containerd" / "lib": Path("/var/lib/containerd"),
            self.state / "containerd" / "run": Path("/run/containerd"),
            self.state / "cni" / "lib": Path("/var/lib/cni"),
            self.state / "pod-namespaces": Path("/run/netns"),
            self.log / "pods": Path("/var/log/pods"),
            self.log / "containers": Path("/var/log/containers"),
        }


def lab(name: str | None, environment: Mapping[str, str] = os.environ) -> Lab:
    """The lab of that name or $LLAMAPOOL_LAB_NAME, with its state in $LLAMAPOOL_LAB_STATE or by default.

    Raises:
        LabError: the name does not fit into the names derived from it.
    """
    chosen = name or environment.get("LLAMAPOOL_LAB_NAME") or DEFAULT_NAME
    if not _NAME.fullmatch(chosen):
        raise LabError(
            f"--name: {chosen!r} is no lab name; it takes 1 to 20 lower-case letters, digits and dashes, "
            "a letter first and no dash last"
        )
    inherited = environment.get("LLAMAPOOL_LAB_NAME", chosen) == chosen
    state = environment.get("LLAMAPOOL_LAB_STATE") if inherited else None
    return Lab(chosen, Path(state or f"/var/lib/llamapool-lab/{chosen}").absolute())
