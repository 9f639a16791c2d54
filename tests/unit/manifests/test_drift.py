"""When a live object is taken to have all that is asked for."""

import copy
from typing import Any

import pytest

from llamapool.api import parse_model
from llamapool.manifests.deployment import deployment
from llamapool.manifests.drift import difference
from tests.unit.builders import model_body
from tests.unit.manifests.test_golden import CASES, IMAGES


def desired(name: str = "every-field") -> dict[str, Any]:
    return deployment(parse_model(model_body(**CASES[name])), IMAGES)


@pytest.mark.parametrize("name", CASES)
def test_an_object_does_not_differ_from_itself(name: str) -> None:
    assert difference(desired(name), desired(name)) is None


def test_what_only_the_live_object_has_is_no_difference() -> None:
    live = desired()
    live["status"] = {"replicas": 1}
    live["metadata"]["managedFields"] = []
    live["spec"]["template"]["spec"]["containers"].append({"name": "injected"})
    live["spec"]["template"]["spec"]["containers"][0]["terminationMessagePolicy"] = "File"
    assert difference(live, desired()) is None


@pytest.mark.parametrize(
    ("live", "wanted"), [("1Gi", "1024Mi"), ("4", 4), ("100m", "0.1"), ("1", "1000m"), ("2Gi", 2147483648)]
)
def test_quantities_are_compared_as_numbers(live: str, wanted: str | int) -> None:
    assert difference({"limits": {"memory": live}}, {"limits": {"memory": wanted}}) is None


def test_quantities_of_different_value_differ() -> None:
    assert difference({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1G"}}) == "limits.memory"


def test_an_empty_value_that_the_api_server_leaves_out_is_no_difference() -> None:
    assert difference({"env": [{"name": "A"}]}, {"env": [{"name": "A", "value": ""}]}) is None


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("spec", "replicas"), 5, "spec.replicas"),
        (("spec", "template", "spec", "priorityClassName"), None, "spec.template.spec.priorityClassName"),
        (("metadata", "labels"), {}, "metadata.labels.app.kubernetes.io/name"),
        (("metadata", "ownerReferences"), [], "metadata.ownerReferences[0]"),
    ],
)
def test_a_field_that_is_lacking_or_contradicted_is_named(
    path: tuple[str, ...], value: Any, where: str
) -> None:
    live = copy.deepcopy(desired())
    parent = live
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value
    assert difference(live, desired()) == where


def test_an_argument_that_was_added_is_a_difference() -> None:
    live = desired()
    live["spec"]["template"]["spec"]["containers"][0]["args"].append("--verbose")
    assert difference(live, desired()) == "spec.template.spec.containers[0].args"
