"""Questions to the lab's API, asked as its administrator with kubectl."""

import datetime as dt
import json
import os
import subprocess
from typing import Any

from tests.cluster import golang, namespaces
from tests.cluster.settings import GPU_RESOURCE, Lab


def kubectl(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs kubectl in the lab's network; an exit code other than 0 is not raised."""
    command = [*namespaces.enter_network(lab), str(golang.kube() / "kubectl"), *arguments]
    environment = {
        "KUBECONFIG": str(lab.kubeconfig),
        "KUBECACHEDIR": str(lab.kubectl_cache),
        "HOME": str(lab.state),
        "PATH": os.environ["PATH"],
    }
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def succeeds(lab: Lab, *arguments: str) -> bool:
    """Whether kubectl exits with 0."""
    return kubectl(lab, *arguments).returncode == 0


def ready_since(lab: Lab, since: dt.datetime) -> bool:
    """Whether the node reports itself Ready, in a report no older than that."""
    for condition in _node_status(lab).get("conditions", ()):
        if condition["type"] == "Ready":
            reported = dt.datetime.fromisoformat(condition["lastHeartbeatTime"])
            return bool(condition["status"] == "True" and reported >= since)
    return False


def gpus(lab: Lab) -> int | None:
    """How many GPUs the node offers to pods, None if it has not said so."""
    offered = _node_status(lab).get("allocatable", {}).get(GPU_RESOURCE)
    return None if offered is None else int(offered)


def _node_status(lab: Lab) -> dict[str, Any]:
    answer = kubectl(lab, "get", "node", lab.node_name, "--output=json")
    status: dict[str, Any] = json.loads(answer.stdout)["status"] if answer.returncode == 0 else {}
    return status
