"""The programs of the node, in the order in which they start, and the arguments of each."""

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.settings import (
    API_PORT,
    CLUSTER_NETWORK,
    GPU_RESOURCE,
    NODE_ADDRESS,
    SERVICE_NETWORK,
    Lab,
)

COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "containerd",
    "kubelet",
    "kube-proxy",
    "device-plugin",
)
"""Their names in the order in which they start; they stop in the reverse."""

_ETCD = "https://127.0.0.1:2379"


@dataclass(frozen=True)
class Component:
    """One program and its command line."""

    name: str
    command: tuple[str | Path, ...]


def components(lab: Lab, programs: Path, *, gpus: int, audit: bool) -> tuple[Component, ...]:
    """All of them, for programs in that folder."""
    pki, config = lab.pki, lab.config
    etcd = Component(
        "etcd",
        (
            programs / "etcd",
            f"--data-dir={lab.state / 'etcd'}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            f"--cert-file={pki / 'etcd.crt'}",
            f"--key-file={pki / 'etcd.key'}",
            f"--trusted-ca-file={pki / 'ca.crt'}",
            "--client-cert-auth",
            "--unsafe-no-fsync",  # nothing here has to survive a power failure
        ),
    )
    controller_manager = Component(
        "kube-controller-manager",
        (
            programs / "kube-controller-manager",
            *_kubeconfigs(config / "controller-manager.kubeconfig"),
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            f"--service-account-private-key-file={pki / 'sa.key'}",
            "--use-service-account-credentials",
            "--allocate-node-cidrs",
            f"--cluster-cidr={CLUSTER_NETWORK}",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--flex-volume-plugin-dir=/var/lib/kubelet/volume-plugins",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            # Autoscalers act on what they see at once; by default they look every 15 s, and for five minutes
            # at no pod that has just started.
            "--horizontal-pod-autoscaler-sync-period=5s",
            "--horizontal-pod-autoscaler-cpu-initialization-period=10s",
            "--horizontal-pod-autoscaler-initial-readiness-delay=5s",
        ),
    )
    scheduler = Component(
        "kube-scheduler",
        (
            programs / "kube-scheduler",
            *_kubeconfigs(config / "scheduler.kubeconfig"),
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
        ),
    )
    containerd = Component("containerd", ("containerd", f"--config={config / 'containerd.toml'}"))
    kubelet = Component(
        "kubelet",
        (
            programs / "kubelet",
            f"--config={config / 'kubelet.yaml'}",
            f"--kubeconfig={config / 'kubelet.kubeconfig'}",
            f"--hostname-override={lab.node_name}",
            f"--node-ip={NODE_ADDRESS}",
        ),
    )
    proxy = Component("kube-proxy", (programs / "kube-proxy", f"--config={config / 'proxy.yaml'}"))
    gpu_plugin = Component(
        "device-plugin", (programs / "device-plugin", f"--resource={GPU_RESOURCE}", f"--count={gpus}")
    )
    api = _apiserver(lab, programs, audit=audit)
    return (etcd, api, controller_manager, scheduler, containerd, kubelet, proxy, gpu_plugin)


def _apiserver(lab: Lab, programs: Path, *, audit: bool) -> Component:
    pki = lab.pki
    auditing = (
        f"--audit-policy-file={lab.config / 'audit.yaml'}",
        f"--audit-log-path={lab.log / 'audit.jsonl'}",
    )
    return Component(
        "kube-apiserver",
        (
            programs / "kube-apiserver",
            f"--secure-port={API_PORT}",
            f"--advertise-address={NODE_ADDRESS}",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            f"--etcd-servers={_ETCD}",
            f"--etcd-cafile={pki / 'ca.crt'}",
            f"--etcd-certfile={pki / 'etcd-client.crt'}",
            f"--etcd-keyfile={pki / 'etcd-client.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--kubelet-certificate-authority={pki / 'ca.crt'}",
            f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={pki / 'ca.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
            f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki / 'sa.pub'}",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            "--authorization-mode=Node,RBAC",
            # On top of the defaults, which have LimitRanger, PodSecurity and ValidatingAdmissionPolicy.
            "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
            "--anonymous-auth=false",
            "--allow-privileged=true",
            *(auditing if audit else ()),
        ),
    )


def _kubeconfigs(path: Path) -> tuple[str, ...]:
    flags = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return tuple(f"--{flag}={path}" for flag in flags)
