"""A second lab beside whatever runs: a real node that does what real nodes do, and goes without a trace."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster import buildah, daemons
from tests.cluster.settings import Lab
from tests.lab import machine


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = machine.lab("lifecycle")
    machine.succeed(lab, "down")
    machine.succeed(lab, "up")
    machine.succeed(lab, "add-image", str(buildah.base_image()))
    yield lab
    machine.succeed(lab, "down")


@pytest.fixture
def start_pod(lab: Lab, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Starts a pod of one container that runs a shell script; its name is returned."""

    def start(script: str, **container: Any) -> str:
        name = str(request.node.name).removeprefix("test_").replace("_", "-")[:63].rstrip("-")
        machine.kubectl(
            lab,
            "run",
            name,
            f"--overrides={json.dumps(_pod(name, script, container))}",
            f"--image={buildah.BASE_REFERENCE}",
        )
        request.addfinalizer(lambda: machine.kubectl(lab, "delete", "pod", name, "--now", "--wait=false"))
        return name

    return start


def _pod(name: str, script: str, container: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": name,
                    "image": buildah.BASE_REFERENCE,
                    "imagePullPolicy": "Never",
                    "command": ["bash", "-c", script],
                    "volumeMounts": [{"name": "program", "mountPath": "/usr/bin/kubectl"}],
                    **container,
                }
            ],
            "volumes": [
                {"name": "program", "hostPath": {"path": str(machine.kubectl_program()), "type": "File"}},
            ],
        },
    }


def _container_status(lab: Lab, pod: str) -> dict[str, Any]:
    statuses = machine.get_pod(lab, pod)["status"].get("containerStatuses", [{}])
    status: dict[str, Any] = statuses[0]
    return status


def _wait_for(holds: Callable[[], bool], seen: Callable[[], object], timeout_seconds: float = 30) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not holds():
        assert time.monotonic() < deadline, seen()
        time.sleep(0.2)


def test_the_node_is_ready_and_every_component_up(lab: Lab) -> None:
    assert machine.succeed(lab, "status").rstrip().endswith("Ready")


def test_a_command_gets_its_input_output_and_exit_code_passed_through(lab: Lab) -> None:
    result = machine.run(lab, "exec", "--command", "echo out; echo err >&2; exit 7")
    assert (result.returncode, result.stdout, result.stderr) == (7, "out\n", "err\n")


def test_a_pod_reaches_the_api_by_its_service_account(lab: Lab, start_pod: Callable[..., str]) -> None:
    pod = start_pod("kubectl auth whoami --output=jsonpath={.status.userInfo.username} && echo; sleep 60")
    _wait_for(
        lambda: machine.run(lab, "exec", "--", "kubectl", "logs", pod).stdout != "",
        lambda: machine.get_pod(lab, pod)["status"],
    )
    assert machine.kubectl(lab, "logs", pod) == "system:serviceaccount:default:default\n"
    assert machine.get_pod(lab, pod)["status"]["phase"] == "Running"


def test_a_container_over_its_limit_is_oom_killed_and_restarted(
    lab: Lab, start_pod: Callable[..., str]
) -> None:
    pod = start_pod("tail /dev/zero", resources={"limits": {"memory": "32Mi"}})
    _wait_for(
        lambda: _container_status(lab, pod).get("restartCount", 0) > 0,
        lambda: machine.get_pod(lab, pod)["status"],
    )
    killed = _container_status(lab, pod)["lastState"]["terminated"]
    assert (killed["reason"], killed["exitCode"]) == ("OOMKilled", 137)


def test_memory_is_resized_in_place_without_a_restart(lab: Lab, start_pod: Callable[..., str]) -> None:
    read = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes || cat /sys/fs/cgroup/memory.max"
    pod = start_pod("sleep 60", resources={"limits": {"memory": "64Mi"}})
    _wait_for(
        lambda: "running" in _container_status(lab, pod).get("state", {}), lambda: machine.get_pod(lab, pod)
    )
    resources = {"limits": {"memory": "128Mi"}, "requests": {"memory": "128Mi"}}
    patch = {"spec": {"containers": [{"name": pod, "resources": resources}]}}
    machine.kubectl(lab, "patch", "pod", pod, "--subresource=resize", f"--patch={json.dumps(patch)}")
    _wait_for(
        lambda: _container_status(lab, pod)["resources"]["limits"]["memory"] == "128Mi",
        lambda: machine.get_pod(lab, pod)["status"],
    )
    assert machine.kubectl(lab, "exec", pod, "--", "sh", "-c", read).strip() == str(128 << 20)
    assert _container_status(lab, pod)["restartCount"] == 0


def test_gpus_are_offered_again_after_the_kubelet_was_killed(lab: Lab) -> None:
    kubelet = daemons.running(lab, "kubelet")
    assert kubelet is not None
    os.kill(kubelet.pid, signal.SIGKILL)
    _wait_for(lambda: daemons.running(lab, "kubelet") is None, lambda: kubelet)
    assert machine.run(lab, "status").returncode == 1
    machine.succeed(lab, "up")
    gpus = r"--output=jsonpath={.status.allocatable.nvidia\.com/gpu}"
    assert machine.kubectl(lab, "get", "node", lab.node_name, gpus) == "4"


def test_down_leaves_nothing_behind_even_of_components_that_were_killed() -> None:
    lab = machine.lab("lifecycle-b")
    machine.succeed(lab, "up")
    namespace = lab.network_namespace.stat().st_ino
    machine.succeed(lab, "add-image", str(buildah.base_image()))
    try:
        overrides = json.dumps(_pod("pod", "sleep 1000", {}))
        machine.kubectl(lab, "run", "pod", f"--image={buildah.BASE_REFERENCE}", f"--overrides={overrides}")
        machine.kubectl(lab, "wait", "pod", "pod", "--for=condition=Ready", "--timeout=60s")
        assert any("sleep 1000" in line for line in machine.processes(lab, namespace))
        assert machine.mounts(lab)
        assert machine.cgroups(lab)
        for component in ("containerd", "kubelet", "kube-apiserver"):
            process = daemons.running(lab, component)
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
    finally:
        result = machine.run(lab, "down")
    assert result.returncode == 0, result.stderr
    assert machine.processes(lab, namespace) == []
    assert machine.mounts(lab) == []
    assert machine.cgroups(lab) == []
    assert machine.network_namespaces(lab) == []


def test_down_names_a_process_of_somebody_else_in_the_lab_and_lets_it_live() -> None:
    lab = machine.lab("lifecycle-c")
    machine.succeed(lab, "up")
    with subprocess.Popen(["nsenter", f"--net={lab.network_namespace}", "sleep", "60"]) as other:
        first = machine.run(lab, "down")
        survived = other.poll() is None
        other.kill()
    second = machine.run(lab, "down")
    assert first.returncode == 1
    assert f"process {other.pid}: sleep 60" in first.stderr
    assert survived
    assert second.returncode == 0, second.stderr
    assert machine.network_namespaces(lab) == []


def test_down_of_a_lab_that_is_not_up_succeeds() -> None:
    assert machine.run(machine.lab("never-up"), "down").returncode == 0
