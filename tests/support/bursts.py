"""Memory outside the server's budget, for real: a memory-backed volume of its pod is filled in one burst."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.kubectl import until
from tests.support.operator import processes

if TYPE_CHECKING:
    from tests.support.models import Model

FOLDER = "/burst"
_FILE = "fill"

POD_TEMPLATE: dict[str, Any] = {
    "spec": {
        "volumes": [{"name": "burst", "emptyDir": {"medium": "Memory"}}],
        "containers": [{"name": "server", "volumeMounts": [{"name": "burst", "mountPath": FOLDER}]}],
    }
}
"""Overlay of a HybridModel whose pods have such a volume."""


def fill(model: Model, mebibytes: int) -> None:
    """Write so many MiB at once; the kernel may kill the server, and this command with it, on the way."""
    pod = model.pod()["metadata"]["name"]
    command = f"head -c {mebibytes}M /dev/zero >> {FOLDER}/{_FILE}"
    subprocess.run(
        [
            "kubectl",
            "--namespace",
            model.kubectl.namespace,
            "exec",
            pod,
            "-c",
            "server",
            "--",
            "sh",
            "-c",
            command,
        ],
        capture_output=True,
        timeout=60,
        check=False,  # it dies with its container
    )


def drain(model: Model, file: str = _FILE) -> None:
    """Remove what was written: it outlives the container, and would keep the next one from starting."""
    (_volume(model) / file).unlink(missing_ok=True)


def written(model: Model) -> dict[str, Any]:
    """limits.json as it is in the cluster."""
    return _of_configmap(model, "limits.json")


def record(model: Model) -> dict[str, Any]:
    """record.json as it is in the cluster."""
    return _of_configmap(model, "record.json")


def _of_configmap(model: Model, file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(model.kubectl.get("configmap", f"{model.name}-limits")["data"][file])
    return content


def provoke_kill(model: Model, mebibytes: int) -> dict[str, Any]:
    """Fill until the server is killed for memory; the kubelet's account of that, once it has one.

    The server is stopped while the memory is taken: where the burst is slower than a look of the server at
    its cgroup, its state gives way, and there is no kill. SIGKILL reaches a stopped process.
    """
    before = model.restarts()
    stopped = processes([model.pod()], "llama-server")
    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    fill(model, mebibytes)

    def ended() -> dict[str, Any] | None:
        (status,) = model.pod()["status"]["containerStatuses"]
        last: dict[str, Any] | None = status["state"].get("terminated") or (
            status.get("lastState") or {}
        ).get("terminated")
        return last if last and (status["restartCount"] > before or "terminated" in status["state"]) else None

    def gone() -> bool:
        return not any(Path(f"/proc/{process}").exists() for process in stopped)

    try:
        # Seen by the process, not by the API: the next server must not find the volume full.
        until("the server killed", gone, timeout_seconds=30, every_seconds=0.02)
    finally:
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
        drain(model)
    return until("the kubelet's account", ended, timeout_seconds=30, every_seconds=0.1)


def hold_state(model: Model, topic: str, *, turns: int) -> None:
    """One conversation; every turn of it leaves one more checkpoint."""
    messages: list[dict[str, str]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{topic}, question number {turn}"})
        answer = model.converse(messages, max_tokens=2)["choices"][0]["message"]["content"]
        messages.append({"role": "assistant", "content": answer})


def until_running(model: Model) -> None:
    """Wait until the server's container is ready again, whatever conditions say."""

    def ready() -> bool:
        (status,) = model.pod()["status"]["containerStatuses"]
        return bool(status["ready"])

    until("the server ready again", ready, timeout_seconds=90)


def _volume(model: Model) -> Path:
    """The volume as the kubelet, in the lab's mount namespace, sees it."""
    uid = model.pod()["metadata"]["uid"]
    volume = f"var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/burst"
    state = f"{os.environ['LLAMAPOOL_LAB_STATE']}/"  # another lab's may begin with the same letters
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it ended meanwhile
            continue
        if Path(command[0]).name == "kubelet" and any(state in word for word in command[1:]):
            folder = process / "root" / volume
            if not folder.is_dir():
                raise AssertionError(f"{folder} is not there: what was written is not removed")
            return folder
    raise AssertionError("no kubelet of this lab runs")
