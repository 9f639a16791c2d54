"""What a server will need and what a user's values cost, before it starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamapool.domain.conditions import PoolMode
from llamapool.domain.context import ContextFlags
from llamapool.domain.facts_message import FetchedModel
from llamapool.domain.memory import MemoryPlan, fit_of, least_limit_bytes, make_plan
from llamapool.domain.server_flags import ServerFlags, read_flags
from llamapool.domain.sizing import Asked, Need, predict_need, prices
from tests.unit.builders import BUFFER, CHECKPOINT, GIB, MIB, policy
from tests.unit.gguf.test_model_facts import ATTENTION, SSM, WEIGHTS, facts, model, split

HYBRID = FetchedModel(sha256=None, facts=facts(model("mamba2", SSM, tensors=WEIGHTS)))


def plan(
    limit: int | None, *, base: int = GIB, checkpoint: int | None = CHECKPOINT, slots: int = 4
) -> MemoryPlan:
    return make_plan(
        policy=policy(slots=slots), limit_bytes=limit, base_bytes=base, checkpoint_bytes=checkpoint
    )


def test_the_need_is_known_from_header_and_flags_alone() -> None:
    need = predict_need(HYBRID, ServerFlags())
    assert need.base_bytes is not None
    assert need.checkpoint_bytes == HYBRID.facts.state_bytes
    assert need.unknown == ""


def test_an_unknown_architecture_is_unknown_and_will_be_measured() -> None:
    need = predict_need(FetchedModel(sha256=None, facts=facts(model("deepseek4", ATTENTION))), ServerFlags())
    assert (need.base_bytes, need.checkpoint_bytes) == (None, None)
    assert "deepseek4 is not known" in need.unknown
    assert "measured" in need.unknown


def test_the_first_file_of_a_split_model_gives_its_checkpoints_and_no_base() -> None:
    first = FetchedModel(sha256=None, facts=facts(split(WEIGHTS[:2], WEIGHTS[2:])[0]))
    need = predict_need(first, ServerFlags())
    assert need.base_bytes is None
    assert need.checkpoint_bytes == HYBRID.facts.state_bytes
    assert "first of the model's files" in need.unknown


def test_a_flag_that_is_not_followed_leaves_the_base_unknown() -> None:
    need = predict_need(HYBRID, read_flags(["--cpu-moe"]))
    assert need.base_bytes is None
    assert "--cpu-moe" in need.unknown


def test_without_checkpoints_none_are_counted() -> None:
    assert predict_need(HYBRID, ServerFlags(), ctx_checkpoints=0).checkpoint_bytes == 0


def test_a_draft_model_and_a_projector_are_counted_in() -> None:
    alone = predict_need(HYBRID, ServerFlags())
    both = predict_need(replace(HYBRID, draft=HYBRID.facts, projector_bytes=100 * MIB), ServerFlags())
    assert alone.base is not None
    assert both.base is not None
    assert both.base.weights == 2 * alone.base.weights + 100 * MIB
    assert both.checkpoint_bytes == 2 * (alone.checkpoint_bytes or 0)


def test_a_cache_type_that_the_model_cannot_have_is_unknown_with_the_reason() -> None:
    narrow = facts(model("qwen3", ATTENTION, {"attention.key_length": 8, "attention.head_count_kv": 1}))
    need = predict_need(FetchedModel(sha256=None, facts=narrow), read_flags(["-ctk", "q8_0"]))
    assert need.base_bytes is None
    assert need.unknown


def test_four_slots_with_32_checkpoints_each_are_priced_against_16_gib_before_the_start() -> None:
    # 4 × 32 × 150 MiB are 18.7 GiB: the limit is 16 GiB.
    said = prices(plan(16 * GIB, base=2 * GIB), Asked(ctx_checkpoints=32), 4)
    held = (16 * GIB - 2 * GIB - 16 * GIB * 5 // 100 - 1) // BUFFER
    assert len(said) == 1
    assert "spec.server.ctxCheckpoints of 32 would take 19200Mi for 4 slots" in said[0]
    assert f"the budget holds {held} of 128 checkpoints" in said[0]


def test_an_8_gib_cache_under_a_6g_limit_is_named_with_what_bounds_it() -> None:
    (said,) = prices(plan(6 * 10**9), Asked(cache_ram_bytes=8 * GIB), 4)
    assert "spec.server.cacheRAM of 8Gi is over the state budget" in said


def test_a_prompt_cache_of_an_embedding_server_is_called_useless() -> None:
    (said,) = prices(plan(64 * GIB), Asked(cache_ram_bytes=8 * GIB, embedding=True), 4)
    assert "serves nothing where prompts are only embedded or ranked" in said


def test_a_fixed_cap_over_the_budget_is_named() -> None:
    (said,) = prices(plan(2 * GIB), Asked(pool_cap_bytes=7 * GIB), 4)
    assert "spec.pool.cap of 7Gi" in said


@pytest.mark.parametrize("asked", [Asked(), Asked(cache_ram_bytes=GIB, ctx_checkpoints=2)])
def test_what_fits_has_no_price(asked: Asked) -> None:
    assert prices(plan(64 * GIB), asked, 4) == ()


def test_a_model_without_checkpoints_fits_where_its_base_and_headroom_do() -> None:
    fitting, tight = plan(2 * GIB, checkpoint=0), plan(GIB + 255 * MIB, checkpoint=0)
    assert [fit.fits for fit in (fit_of(fitting, 4), fit_of(tight, 4)) if fit] == [True, False]
    assert fitting.pool_cap_bytes == 0


def test_the_smallest_limit_is_known_without_any() -> None:
    assert least_limit_bytes(plan(None), 4) == GIB + 4 * BUFFER + 256 * MIB


def test_nothing_known_plans_nothing() -> None:
    nothing = make_plan(
        policy=policy(PoolMode.AUTO),
        limit_bytes=None,
        base_bytes=Need().base_bytes,
        checkpoint_bytes=Need().checkpoint_bytes,
    )
    assert prices(nothing, Asked(cache_ram_bytes=GIB), 4) == ()
    assert least_limit_bytes(nothing, 4) is None


def test_more_slots_never_need_less() -> None:
    bases = [
        predict_need(HYBRID, ServerFlags(context=ContextFlags(slots=slots, context_tokens=8192))).base_bytes
        or 0
        for slots in range(1, 33)
    ]
    assert bases == sorted(bases)
