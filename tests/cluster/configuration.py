"""Configuration files of the components, as values; `write` puts them into the lab's folder."""

import base64
import json
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.settings import (
    API_PORT,
    CLUSTER_NETWORK,
    PAUSE_IMAGE,
    POD_NETWORK,
    Lab,
)

CONTAINERD_ENDPOINT = "unix:///run/containerd/containerd.sock"
"""As seen in the lab's mount namespace."""


def write(lab: Lab, *, cgroup_v2: bool) -> None:
    """Writes all of them; needs the certificates."""
    lab.config.mkdir(parents=True, exist_ok=True)
    for user in ("admin", "controller-manager", "scheduler", "proxy", "kubelet"):
        _write(lab.config / f"{user}.kubeconfig", yaml.safe_dump(kubeconfig(lab.pki, user)))
    _write(lab.config / "kubelet.yaml", yaml.safe_dump(kubelet(lab, cgroup_v2=cgroup_v2)))
    _write(lab.config / "proxy.yaml", yaml.safe_dump(proxy(lab)))
    _write(lab.config / "audit.yaml", yaml.safe_dump(audit_policy()))
    _write(lab.config / "containerd.toml", containerd(lab.config / "cni"))
    (lab.config / "cni").mkdir(exist_ok=True)
    _write(lab.config / "cni" / "10-lab.conflist", json.dumps(cni(), indent=2))


def kubeconfig(pki: Path, user: str) -> dict[str, Any]:
    """A kubeconfig that holds everything it needs, for the certificate of that file name."""

    def embedded(file: str) -> str:
        return base64.b64encode((pki / file).read_bytes()).decode()

    cluster = {
        "server": f"https://127.0.0.1:{API_PORT}",
        "certificate-authority-data": embedded("ca.crt"),
    }
    credentials = {
        "client-certificate-data": embedded(f"{user}.crt"),
        "client-key-data": embedded(f"{user}.key"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
        "current-context": "lab",
    }


def kubelet(lab: Lab, *, cgroup_v2: bool) -> dict[str, Any]:
    """KubeletConfiguration: a real node's defaults where nothing is said here."""
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(lab.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(lab.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(lab.pki / "kubelet.key"),
        "containerRuntimeEndpoint": CONTAINERD_ENDPOINT,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{lab.identity}",
        # With false, an in-place resize crashes kubelet 1.35.4 on cgroup v1.
        "cgroupsPerQOS": True,
        "failSwapOn": False,
        "podCIDR": POD_NETWORK,
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # Lowering the score needs CAP_SYS_RESOURCE, which a virtual machine or container may not have.
        "oomScoreAdj": 0,
        # Images come from archives, so what the kubelet collects would not come back.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        # Tests wait for restarts and for mounted ConfigMaps to be refreshed; by default the first takes up to
        # 5 minutes, the second more than one.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "5s"},
        "syncFrequency": "10s",
        # What the node offers is seen that much sooner, at the start above all; the default is 10 seconds.
        "nodeStatusUpdateFrequency": "2s",
    }
    if not cgroup_v2:
        configuration["failCgroupV1"] = False
    return configuration


def proxy(lab: Lab) -> dict[str, Any]:
    """KubeProxyConfiguration: iptables, and no host-wide connection tracking limits touched."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(lab.config / "proxy.kubeconfig")},
        "mode": "iptables",
        "clusterCIDR": CLUSTER_NETWORK,
        "hostnameOverride": lab.node_name,
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def audit_policy() -> dict[str, Any]:
    """Who did what: every change with its request, every read without; no secrets and no leases."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
            {"level": "Request", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
            {"level": "Metadata"},
        ],
    }


def containerd(cni_folder: Path) -> str:
    """containerd's configuration (TOML, version 2)."""
    debian, upstream = Path("/usr/lib/cni"), Path("/opt/cni/bin")
    plugins = upstream if (upstream / "ptp").exists() else debian
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
# The last one would make /opt/containerd on the machine; the others are snapshotters that are not used.
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt",
]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Lowering the score needs CAP_SYS_RESOURCE, which a virtual machine or container may not have.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni_folder}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def cni() -> dict[str, Any]:
    """Pod network: a pair of interfaces a pod, addresses from the node's range, host ports."""
    return {
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {"type": "host-local", "subnet": POD_NETWORK, "routes": [{"dst": "0.0.0.0/0"}]},
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _write(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_text(content)
