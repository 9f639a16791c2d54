"""Starting a lab: everything in order, each step waited for, what runs already left alone."""

from tests.cluster import (
    cache,
    certificates,
    cgroups,
    client,
    configuration,
    daemons,
    golang,
    images,
    kernel,
    namespaces,
    packages,
    readiness,
    runtime,
)
from tests.cluster.components import COMPONENTS, components
from tests.cluster.settings import PAUSE_IMAGE, Lab

_FRESH = ("config", "etcd", "kubectl-cache", "kubelet", "log", "pki", "run")
"""Folders of the state that begin empty; containerd's image store and the volumes stay."""


def up(lab: Lab, *, gpus: int, audit: bool) -> None:
    """Brings the lab up from wherever it is; a lab that is up already is only checked.

    Raises:
        LabError: a step failed; the message says where to look.
    """
    packages.ensure()
    programs = golang.kube()
    golang.helm()
    pause = images.pause()
    with cache.lock(lab.state / "lock"):
        if not any(daemons.running(lab, component) for component in COMPONENTS):
            _prepare(lab)
        cgroup = cgroups.create(lab.identity, cgroups.hierarchies())
        namespaces.create_network(lab)
        kernel.save()
        kubelet_started = False
        for component in components(lab, programs, gpus=gpus, audit=audit):
            if component.name == "device-plugin" and (kubelet_started or client.gpus(lab) != gpus):
                # It is registered with a kubelet that is no more, or serves another number.
                daemons.stop(lab, component.name, grace_seconds=5)
            started = daemons.start(lab, component, cgroup)
            kubelet_started |= component.name == "kubelet" and started
            readiness.wait_for_component(lab, component.name)
            if component.name == "containerd":
                runtime.load(lab, pause, PAUSE_IMAGE)
        readiness.wait_for_node(lab, gpus)


def _prepare(lab: Lab) -> None:
    """Begins anew; what is left of pods whose node is gone cannot be taken over."""
    cgroups.kill(lab.identity, timeout_seconds=30)
    namespaces.delete(lab)
    for name in _FRESH:
        cache.remove(lab.state / name)
    for folder in (lab.log, lab.run):
        folder.mkdir(parents=True)
    lab.volumes.mkdir(parents=True, exist_ok=True)
    lab.volumes.chmod(0o1777)
    certificates.create(lab.pki, lab.node_name)
    configuration.write(lab, cgroup_v2=cgroups.is_v2(cgroups.hierarchies()))
