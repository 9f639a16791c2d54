"""A HybridModel is read once, and what cannot be used is named."""

from typing import Any

import pytest

from llamapool.api import parse_model
from llamapool.domain.conditions import PoolMode, TuningMode
from llamapool.domain.tuning import TrialPolicy, Tuning
from llamapool.errors import InvalidFieldError, UnsupportedFieldError
from llamapool.sources import ImageSource, PvcSource
from tests.unit.builders import MIB, model_body


def refusal(**spec: Any) -> InvalidFieldError:
    with pytest.raises(InvalidFieldError) as raised:
        parse_model(model_body(**spec))
    return raised.value


def test_a_model_without_optional_fields_has_the_documented_defaults() -> None:
    body = model_body()
    body["spec"] = {"model": body["spec"]["model"]}
    model = parse_model(body)
    assert (model.alias, model.server.slots, model.replicas, model.idle_trim_seconds) == ("tiny", 4, 1, 60)
    assert (model.pool.mode, float(model.pool.limit_percent), model.pool.slots) == (PoolMode.AUTO, 6.25, 4)
    assert model.server.pull_policy == "IfNotPresent"


def test_a_claim_and_a_path_in_the_image_are_sources() -> None:
    assert parse_model(model_body()).files.model.source == PvcSource(claim_name="models", path="tiny.gguf")
    image = {"source": {"image": {"path": "/models/tiny.gguf"}}}
    assert parse_model(model_body(model=image)).files.model.source == ImageSource(path="/models/tiny.gguf")


def test_a_checksum_that_nothing_would_verify_is_refused_rather_than_ignored() -> None:
    error = refusal(model={"source": {"image": {"path": "/m.gguf"}}, "sha256": "0" * 64})
    assert isinstance(error, UnsupportedFieldError)
    assert error.field == "spec.model.sha256"


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({}, "spec.model.source"),
        ({"pvc": {"claimName": "a", "path": "b"}, "image": {"path": "/c"}}, "spec.model.source"),
        ({"pvc": {"claimName": "a", "path": "/b"}}, "spec.model.source.pvc.path"),
        ({"pvc": {"claimName": "a", "path": "../b"}}, "spec.model.source.pvc.path"),
        ({"pvc": {"path": "b"}}, "spec.model.source.pvc.claimName"),
        ({"image": {"path": "m.gguf"}}, "spec.model.source.image.path"),
    ],
)
def test_a_source_that_cannot_be_used_is_named(source: dict[str, Any], field: str) -> None:
    assert refusal(model={"source": source}).field == field


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ("--cache-ram", "spec.server.cacheRAM"),
        ("-cram", "spec.server.cacheRAM"),
        ("--ctx-checkpoints", "spec.server.ctxCheckpoints"),
        ("--swa_checkpoints", "spec.server.ctxCheckpoints"),
        ("--parallel=8", "spec.server.slots"),
        ("-np", "spec.server.slots"),
        ("-c", "spec.server.contextSize"),
        ("-ngl", "spec.server.gpuLayers"),
        ("--model", "spec.model.source"),
        ("--api-key", "spec.server.apiKeySecretRef"),
        ("--port", "remove it"),
        ("--metrics", "remove it"),
        ("--models-dir", "router"),
    ],
)
def test_a_flag_of_the_operator_is_refused_with_what_to_set_instead(argument: str, instead: str) -> None:
    error = refusal(server={"extraArgs": ["--flash-attn", "on", argument]})
    assert error.field == "spec.server.extraArgs[2]"
    assert instead in str(error)


def test_flags_that_the_operator_does_not_own_are_passed_on() -> None:
    given = ["--flash-attn", "on", "--threads", "8", "--cache-type-k", "q8_0", "--no-mmap"]
    assert parse_model(model_body(server={"extraArgs": given})).server.extra_args == tuple(given)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("LLAMA_ARG_N_PARALLEL", "spec.server"),
        ("LLAMAPOOL_POOL_CAP_BYTES", "spec.pool"),
        ("LLAMA_API_KEY", "spec.server.apiKeySecretRef"),
        ("HF_TOKEN", "spec.model.source.huggingFace"),
    ],
)
def test_a_variable_of_the_operator_is_refused_with_what_to_set_instead(name: str, instead: str) -> None:
    error = refusal(server={"env": [{"name": "GGML_X", "value": "1"}, {"name": name, "value": "1"}]})
    assert error.field == "spec.server.env[1].name"
    assert instead in str(error)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resources": {"limits": {"memory": "1GiB"}}}, "spec.resources.limits.memory"),
        ({"resources": {"requests": {"memory": "-1"}}}, "spec.resources.requests.memory"),
        ({"server": {"cacheRAM": "1.5 Gi"}}, "spec.server.cacheRAM"),
        ({"pool": {"mode": "Fixed", "cap": "1GiB"}}, "spec.pool.cap"),
        ({"pool": {"mode": "Fixed"}}, "spec.pool.cap"),
        ({"pool": {"mode": "Auto", "cap": "1Gi"}}, "spec.pool.cap"),
        ({"pool": {"mode": "auto"}}, "spec.pool.mode"),
        ({"pool": {"limitPercent": 0}}, "spec.pool.limitPercent"),
        ({"pool": {"limitPercent": "10"}}, "spec.pool.limitPercent"),
        ({"server": {"slots": 0}}, "spec.server.slots"),
        ({"server": {"slots": True}}, "spec.server.slots"),
        ({"server": {"gpuLayers": "most"}}, "spec.server.gpuLayers"),
        ({"server": {"extraArgs": [8]}}, "spec.server.extraArgs[0]"),
        ({"server": {"extraArgs": "--x"}}, "spec.server.extraArgs"),
        ({"server": "x"}, "spec.server"),
        ({"replicas": -1}, "spec.replicas"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(spec: dict[str, Any], field: str) -> None:
    assert refusal(**spec).field == field


@pytest.mark.parametrize(
    ("template", "field"),
    [
        (
            {"metadata": {"labels": {"llamapool.dev/model": "x"}}},
            "spec.podTemplate.metadata.labels.llamapool.dev/model",
        ),
        (
            {"spec": {"containers": [{"name": "server", "args": ["-c"]}]}},
            "spec.podTemplate.spec.containers[0].args",
        ),
        (
            {"spec": {"containers": [{"name": "server", "resources": {"limits": {}, "requests": {}}}]}},
            "spec.podTemplate.spec.containers[0].resources",
        ),
    ],
)
def test_an_overlay_that_would_change_what_is_planned_is_refused(
    template: dict[str, Any], field: str
) -> None:
    assert refusal(podTemplate=template).field == field


def test_sizes_and_layers_are_read_as_numbers_or_words() -> None:
    server = parse_model(model_body(server={"cacheRAM": "1Gi", "gpuLayers": 20})).server
    assert (server.cache_ram_bytes, server.gpu_layers) == (1024 * MIB, "20")
    assert parse_model(model_body(server={"gpuLayers": "all"})).server.gpu_layers == "all"


def test_a_shape_changes_with_model_and_flags_and_with_nothing_else() -> None:
    shape = parse_model(model_body()).shape
    assert parse_model(model_body(replicas=3, resources={"limits": {"memory": "4Gi"}})).shape == shape
    assert parse_model(model_body(server={"slots": 8})).shape != shape
    assert parse_model(model_body(model={"source": {"image": {"path": "/other.gguf"}}})).shape != shape


def test_tuning_that_is_left_out_is_the_documented_default() -> None:
    assert parse_model(model_body()).tuning == Tuning()


def test_every_field_of_tuning_is_read() -> None:
    given = {
        "memory": "Recommend",
        "ttft": "Auto",
        "cooldownSeconds": 60,
        "targetP90Seconds": 2.5,
        "regressionPercent": 50,
        "trial": {"legs": 9, "legSeconds": 30, "minRequests": 10},
    }
    assert parse_model(model_body(tuning=given)).tuning == Tuning(
        memory=TuningMode.RECOMMEND,
        ttft=TuningMode.AUTO,
        cooldown_seconds=60,
        target_p90_seconds=2.5,
        regression_percent=50,
        trial=TrialPolicy(legs=9, leg_seconds=30, min_requests=10),
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"memory": "On"}, "spec.tuning.memory"),
        ({"cooldownSeconds": -1}, "spec.tuning.cooldownSeconds"),
        ({"targetP90Seconds": 0}, "spec.tuning.targetP90Seconds"),
        ({"regressionPercent": True}, "spec.tuning.regressionPercent"),
        ({"trial": {"legs": 3}}, "spec.tuning.trial.legs"),
    ],
)
def test_a_bad_field_of_tuning_is_an_error_that_names_it(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidFieldError, match=field):
        parse_model(model_body(tuning=given))
