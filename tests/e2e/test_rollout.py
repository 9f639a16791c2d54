"""Pods are replaced one for one, with everything that was asked for, and by nobody else's wish."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.kubectl import Kubectl, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.models import Model

ALL_GPUS = {"limits": {"memory": "1Gi", "nvidia.com/gpu": 4}, "requests": {"cpu": "100m", "memory": "256Mi"}}


@pytest.fixture
def tainted(kubectl: Kubectl) -> Iterator[None]:
    """The node takes only pods that tolerate `dedicated=models`."""
    kubectl("taint", "node", "--all", "dedicated=models:NoSchedule", "--overwrite")
    yield
    kubectl("taint", "node", "--all", "dedicated=models:NoSchedule-")


def change_context(model: Model, tokens: int) -> None:
    patch = json.dumps({"spec": {"server": {"contextSize": tokens}}})
    model.kubectl("patch", "hm", model.name, "--type", "merge", "--patch", patch)


def flag_of(pod: dict[str, object], flag: str) -> str:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    arguments: list[str] = spec["containers"][0]["args"]
    return arguments[arguments.index(flag) + 1]


def test_a_model_that_holds_every_gpu_of_the_node_rolls_without_a_deadlock(
    create: Callable[..., Model], tainted: None
) -> None:
    del tainted
    toleration = {"key": "dedicated", "operator": "Equal", "value": "models", "effect": "NoSchedule"}
    model = create(resources=ALL_GPUS, podTemplate={"spec": {"tolerations": [toleration]}})
    model.until_condition("Ready")
    before = model.pod()["metadata"]["uid"]
    change_context(model, 4096)

    def rolled() -> dict[str, object] | None:
        pods = model.kubectl.list("pods")
        fresh = [pod for pod in pods if pod["metadata"]["uid"] != before]
        return fresh[0] if len(pods) == 1 and fresh else None

    pod = until("the one pod replaced", rolled, timeout_seconds=120)
    model.until_condition("Ready")
    assert flag_of(pod, "--ctx-size") == "4096"
    assert toleration in model.pod()["spec"]["tolerations"]


def test_an_image_of_the_model_s_own_reaches_its_pod(create: Callable[..., Model]) -> None:
    image = "docker.io/llamapool/another-server:1"
    model = create(server={"image": image, "pullPolicy": "Never"})
    condition = model.until_condition("Ready", "False")
    assert model.pod()["spec"]["containers"][0]["image"] == image

    def said() -> bool:
        seen = model.condition("Ready") or condition
        return "ErrImageNeverPull" in seen["message"]

    until("the condition says why", said, timeout_seconds=60)


def test_what_others_set_on_a_deployment_stays(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    model.kubectl("annotate", "deployment", model.name, "example.org/owner=search")
    change_context(model, 4096)
    model.until_condition("Ready")
    assert (
        model.kubectl.get("deployment", model.name)["metadata"]["annotations"]["example.org/owner"]
        == "search"
    )


def test_the_operator_leaves_no_marks_of_its_framework_on_a_model(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    found = model.kubectl.get("hybridmodel", model.name)
    assert "finalizers" not in found["metadata"]
    annotations = found["metadata"].get("annotations", {})
    assert [name for name in annotations if name != "kubectl.kubernetes.io/last-applied-configuration"] == []
    assert "kopf" not in json.dumps(found["status"])


def test_a_paused_model_is_left_as_it_is_until_it_is_no_longer_paused(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    model.kubectl("annotate", "hm", model.name, "llamapool.dev/paused=true")
    until("the status says so", lambda: model.status().get("paused"))
    before = model.pod()
    change_context(model, 4096)
    observed = model.kubectl.get("hm", model.name)["metadata"]["generation"]
    until("the change was seen", lambda: model.status()["observedGeneration"] == observed)
    assert model.pod()["metadata"]["uid"] == before["metadata"]["uid"]
    model.kubectl("annotate", "hm", model.name, "llamapool.dev/paused-")
    model.another_pod(before, timeout_seconds=60)
    model.until_condition("Ready")
