"""Bad manifests are refused by one error that names the field, the value and what is right.

A case of bad/*.yaml is a JSON merge patch on the minimal manifest, and the error that it must get.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.contract.crd import schema
from tests.contract.hybridmodels import MINIMAL, Refused, merged

if TYPE_CHECKING:
    from tests.contract.hybridmodels import HybridModels

CASES: list[dict[str, Any]] = [
    case | {"file": path.stem}
    for path in sorted((Path(__file__).parent / "bad").glob("*.yaml"))
    for case in yaml.safe_load(path.read_text())
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}: {case['what']}")
def test_a_bad_manifest_is_refused_with_what_is_wrong_and_what_is_right(
    hybridmodels: HybridModels, case: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as refusal:
        hybridmodels.would_store(merged(MINIMAL, case["patch"]))
    assert refusal.value.causes[0] == (case["field"], case["message"])
    # The apiserver checks the replicas twice, the second time as ".spec.replicas".
    assert {field.lstrip(".") for field, _ in refusal.value.causes} == {case["field"]}


def test_a_field_that_does_not_exist_is_refused_by_name(hybridmodels: HybridModels) -> None:
    with pytest.raises(Refused, match=r'unknown field "spec\.pool\.capacity"'):
        hybridmodels.would_store(merged(MINIMAL, {"spec": {"pool": {"capacity": "1Gi"}}}))


def test_every_owned_flag_of_the_schema_is_refused(hybridmodels: HybridModels) -> None:
    arguments = schema()["properties"]["spec"]["properties"]["server"]["properties"]["extraArgs"]["items"]
    flags = [
        flag
        for rule in arguments["x-kubernetes-validations"]
        if rule["rule"].startswith("!self.matches('^(")
        for flag in rule["rule"].removeprefix("!self.matches('^(").partition(")")[0].split("|")
    ]
    assert "--cache-ram" in flags
    with pytest.raises(Refused) as refusal:
        hybridmodels.would_store(merged(MINIMAL, {"spec": {"server": {"extraArgs": flags}}}))
    assert [field for field, _ in refusal.value.causes] == [
        f"spec.server.extraArgs[{index}]" for index in range(len(flags))
    ]
