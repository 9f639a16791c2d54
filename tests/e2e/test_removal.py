"""What was made goes away with its HybridModel, and nothing hangs when the operator is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import chart
from tests.support.kubectl import Kubectl, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.models import Model

MADE = (
    "deployments",
    "replicasets",
    "services",
    "configmaps",
    "pods",
    "endpointslices",
    "poddisruptionbudgets",
)


def left_of(model: Model) -> list[str]:
    """Objects that carry the model's label, of every kind that the operator or Kubernetes made for it."""
    selector = f"llamapool.dev/model={model.name}"
    return [
        f"{kind}/{item['metadata']['name']}" for kind in MADE for item in model.kubectl.list(kind, selector)
    ]


def delete(model: Model) -> None:
    """``kubectl delete`` and wait until nothing that was made for the model is left."""
    model.kubectl("delete", "hybridmodel", model.name, "--wait", "--timeout", "30s")
    until("nothing left", lambda: not left_of(model), timeout_seconds=90)


@pytest.fixture
def without_operator(operator: Kubectl) -> Iterator[Callable[[], None]]:
    """Stop the operator; it is started again after the test."""

    def stop() -> None:
        operator("scale", "deployment/llamapool", "--replicas", "0")
        until("the operator's pod gone", lambda: not operator.list("pods"), timeout_seconds=60)

    yield stop
    operator("scale", "deployment/llamapool", "--replicas", "1")
    operator("rollout", "status", "deployment/llamapool", "--timeout", "2m")


def test_a_hybridmodel_carries_no_finalizer(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    for kind in ("hybridmodel", "deployment", "service"):
        assert "finalizers" not in model.kubectl.get(kind, model.name)["metadata"]


def test_deleting_a_model_removes_everything_it_made(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    made = {entry.split("/")[0] for entry in left_of(model)}
    assert made == set(MADE)
    delete(model)


def test_deleting_a_model_while_the_operator_is_gone_removes_everything_it_made(
    create: Callable[..., Model], without_operator: Callable[[], None]
) -> None:
    model = create()
    model.until_condition("Ready")
    without_operator()
    delete(model)


def test_uninstalling_keeps_models_serving_and_reinstalling_adopts_them(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    pod = model.pod()["metadata"]["uid"]
    try:
        chart.uninstall()
        assert model.chat("still there?")["usage"]["completion_tokens"] > 0
    finally:
        chart.install()
    model.until_condition("LimitsApplied")
    assert model.pod()["metadata"]["uid"] == pod
    assert model.restarts() == 0


def test_a_model_can_be_deleted_while_the_chart_is_uninstalled(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    try:
        chart.uninstall()
        delete(model)
    finally:
        chart.install()
