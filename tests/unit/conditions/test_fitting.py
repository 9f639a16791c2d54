"""Whether memory fits is known before a server runs, and by its own figures after."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from llamapool.domain.decide import decide
from llamapool.domain.facts import ServerSample
from llamapool.domain.fitting import memory_fits
from llamapool.domain.prediction import BasePrediction
from llamapool.domain.sizing import Asked, Need
from tests.unit.builders import BUFFER, CHECKPOINT, GIB, MIB, NOW, facts, pod

if TYPE_CHECKING:
    from llamapool.domain.conditions import Condition
    from llamapool.domain.facts import Facts


def base(size: int) -> BasePrediction:
    return BasePrediction(weights=size, keys_values=0, recurrent_state=0, compute=0, overhead=0)


TOLERANCE = GIB * 5 // 100 + 1
PREDICTED = Need(base=base(GIB), checkpoint_bytes=CHECKPOINT)


def said(seen: Facts) -> Condition:
    return memory_fits(seen, decide(seen, now=NOW))


def verdict(seen: Facts) -> tuple[str, str]:
    held = said(seen)
    return held.status.value, held.reason.value


@pytest.mark.parametrize(
    ("limit", "expected"), [(2 * GIB, ("True", "BudgetSufficient")), (GIB, ("False", "BudgetTooSmall"))]
)
def test_it_is_judged_before_any_pod_is_there(limit: int, expected: tuple[str, str]) -> None:
    seen = facts(need=PREDICTED, declared_limit_bytes=limit)
    assert verdict(seen) == expected
    assert "predicted base of 1Gi and 51Mi of tolerance" in said(seen).message


def test_what_does_not_fit_is_told_before_the_start_with_the_limit_and_the_slots_that_would() -> None:
    message = said(facts(need=PREDICTED, declared_limit_bytes=GIB + 500 * MIB)).message
    assert f"{4 * BUFFER + TOLERANCE + 256 * MIB - 500 * MIB} bytes short" in message
    assert f"spec.resources.limits.memory to at least {GIB + TOLERANCE + 4 * BUFFER + 256 * MIB}" in message
    assert "spec.server.slots to at most 1" in message


def test_a_starting_pods_own_limit_counts_and_not_what_was_declared() -> None:
    seen = facts(pod(limit=2 * GIB), need=PREDICTED, declared_limit_bytes=GIB)
    assert verdict(seen) == ("True", "BudgetSufficient")


def test_a_measured_base_takes_the_place_of_the_predicted_one_and_the_error_is_known() -> None:
    running = pod(sample=ServerSample(base_bytes=GIB + 400 * MIB, checkpoint_bytes=CHECKPOINT))
    seen = facts(running, need=PREDICTED)
    assert verdict(seen) == ("False", "BudgetTooSmall")
    assert "predicted" not in said(seen).message
    plan = decide(seen, now=NOW).plan
    assert (plan.base_measured, plan.base_error_bytes) == (True, -400 * MIB)


def test_the_cap_holds_a_buffer_a_slot_before_the_first_checkpoint() -> None:
    assert decide(facts(pod(limit=2 * GIB), need=PREDICTED), now=NOW).limits.pool_cap_bytes == 4 * BUFFER


def test_a_window_that_is_not_full_yet_does_not_shrink_the_plan() -> None:
    filling = pod(limit=4 * GIB, sample=ServerSample(base_bytes=GIB, checkpoint_bytes=10 * MIB))
    need = Need(base=base(GIB), checkpoint_bytes=CHECKPOINT, grows=True)
    assert decide(facts(filling, need=need), now=NOW).plan.checkpoint_bytes == CHECKPOINT


def test_recurrent_state_is_what_the_server_reports() -> None:
    reporting = pod(limit=4 * GIB, sample=ServerSample(base_bytes=GIB, checkpoint_bytes=10 * MIB))
    assert decide(facts(reporting, need=PREDICTED), now=NOW).plan.checkpoint_bytes == 10 * MIB


def test_without_a_limit_it_is_unknown_whatever_is_predicted() -> None:
    assert verdict(facts(pod(limit=None), need=PREDICTED)) == ("Unknown", "NoMemoryLimit")


def test_without_a_limit_the_smallest_that_would_fit_is_named() -> None:
    message = said(facts(pod(limit=None), need=PREDICTED)).message
    assert (
        f"set spec.resources.limits.memory to at least {GIB + TOLERANCE + 4 * BUFFER + 256 * MIB}" in message
    )
    assert "at least" not in said(facts(pod(limit=None))).message


def test_a_prediction_for_a_device_says_what_it_leaves_out_until_a_server_has_measured_it() -> None:
    offloaded = replace(PREDICTED, offloaded=True)
    running = pod(sample=ServerSample(base_bytes=GIB, checkpoint_bytes=CHECKPOINT))
    assert "to which the device's runtime adds" in said(facts(pod(), need=offloaded)).message
    assert "runtime" not in said(facts(running, need=offloaded)).message


def test_a_request_below_the_limit_is_a_risk_whether_or_not_the_rest_is_known() -> None:
    assert "eviction risk" in said(facts(pod(limit=2 * GIB), request_bytes=GIB)).message


def test_what_is_not_known_says_why_and_that_it_will_be_measured() -> None:
    need = Need(unknown="architecture new is not known; its figures will be measured")
    held = said(facts(need=need, declared_limit_bytes=GIB))
    assert (held.status, held.reason) == ("Unknown", "CheckpointNotSeen")
    assert "architecture new is not known; its figures will be measured" in held.message


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(cache_ram_bytes=8 * GIB), "spec.server.cacheRAM of 8Gi is over the state budget"),
        (Asked(ctx_checkpoints=32), "spec.server.ctxCheckpoints of 32 would take 19200Mi for 4 slots"),
        (Asked(cache_ram_bytes=GIB, embedding=True), "serves nothing where prompts are only embedded"),
    ],
)
def test_a_users_value_stands_and_its_price_is_told(asked: Asked, words: str) -> None:
    held = said(replace(facts(need=PREDICTED, declared_limit_bytes=6 * 10**9), asked=asked))
    assert held.status == "True"
    assert words in held.message


@pytest.mark.parametrize(("request_bytes", "named"), [(GIB, True), (2 * GIB, False), (None, False)])
def test_a_request_below_the_limit_is_named_as_an_eviction_risk(
    request_bytes: int | None,
    named: bool,  # noqa: FBT001
) -> None:
    held = said(facts(pod(limit=2 * GIB), need=PREDICTED, request_bytes=request_bytes))
    assert ("eviction risk: the memory request of 1Gi is below the limit of 2Gi" in held.message) is named


def test_a_model_without_checkpoints_fits_by_its_base_alone() -> None:
    need: dict[str, Any] = {"need": Need(base=base(GIB), checkpoint_bytes=0)}
    assert verdict(facts(pod(limit=2 * GIB), **need)) == ("True", "BudgetSufficient")
    assert verdict(facts(pod(limit=GIB), **need)) == ("False", "BudgetTooSmall")
