"""What is read of a spec, its files and its pods before a server runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llamapool.api import parse_model
from llamapool.domain.facts_message import FetchedModel, to_message
from llamapool.foresight import asked_of, declared_memory, flags_of, need_of
from llamapool.manifests.arguments import arguments
from tests.unit.builders import GIB, MIB, model_body
from tests.unit.gguf.test_model_facts import SSM, WEIGHTS, facts, model

FILES = FetchedModel(sha256="ab" * 32, facts=facts(model("mamba2", SSM, tensors=WEIGHTS)))
STATUS: dict[str, Any] = json.loads(to_message(FILES))


def asked(**spec: Any) -> Any:
    return parse_model(model_body(**spec))


def pod(**resources: dict[str, str]) -> dict[str, Any]:
    containers = [{"name": "sidecar", "resources": {"limits": {"memory": "1Mi"}}}]
    return {"spec": {"containers": [*containers, {"name": "server", "resources": resources}]}}


def test_what_is_needed_follows_from_the_files_facts_and_the_flags() -> None:
    need = need_of(asked(server={"slots": 2, "contextSize": 4096}), STATUS)
    assert need.checkpoint_bytes == FILES.facts.state_bytes
    assert need.base_bytes is not None
    larger = need_of(asked(server={"slots": 8, "contextSize": 4096}), STATUS)
    assert (larger.base_bytes or 0) > need.base_bytes


def test_without_facts_it_will_be_measured() -> None:
    assert "was not read; what it needs will be measured" in need_of(asked(), None).unknown


def test_facts_that_somebody_edited_are_not_half_believed() -> None:
    assert "will be measured" in need_of(asked(), {**STATUS, "weights": 3}).unknown


def test_a_flag_that_llama_server_would_refuse_leaves_it_unknown() -> None:
    need = need_of(asked(server={"extraArgs": ["--cache-type-k", "q9"]}), STATUS)
    assert (need.base, need.checkpoint_bytes) == (None, None)
    assert "spec.server.extraArgs: '--cache-type-k q9' must be one of" in need.unknown


@pytest.mark.parametrize(
    ("resources", "layers", "offloaded"),
    [
        ({}, "all", 0),
        ({"limits": {"nvidia.com/gpu": "1"}}, "all", None),
        ({"limits": {"amd.com/gpu": "1"}}, 12, 12),
        ({"limits": {"gpu.intel.com/i915": "1"}}, "auto", None),
        ({"limits": {"nvidia.com/mig-3g.20gb": "1"}}, None, None),
        ({"limits": {"rdma/hca": "1"}}, "all", 0),
        ({"claims": [{"name": "gpu"}]}, None, None),
    ],
)
def test_layers_are_offloaded_only_where_the_pod_has_a_device(
    resources: dict[str, Any], layers: str | int | None, offloaded: int | None
) -> None:
    server = {} if layers is None else {"gpuLayers": layers}
    assert flags_of(asked(resources=resources, server=server)).context.gpu_layers == offloaded


def test_extra_arguments_count() -> None:
    flags = flags_of(asked(server={"slots": 2, "extraArgs": ["--ubatch-size", "128", "--load-mode", "none"]}))
    assert (flags.context.micro_batch_tokens, flags.context.mmap, flags.context.slots) == (128, False, 2)


def test_what_a_namespace_gives_as_default_is_read_from_the_pods() -> None:
    defaulted = pod(limits={"memory": "3Gi"}, requests={"memory": "512Mi"})
    bare = asked(resources={})
    assert declared_memory(bare, [defaulted], "limits") == 3 * GIB
    assert declared_memory(bare, [defaulted], "requests") == 512 * MIB


def test_before_there_is_a_pod_the_spec_counts() -> None:
    assert declared_memory(asked(resources={"limits": {"memory": "2G"}}), [], "limits") == 2 * 10**9
    assert declared_memory(asked(resources={}), [], "limits") is None


def test_the_smallest_of_pods_that_differ_counts() -> None:
    pods = [pod(limits={"memory": "3Gi"}), pod(limits={"memory": "2Gi"})]
    assert declared_memory(asked(), pods, "limits") == 2 * GIB


def test_an_embedding_model_is_started_without_a_prompt_cache() -> None:
    embedding = asked(server={"extraArgs": ["--embedding"]})
    words = arguments(embedding)
    assert words[words.index("--cache-ram") + 1] == "0"
    assert asked_of(embedding).embedding


def test_an_explicit_prompt_cache_stands_as_the_user_set_it() -> None:
    explicit = asked(server={"cacheRAM": "8Gi"})
    words = arguments(explicit)
    assert words[words.index("--cache-ram") + 1] == "8192"
    assert asked_of(explicit).cache_ram_bytes == 8 * GIB
