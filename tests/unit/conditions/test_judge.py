"""What the conditions of a model say, and why."""

from typing import Any

import pytest

from llamapool.domain.conditions import Condition, ConditionType, PoolMode, with_times
from llamapool.domain.decide import decide
from llamapool.domain.facts import Facts, Pod, ScrapeFailure, ServerSample, Workload
from llamapool.domain.judge import judge
from tests.unit.builders import BUFFER, CHECKPOINT, GIB, MIB, NOW, facts, pod, policy


def condition(kind: ConditionType, seen: Facts) -> Condition:
    found = [held for held in judge(seen, decide(seen, now=NOW)) if held.type is kind]
    assert len(found) == 1
    return found[0]


def said(kind: ConditionType, seen: Facts) -> tuple[str, str]:
    held = condition(kind, seen)
    return held.status.value, held.reason.value


def settled(*pods: Pod) -> Facts:
    """Facts in which what is decided on these pods was written before."""
    seen = facts(*pods)
    decision = decide(seen, now=NOW)
    return facts(*pods, written=decision.limits, record=decision.record)


def acknowledging(**figures: Any) -> Pod:
    reported: dict[str, Any] = {"limits_generation": 1, "pool_cap_bytes": 128 * MIB}
    return pod(sample=ServerSample(**reported | figures))


def test_a_model_with_a_ready_pod_is_ready() -> None:
    assert said(ConditionType.READY, facts(pod())) == ("True", "Serving")


def test_a_model_scaled_to_zero_is_not_ready_and_says_so() -> None:
    none = Workload(wanted_replicas=0, replicas=0, failure=None)
    assert said(ConditionType.READY, facts(workload=none)) == ("False", "ScaledToZero")


def test_a_pod_that_cannot_start_says_why_in_the_kubelets_words() -> None:
    held = condition(
        ConditionType.READY, facts(pod(running=False, trouble="ImagePullBackOff: no such image"))
    )
    assert (held.status, held.reason) == ("False", "Starting")
    assert "pod model-1: ImagePullBackOff: no such image" in held.message


def test_a_rollout_past_its_deadline_has_failed() -> None:
    stuck = Workload(wanted_replicas=1, replicas=1, failure="ReplicaSet has timed out progressing.")
    assert said(ConditionType.READY, facts(pod(ready=False), workload=stuck)) == ("False", "RolloutFailed")


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([], "LimitNotReported"),
        ([pod(reported=False)], "LimitNotReported"),
        ([pod(limit=None)], "NoMemoryLimit"),
        ([pod()], "CheckpointNotSeen"),
        ([pod(sample=ScrapeFailure(reason="Timeout", message=""))], "CheckpointNotSeen"),
        ([pod(sample=ServerSample(checkpoint_bytes=CHECKPOINT))], "BaseNotMeasured"),
    ],
)
def test_whether_memory_fits_is_unknown_until_every_figure_is_there(pods: list[Pod], reason: str) -> None:
    assert said(ConditionType.MEMORY_FITS, facts(*pods)) == ("Unknown", reason)


def test_memory_fits_where_the_budget_holds_a_checkpoint_a_slot() -> None:
    sample = ServerSample(checkpoint_bytes=CHECKPOINT, base_bytes=GIB)
    assert said(ConditionType.MEMORY_FITS, facts(pod(sample=sample))) == ("True", "BudgetSufficient")


def test_memory_that_does_not_fit_is_told_with_shortfall_limit_and_slots_that_would() -> None:
    sample = ServerSample(checkpoint_bytes=CHECKPOINT, base_bytes=GIB + 400 * MIB)
    held = condition(ConditionType.MEMORY_FITS, facts(pod(sample=sample)))
    need = GIB + 400 * MIB + 4 * BUFFER + 256 * MIB
    assert (held.status, held.reason) == ("False", "BudgetTooSmall")
    assert f"{need - 2 * GIB} bytes short" in held.message
    assert f"at least {need}" in held.message
    assert "spec.server.slots to at most 2" in held.message


def test_limits_are_applied_once_every_ready_pod_reports_generation_and_cap() -> None:
    assert said(ConditionType.LIMITS_APPLIED, settled(acknowledging())) == ("True", "Acknowledged")


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"limits_generation": 0}, ("False", "NotAcknowledged")),
        ({"pool_cap_bytes": 64 * MIB}, ("False", "BoundedByServer")),
        ({"pool_cap_bytes": 256 * MIB}, ("False", "NotAcknowledged")),
    ],
)
def test_limits_that_a_server_reports_otherwise_are_not_applied(
    figures: dict[str, int], expected: tuple[str, str]
) -> None:
    assert said(ConditionType.LIMITS_APPLIED, settled(acknowledging(**figures))) == expected


def test_one_pod_that_lags_behind_keeps_limits_from_being_applied() -> None:
    lagging = pod(name="b", sample=ServerSample(limits_generation=0, pool_cap_bytes=0))
    assert said(ConditionType.LIMITS_APPLIED, settled(acknowledging(), lagging)) == (
        "False",
        "NotAcknowledged",
    )


@pytest.mark.parametrize("kind", [ConditionType.LIMITS_APPLIED, ConditionType.POOL_ACTIVE])
@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (ScrapeFailure(reason="Timeout", message="no answer"), "MetricsUnavailable"),
        (ServerSample(), "MetricMissing"),
        (ServerSample(limits_generation=1), "MetricMissing"),
    ],
)
def test_a_missing_metric_is_unknown_and_not_fine(
    kind: ConditionType, sample: ServerSample | ScrapeFailure, reason: str
) -> None:
    assert said(kind, settled(pod(sample=sample))) == ("Unknown", reason)


def test_a_pool_whose_cap_holds_a_buffer_is_active() -> None:
    held = condition(ConditionType.POOL_ACTIVE, settled(acknowledging()))
    assert (held.status, held.reason) == ("True", "PoolCapped")
    assert "128Mi" in held.message


def test_a_pool_that_is_off_says_who_turned_it_off() -> None:
    assert said(ConditionType.POOL_ACTIVE, facts(pod(), asked=policy(PoolMode.OFF))) == ("False", "PoolOff")


def test_a_plan_without_room_for_one_buffer_says_so() -> None:
    sample = ServerSample(checkpoint_bytes=CHECKPOINT, base_bytes=700 * MIB)
    held = condition(ConditionType.POOL_ACTIVE, facts(pod(limit=GIB, sample=sample)))
    assert (held.status, held.reason) == ("False", "NoBufferFits")
    assert str(BUFFER) in held.message


def test_a_cap_in_effect_below_one_buffer_is_not_an_active_pool() -> None:
    lowered = acknowledging(checkpoint_bytes=CHECKPOINT, pool_cap_bytes=149 * MIB)
    assert said(ConditionType.POOL_ACTIVE, facts(lowered)) == ("False", "NoBufferFits")


def test_a_pool_without_a_pod_limit_is_active_but_says_that_the_host_counts() -> None:
    unlimited = pod(limit=None, sample=ServerSample(limits_generation=1, pool_cap_bytes=GIB))
    assert said(ConditionType.POOL_ACTIVE, facts(unlimited)) == ("True", "NoMemoryLimit")


def test_a_transition_time_moves_only_with_the_status() -> None:
    ready = judge(facts(pod()), decide(facts(pod()), now=NOW))[:1]
    first = with_times(ready, previous=[], observed_generation=1, now="T1")
    second = with_times(ready, previous=first, observed_generation=2, now="T2")
    unready = judge(facts(), decide(facts(), now=NOW))[:1]
    third = with_times(unready, previous=second, observed_generation=2, now="T3")
    assert [held[0]["lastTransitionTime"] for held in (first, second, third)] == ["T1", "T1", "T3"]
    assert second[0]["observedGeneration"] == 2
