"""Good manifests are accepted and come back whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.contract.crd import paths, schema
from tests.contract.hybridmodels import MINIMAL, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.contract.hybridmodels import HybridModels

GOOD = sorted((Path(__file__).parent / "good").glob("*.yaml"))


def manifest(path: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(path.read_text())
    return parsed


def given_paths(value: Any, node: Mapping[str, Any], path: str) -> Iterator[str]:
    """The fields of the schema that a manifest sets."""
    yield path
    if isinstance(value, dict):
        for name, child in value.items():
            if name in node.get("properties", {}):
                yield from given_paths(child, node["properties"][name], f"{path}.{name}")
            elif "additionalProperties" in node:
                yield from given_paths(child, node["additionalProperties"], f"{path}.*")
    elif isinstance(value, list):
        for child in value:
            yield from given_paths(child, node["items"], f"{path}[]")


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_manifest_is_stored_as_it_was_sent_but_for_defaults(
    hybridmodels: HybridModels, path: Path
) -> None:
    sent = manifest(path)
    stored = hybridmodels.would_store(sent)
    assert merged(stored["spec"], sent["spec"]) == stored["spec"]


def test_a_manifest_that_sets_everything_is_stored_unchanged(hybridmodels: HybridModels) -> None:
    sent = manifest(Path(__file__).parent / "good" / "everything.yaml")
    assert hybridmodels.would_store(sent)["spec"] == sent["spec"]


def test_the_good_manifests_set_every_field_of_the_schema() -> None:
    spec = schema()["properties"]["spec"]
    known = {path for path, _ in paths(spec, "spec")}
    given = {path for good in GOOD for path in given_paths(manifest(good)["spec"], spec, "spec")}
    # A projector and a draft model come from the same sources, by the same part of the schema.
    elsewhere = ("spec.model.mmproj.source.", "spec.model.draft.source.")
    assert {path for path in known - given if not path.startswith(elsewhere)} == set()


def test_every_field_a_person_sets_is_described() -> None:
    spec = schema()["properties"]["spec"]
    bare = {
        path
        for path, node in paths(spec, "spec")
        if "description" not in node and not path.endswith(("[]", "*")) and ".valueFrom." not in path
    }
    assert bare == set()


def test_omitted_fields_get_the_documented_defaults(hybridmodels: HybridModels) -> None:
    assert hybridmodels.would_store(MINIMAL)["spec"] == {
        "model": {"source": {"pvc": {"claimName": "models", "path": "tiny.gguf"}}},
        "server": {"pullPolicy": "IfNotPresent", "slots": 4},
        "pool": {"mode": "Auto", "limitPercent": 6.25, "idleTrimSeconds": 60},
        "tuning": {
            "memory": "Auto",
            "ttft": "Recommend",
            "cooldownSeconds": 300,
            "regressionPercent": 20,
            "trial": {"legs": 7, "legSeconds": 120, "minRequests": 30},
        },
        "replicas": 1,
    }


@pytest.mark.parametrize(
    "quantity",
    [
        "3060164198400m", "129e6", "128974848000m", "2e9", "1E", "1E3", ".5Gi", "0.5", "1G", "500M", "+1Gi",
        "0", 0, 1073741824,
    ],
)  # fmt: skip
def test_a_size_is_any_quantity_that_kubernetes_knows(
    hybridmodels: HybridModels, quantity: str | int
) -> None:
    fixed = merged(MINIMAL, {"spec": {"pool": {"mode": "Fixed", "cap": quantity}}})
    assert hybridmodels.would_store(fixed)["spec"]["pool"]["cap"] == quantity
