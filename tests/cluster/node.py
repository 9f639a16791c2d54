"""Starting a lab: everything in order, each step waited for, what runs already left alone."""

import json
import os
import subprocess
from pathlib import Path

from tests.cluster import (
    cache,
    certificates,
    cgroups,
    configuration,
    golang,
    images,
    kernel,
    namespaces,
    packages,
    processes,
    progress,
    runtime,
)
from tests.cluster.components import Component, components
from tests.cluster.errors import LabError
from tests.cluster.settings import API_SERVICE_ADDRESS, GPU_RESOURCE, PAUSE_IMAGE, Lab

_FRESH = ("config", "etcd", "kubelet", "log", "pki", "run")
"""Folders of the state that begin empty; containerd's image store and the volumes stay."""


def up(lab: Lab, *, gpus: int, audit: bool) -> None:
    """Brings the lab up from wherever it is; a lab that is up already is only checked.

    Raises:
        LabError: a step failed; the message says where to look.
    """
    packages.ensure()
    programs = golang.kube()
    golang.helm()
    with cache.lock(lab.state / "lock"):
        if not cgroups.processes(lab.identity):
            _prepare(lab)
        daemons = cgroups.create(lab.identity)
        namespaces.create(lab)
        _record(lab)
        for component in components(lab, programs, gpus=gpus, audit=audit):
            if component.name == "kubelet":
                runtime.load(lab, images.pause(), PAUSE_IMAGE)
                kernel.save()
            if component.name == "device-plugin":
                _wait_for_kubelet_socket(lab)
            _start(lab, component, daemons)
            if component.name == "kube-apiserver":
                _wait_for_api(lab)
            if component.name == "containerd":
                _wait_for_containerd(lab)
        _wait_for_node(lab, gpus)


def kubectl(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs kubectl as the administrator, in the lab's network."""
    command = [*namespaces.enter(lab, mounts=False), str(golang.kube() / "kubectl"), *arguments]
    environment = {"KUBECONFIG": str(lab.kubeconfig), "HOME": str(lab.state), "PATH": os.environ["PATH"]}
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def running(lab: Lab, component: str) -> processes.Process | None:
    """The process of a component, if it lives."""
    process = processes.read_pidfile(_pidfile(lab, component))
    return process if process and process.alive() else None


def is_ready(lab: Lab) -> bool:
    """Whether the node reports itself Ready."""
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    return kubectl(lab, "get", "node", lab.node_name, f"--output=jsonpath={path}").stdout == "True"


def _prepare(lab: Lab) -> None:
    namespaces.delete(lab)  # of a lab that died with its machine's processes; its folders are in the way
    for name in _FRESH:
        cache.remove(lab.state / name)
    for folder in (lab.log, lab.run):
        folder.mkdir(parents=True)
    lab.volumes.mkdir(parents=True, exist_ok=True)
    lab.volumes.chmod(0o1777)
    certificates.create(lab.pki, lab.node_name)
    configuration.write(lab, cgroup_v2=cgroups.is_v2(cgroups.hierarchies()))


def _record(lab: Lab) -> None:
    """Notes what `down` has to look for even when the namespaces' files are gone."""
    record = {"name": lab.name, "namespaces": sorted(namespaces.inodes(lab))}
    (lab.state / "lab.json").write_text(json.dumps(record))


def _start(lab: Lab, component: Component, daemons: Path) -> None:
    if running(lab, component.name):
        return
    log = lab.log / f"{component.name}.log"
    progress.say(f"starting {component.name} (log: {log})")
    try:
        processes.start(
            [*namespaces.enter(lab, mounts=True), *component.command],
            pidfile=_pidfile(lab, component.name),
            log=log,
            cgroup=daemons,
            # No proxy settings: there is no way out of the lab's network.
            environment={"PATH": os.environ["PATH"], "HOME": str(lab.state)},
        )
    except ProcessLookupError as error:
        raise LabError(str(error)) from error


def _pidfile(lab: Lab, component: str) -> Path:
    return lab.run / f"{component}.json"


def _wait(lab: Lab, what: str, component: str, condition: progress.Condition, timeout_seconds: float) -> None:
    """Waits for something that a component brings about, and no longer than that component lives."""
    log = lab.log / f"{component}.log"

    def holds() -> bool:
        if not running(lab, component):
            raise LabError(f"{what}: {component} has ended; {log} ends with\n{progress.tail(log, 15)}")
        return condition()

    progress.wait_until(what, holds, timeout_seconds, f"log: {log}")


def _wait_for_api(lab: Lab) -> None:
    ready = lambda: kubectl(lab, "get", "--raw=/readyz").stdout == "ok"  # noqa: E731
    _wait(lab, "the API server", "kube-apiserver", ready, 120)


def _wait_for_containerd(lab: Lab) -> None:
    # The kubelet gives up at once on a runtime that does not answer yet.
    _wait(lab, "containerd", "containerd", lambda: runtime.answers(lab), 60)


def _wait_for_kubelet_socket(lab: Lab) -> None:
    socket = lab.state / "kubelet" / "device-plugins" / "kubelet.sock"
    _wait(lab, "the kubelet's device plugin socket", "kubelet", socket.is_socket, 60)


def _wait_for_node(lab: Lab, gpus: int) -> None:
    _wait(lab, "the node to be Ready", "kubelet", lambda: is_ready(lab), 120)
    escaped = GPU_RESOURCE.replace(".", r"\.")
    path = f"{{.status.allocatable.{escaped}}}"

    def has_gpus() -> bool:
        return kubectl(lab, "get", "node", lab.node_name, f"--output=jsonpath={path}").stdout == str(gpus)

    _wait(lab, f"the node to offer {gpus} {GPU_RESOURCE}", "device-plugin", has_gpus, 60)

    def programmed() -> bool:
        rules = [*namespaces.enter(lab, mounts=True), "iptables-save", "-t", "nat"]
        saved = subprocess.run(rules, check=False, capture_output=True, text=True).stdout
        return f"-d {API_SERVICE_ADDRESS}/32" in saved

    _wait(lab, "kube-proxy to program the services", "kube-proxy", programmed, 60)

    def has_account() -> bool:
        return kubectl(lab, "get", "serviceaccount", "default").returncode == 0

    _wait(lab, "the default service account", "kube-controller-manager", has_account, 60)
