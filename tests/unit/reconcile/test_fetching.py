"""The files of a model are fetched: its claim, its condition, its facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llamapool.api import parse_model

if TYPE_CHECKING:
    from tests.unit.reconcile.world import World

HTTP = {"source": {"http": {"urls": ["https://example.org/m.gguf"]}}}
CLAIM = ("PersistentVolumeClaim", "models", "tiny-cache")


def report(world: World, state: dict[str, Any]) -> None:
    """The kubelet reports the init container of the pod, and that the server does not run yet."""
    world.start_pod()
    world.pod["status"] = {"initContainerStatuses": [{"name": "fetch", "state": state}]}
    world.look()


def facts(world: World, **others: Any) -> dict[str, Any]:
    spec = parse_model(world.model).files.digest
    return {"v": 1, "spec": spec, "sha256": "ab" * 32, "architecture": "mamba2", **others}


def ended(code: int, message: dict[str, Any]) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": json.dumps(message)}}


def test_a_claim_is_made_that_outlives_the_model(world: World) -> None:
    world.set_model(model={**HTTP, "cache": {"size": "40Gi"}})
    world.look()
    claim = world.cluster.objects[CLAIM]
    assert claim["spec"]["resources"]["requests"]["storage"] == "40Gi"
    assert "ownerReferences" not in claim["metadata"]


def test_a_claim_that_is_not_to_be_retained_goes_with_its_model(world: World) -> None:
    world.set_model(model={**HTTP, "cache": {"size": "40Gi", "retain": False}})
    world.look()
    (owner,) = world.cluster.objects[CLAIM]["metadata"]["ownerReferences"]
    assert owner["name"] == "tiny"


def test_a_claim_that_an_earlier_model_of_the_name_left_is_taken(world: World) -> None:
    world.set_model(model={**HTTP, "cache": {"size": "40Gi"}})
    world.look()
    world.model["metadata"]["uid"] = "another"
    for key in [
        key for key in world.cluster.objects if key[0] not in ("HybridModel", "PersistentVolumeClaim")
    ]:
        del world.cluster.objects[key]
    world.look()
    assert world.condition("Ready") == ("False", "Starting")


def test_a_claim_of_somebody_else_is_left_alone(world: World) -> None:
    theirs = {"kind": CLAIM[0], "metadata": {"name": CLAIM[2], "namespace": CLAIM[1]}, "spec": {}}
    world.cluster.objects[CLAIM] = theirs
    world.set_model(model={**HTTP, "cache": {"size": "40Gi"}})
    world.look()
    assert world.condition("Ready") == ("False", "NameTaken")
    assert world.cluster.objects[CLAIM] is theirs


def test_while_files_are_fetched_ready_says_so_and_where_progress_is(world: World) -> None:
    world.set_model(model=HTTP)
    report(world, {"running": {}})
    assert world.condition("Ready") == ("False", "Fetching")
    assert "kubectl logs tiny-1 --container fetch" in world.status["conditions"][0]["message"]


def test_a_fetch_that_failed_is_told_with_its_cause(world: World) -> None:
    world.set_model(model=HTTP)
    report(world, ended(1, {"v": 1, "error": "it answers 404"}))
    assert world.condition("Ready") == ("False", "FetchFailed")
    assert "it answers 404" in world.status["conditions"][0]["message"]


def test_the_facts_stay_in_status_when_the_pod_is_gone(world: World) -> None:
    world.set_model(model=HTTP)
    report(world, ended(0, facts(world)))
    assert world.status["model"]["architecture"] == "mamba2"
    del world.cluster.objects["Pod", "models", "tiny-1"]
    world.look()
    assert world.status["model"]["sha256"] == "ab" * 32


def test_the_facts_of_a_model_that_is_no_longer_asked_for_are_dropped(world: World) -> None:
    world.set_model(model=HTTP)
    report(world, ended(0, facts(world)))
    world.set_model(model={"source": {"http": {"urls": ["https://example.org/other.gguf"]}}})
    world.look()
    assert "model" not in world.status
