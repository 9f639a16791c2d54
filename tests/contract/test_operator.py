"""The schema and the operator read a HybridModel alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llamapool.api import parse_model
from llamapool.manifests.arguments import arguments, environment
from tests.contract.hybridmodels import MINIMAL, Refused, merged

if TYPE_CHECKING:
    from tests.contract.hybridmodels import HybridModels

# Everything that makes the operator set a flag or a variable.
SERVED: dict[str, Any] = merged(
    MINIMAL,
    {
        "spec": {
            "model": {
                "mmproj": {"source": {"image": {"path": "/models/mmproj.gguf"}}},
                "draft": {"source": {"image": {"path": "/models/draft.gguf"}}},
            },
            "server": {
                "contextSize": 4096,
                "slots": 2,
                "ctxCheckpoints": 8,
                "cacheRAM": "1Gi",
                "gpuLayers": "all",
                "idleSleepSeconds": 60,
                "apiKeySecretRef": {"name": "keys", "key": "api-key"},
            },
        }
    },
)


def test_the_defaults_of_the_schema_are_those_of_the_operator(hybridmodels: HybridModels) -> None:
    def read(spec: dict[str, Any]) -> Any:
        model = parse_model(merged(MINIMAL, {"spec": spec}))
        return (model.server, model.pool, model.idle_trim_seconds, model.alias, model.replicas)

    assert read(hybridmodels.would_store(MINIMAL)["spec"]) == read(dict(MINIMAL["spec"]))


def test_every_flag_that_the_operator_sets_is_refused_in_extra_args(hybridmodels: HybridModels) -> None:
    flags = [word for word in arguments(parse_model(SERVED)) if word.startswith("-")]
    with pytest.raises(Refused) as refusal:
        hybridmodels.would_store(merged(MINIMAL, {"spec": {"server": {"extraArgs": flags}}}))
    assert [field for field, _ in refusal.value.causes] == [
        f"spec.server.extraArgs[{index}]" for index in range(len(flags))
    ]


def test_every_variable_that_the_operator_sets_is_refused_in_env(hybridmodels: HybridModels) -> None:
    names = [variable["name"] for variable in environment(parse_model(SERVED))]
    variables = [{"name": name, "value": ""} for name in names]
    with pytest.raises(Refused) as refusal:
        hybridmodels.would_store(merged(MINIMAL, {"spec": {"server": {"env": variables}}}))
    assert [field for field, _ in refusal.value.causes] == [
        f"spec.server.env[{index}].name" for index in range(len(names))
    ]
