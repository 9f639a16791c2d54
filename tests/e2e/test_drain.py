"""A pod that has to go answers what is running first."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from tests.support.kubectl import Kubectl, until
from tests.support.models import Model, volume_folder
from tests.support.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = {"slots": 2, "contextSize": 16384}


def pod_gone(kubectl: Kubectl, name: str) -> Callable[[], bool]:
    return lambda: kubectl.find("pod", name) is None


def evict(kubectl: Kubectl, pod: dict[str, Any]) -> None:
    name = pod["metadata"]["name"]
    eviction = (
        '{"apiVersion":"policy/v1","kind":"Eviction",'
        f'"metadata":{{"name":"{name}","namespace":"{kubectl.namespace}"}}}}'
    )
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/eviction"
    kubectl("create", "--raw", path, "--filename", "-", stdin=eviction)


def tokens_of(model: Model, *, seconds: float) -> int:
    """About how many tokens the server makes in that time."""
    answer = model.chat("how fast are you?", max_tokens=64)
    return int(answer["timings"]["predicted_per_second"] * seconds)


def health(address: str) -> int:
    """Status of /health; 0 where nothing answers."""
    try:
        with urllib.request.urlopen(f"http://{address}:8080/health", timeout=5) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_an_evicted_pod_finishes_its_running_request_and_takes_no_new_one(
    create: Callable[..., Model],
) -> None:
    model = create(server=LONG)
    model.until_condition("Ready")
    pod = model.pod()
    address = pod["status"]["podIP"]
    tokens = min(tokens_of(model, seconds=25), 7000)
    stream = Stream(address, tokens=tokens)
    until("the first tokens", lambda: stream.chunks > 10)

    started = time.monotonic()
    evict(model.kubectl, pod)
    until("new requests are refused", lambda: health(address) == 503, timeout_seconds=20)
    assert not stream.finished
    assert not stream.error
    stream.wait(120)
    assert (stream.finished, stream.error) == (True, "")
    assert stream.tokens == tokens
    until("the pod gone", pod_gone(model.kubectl, pod["metadata"]["name"]), timeout_seconds=30)
    print(f"{stream.tokens} of {tokens} tokens; gone after {time.monotonic() - started:.1f} s")  # noqa: T201

    model.until_condition("Ready")
    assert model.pod()["metadata"]["uid"] != pod["metadata"]["uid"]
    assert model.chat("and now?")["usage"]["completion_tokens"] > 0


def test_a_pod_with_nothing_to_do_ends_in_seconds(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    pod = model.pod()
    started = time.monotonic()
    evict(model.kubectl, pod)
    until("the pod gone", pod_gone(model.kubectl, pod["metadata"]["name"]), timeout_seconds=60)
    assert time.monotonic() - started < 20


def test_a_server_that_sleeps_ends_in_seconds(create: Callable[..., Model]) -> None:
    model = create(server={"slots": 2, "contextSize": 2048, "idleSleepSeconds": 2})
    model.until_condition("Ready")
    pod = model.pod()

    def asleep() -> bool:
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8080/props", timeout=5) as answer:
            return bool(json.load(answer)["is_sleeping"])

    until("the server sleeps", asleep, timeout_seconds=30)
    started = time.monotonic()
    evict(model.kubectl, pod)
    until("the pod gone", pod_gone(model.kubectl, pod["metadata"]["name"]), timeout_seconds=60)
    assert time.monotonic() - started < 20


def test_a_pod_that_is_loading_ends_in_seconds(create: Callable[..., Model], kubectl: Kubectl) -> None:
    endless = volume_folder() / "models" / "endless.gguf"
    if not endless.exists():
        os.mkfifo(endless, 0o644)  # nobody writes into it, so reading it never ends
    # As a file in the image, which no init container looks at first.
    volume = {"name": "endless", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}}
    mount = {"name": "endless", "mountPath": "/endless", "readOnly": True}
    model = create(
        model={"source": {"image": {"path": f"/endless/{endless.name}"}}},
        podTemplate={
            "spec": {"containers": [{"name": "server", "volumeMounts": [mount]}], "volumes": [volume]}
        },
    )

    def loading() -> dict[str, Any] | None:
        for pod in kubectl.list("pods"):
            if any("running" in each["state"] for each in pod["status"].get("containerStatuses", [])):
                return pod
        return None

    pod = until("a server that loads", loading)
    time.sleep(2)
    started = time.monotonic()
    kubectl("delete", "hybridmodel", model.name)
    until("the pod gone", pod_gone(kubectl, pod["metadata"]["name"]), timeout_seconds=60)
    assert time.monotonic() - started < 30


def test_a_drain_is_held_up_neither_by_a_single_replica_nor_by_one_that_is_not_ready(
    create: Callable[..., Model], kubectl: Kubectl
) -> None:
    model = create()
    model.until_condition("Ready")
    budget = kubectl.get("poddisruptionbudget", model.name)
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    until(
        "one disruption allowed",
        lambda: kubectl.get("poddisruptionbudget", model.name)["status"].get("disruptionsAllowed") == 1,
        timeout_seconds=30,
    )
