"""Which flags of a server matter to its memory, and how."""

from __future__ import annotations

import pytest

from llamapool.domain.context import ContextFlags
from llamapool.domain.server_flags import gpu_layers, read_flags
from llamapool.errors import InvalidFieldError


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ("--ubatch-size 256", {"micro_batch_tokens": 256}),
        ("-ub=256", {"micro_batch_tokens": 256}),
        ("--batch-size 128", {"micro_batch_tokens": 128}),
        ("--batch-size 4096", {"micro_batch_tokens": 512}),
        ("--kv_unified", {"unified": True}),
        ("-kvu --no-kv-unified", {"unified": False}),
        ("--swa-full -nkvo -nr", {"full_windows": True, "offload_cache": False, "repack": False}),
        ("--load-mode none", {"mmap": False}),
        ("-lm mmap", {"mmap": True}),
        ("-np 3 -c 4096", {"slots": 3, "context_tokens": 4096}),
        ("--gpu-layers 7", {"gpu_layers": 7}),
        ("-ngl all", {"gpu_layers": None}),
        ("--temp 0.7 --jinja", {}),
    ],
)
def test_a_flag_changes_what_it_names_and_no_more(arguments: str, changed: dict[str, object]) -> None:
    found = read_flags(arguments.split()).context
    assert {name: getattr(found, name) for name in changed} == changed
    untouched = set(vars(found)) - set(changed)
    assert all(getattr(found, name) == getattr(ContextFlags(), name) for name in untouched)


def test_the_types_of_the_cache_are_read_one_by_one() -> None:
    types = read_flags(["-ctk", "q8_0"]).context.cache_types
    assert (types.key.name, types.value.name) == ("q8_0", "f16")


@pytest.mark.parametrize("flag", ["--embedding", "--embeddings", "--rerank", "--reranking"])
def test_a_server_that_embeds_or_ranks_is_known(flag: str) -> None:
    assert read_flags([flag]).embedding
    assert not read_flags([]).embedding


@pytest.mark.parametrize(
    "arguments", ["--cpu-moe", "-ot exps=CPU", "--lora a.gguf", "--load-mode mmap+mlock"]
)
def test_a_flag_whose_memory_is_not_followed_is_named(arguments: str) -> None:
    assert read_flags(arguments.split()).unpredicted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--ubatch-size", "'--ubatch-size' needs a value"),
        ("--ubatch-size many", "'--ubatch-size many' must be a whole number"),
        ("-ctk q3_k", "'--cache-type-k q3_k' must be one of f32, f16"),
        ("--load-mode ram", "must be one of auto, mmap"),
        ("-ngl some", "must be a whole number"),
    ],
)
def test_a_value_that_upstream_refuses_is_refused_with_field_and_what_is_right(
    arguments: str, said: str
) -> None:
    with pytest.raises(InvalidFieldError, match=r"spec\.server\.extraArgs") as raised:
        read_flags(arguments.split())
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("value", "has_gpu", "layers"),
    [
        ("all", False, 0),
        (None, False, 0),
        ("all", True, None),
        ("auto", True, None),
        (None, True, None),
        ("7", True, 7),
    ],
)
def test_without_a_device_nothing_is_offloaded(value: str | None, has_gpu: bool, layers: int | None) -> None:  # noqa: FBT001
    assert gpu_layers(value, has_gpu=has_gpu) == layers
