"""What a person and an autoscaler see of a HybridModel: columns, status, scale."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.contract.hybridmodels import MINIMAL, merged
from tests.support.kubectl import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.kubectl import Kubectl

STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "replicas": 1,
    "selector": "llamapool.dev/model=shown",
    "conditions": [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "observedGeneration": 1,
        }
        for kind, status, reason in (("Ready", "True", "Serving"), ("MemoryFits", "False", "BudgetTooSmall"))
    ],
    "model": {"sha256": "9f86d081", "stateBytes": 156892160},
    "memory": {"limit": "2Gi", "limitBytes": 2147483648, "baseBytes": 512, "headroomBytes": 268435456},
    "pool": {"cap": "450Mi", "capBytes": 471859200, "heldBytes": 0, "hits": 12, "misses": 3},
    "ttft": {"p50": "0.21s", "p90": "0.42s", "p99": "≥ 600s"},
    "limits": {
        "written": {"generation": 7, "decision": "a1", "poolCapBytes": 471859200, "stateBudgetBytes": None},
        "acknowledged": True,
        "effective": {"poolCapBytes": 471859200},
        "pods": [{"name": "shown-1", "generation": 7}],
    },
    "trial": {"state": "Idle"},
    "decisions": [
        {
            "id": "a1",
            "time": "2026-01-02T03:04:05Z",
            "reason": "PoolCapChanged",
            "from": {"poolCapBytes": None},
            "to": {"poolCapBytes": 471859200},
            "evidence": {"limitBytes": 2147483648},
        }
    ],
}


def without_nulls(value: Any) -> Any:
    """The apiserver drops nulls that it has no nullable field for, as any client may."""
    if isinstance(value, dict):
        return {key: without_nulls(below) for key, below in value.items() if below is not None}
    if isinstance(value, list):
        return [without_nulls(below) for below in value]
    return value


@pytest.fixture
def shown(namespace: Kubectl) -> Iterator[Kubectl]:
    """A HybridModel ``shown`` with a status."""
    model = merged(MINIMAL, {"metadata": {"name": "shown"}, "spec": {"replicas": 1}})
    namespace("create", "--filename", "-", stdin=yaml.safe_dump(model))
    patch_status(namespace, STATUS)
    yield namespace
    namespace("delete", "hybridmodel", "shown")


def patch_status(kubectl: Kubectl, status: dict[str, Any]) -> None:
    kubectl(
        "patch", "hybridmodel", "shown", "--subresource", "status", "--type", "merge",
        "--patch", json.dumps({"status": status}),
    )  # fmt: skip


def test_kubectl_get_hm_shows_the_printer_columns(shown: Kubectl) -> None:
    header, row = shown("get", "hm", "shown").splitlines()
    assert header.split("   ") != [header]
    columns = ["NAME", "READY", "POOL CAP", "TTFT P90", "LIMIT", "FITS", "AGE"]
    starts = [header.index(column) for column in columns]
    assert starts == sorted(starts)
    cells = [row[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
    assert cells[:-1] == ["shown", "True", "450Mi", "0.42s", "2Gi", "False"]
    assert cells[-1].endswith("s")


def test_a_status_keeps_every_figure(shown: Kubectl) -> None:
    assert without_nulls(shown.get("hybridmodel", "shown")["status"]) == without_nulls(STATUS)


def test_a_patch_of_status_changes_no_spec(shown: Kubectl) -> None:
    shown(
        "patch", "hybridmodel", "shown", "--subresource", "status", "--type", "merge",
        "--patch", json.dumps({"spec": {"replicas": 5}}),
    )  # fmt: skip
    assert shown.get("hybridmodel", "shown")["spec"]["replicas"] == 1


def test_a_patch_of_spec_changes_no_status(shown: Kubectl) -> None:
    shown(
        "patch", "hybridmodel", "shown", "--type", "merge", "--patch", json.dumps({"status": {"replicas": 9}})
    )
    assert shown.get("hybridmodel", "shown")["status"]["replicas"] == 1


def test_kubectl_scale_sets_the_replicas(shown: Kubectl) -> None:
    shown("scale", "hybridmodel", "shown", "--replicas", "3")
    assert shown.get("hybridmodel", "shown")["spec"]["replicas"] == 3


def test_the_scale_subresource_gives_an_autoscaler_replicas_and_selector(shown: Kubectl) -> None:
    path = f"/apis/llamapool.dev/v1alpha1/namespaces/{shown.namespace}/hybridmodels/shown/scale"
    scale = json.loads(shown("get", "--raw", path))
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 1, "selector": "llamapool.dev/model=shown"}


def test_a_condition_with_another_status_than_the_three_is_refused(shown: Kubectl) -> None:
    with pytest.raises(CommandError, match=r'status\.conditions\[0\]\.status: Unsupported value: "Maybe"'):
        patch_status(shown, {"conditions": [STATUS["conditions"][0] | {"status": "Maybe"}]})


def test_more_than_20_decisions_are_refused(shown: Kubectl) -> None:
    decision = STATUS["decisions"][0]
    with pytest.raises(CommandError, match=r"status\.decisions: Too many: 21: must have at most 20 items"):
        patch_status(shown, {"decisions": [decision | {"id": str(number)} for number in range(21)]})


def test_hybridmodels_are_listed_with_kubectl_get_all(shown: Kubectl) -> None:
    assert "hybridmodel.llamapool.dev/shown" in shown("get", "all", "--output", "name").split()
