"""The operator's metrics, as a Prometheus server would read them."""

from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from llamapool.adapters.metrics import Metrics
from llamapool.domain.decide import decide
from llamapool.domain.histogram import Histogram
from llamapool.domain.judge import judge
from tests.unit.builders import GIB, MIB, NOW, facts, pod

KEY = ("models", "tiny")
MODEL = {"namespace": "models", "model": "tiny"}


@pytest.fixture
def metrics() -> Metrics:
    made, seen = Metrics(), facts(pod())
    decision = decide(seen, now=NOW)
    made.begin_model(KEY)
    made.show_model(
        KEY,
        plan=decision.plan,
        limits=decision.limits,
        conditions=judge(seen, decision),
        ttft=Histogram((1.0, float("inf")), (10.0, 10.0)),
        ttft_target_seconds=1.5,
        update_pending=False,
    )
    return made


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, MODEL | labels)


def test_the_plan_of_a_model_is_exported(metrics: Metrics) -> None:
    assert value(metrics, "llamapool_model_memory_limit_bytes") == 2 * GIB
    assert value(metrics, "llamapool_model_pool_cap_bytes") == 128 * MIB
    assert value(metrics, "llamapool_model_limits_generation") == 1


def test_the_cap_is_the_one_that_is_written_where_it_is_not_the_plans(metrics: Metrics) -> None:
    seen = facts(pod())
    decision = decide(seen, now=NOW)
    metrics.show_model(
        KEY,
        plan=decision.plan,
        limits=replace(decision.limits, pool_cap_bytes=0),  # as in a leg of a trial, or after a kill
        conditions=judge(seen, decision),
        ttft=None,
        ttft_target_seconds=None,
        update_pending=False,
    )
    assert value(metrics, "llamapool_model_pool_cap_bytes") == 0


def test_the_target_of_the_time_to_first_token_is_exported(metrics: Metrics) -> None:
    assert value(metrics, "llamapool_model_time_to_first_token_target_seconds") == 1.5


def test_a_figure_that_is_unknown_is_absent(metrics: Metrics) -> None:
    assert value(metrics, "llamapool_model_memory_base_bytes") is None


def test_a_condition_is_1_for_its_status_and_0_for_the_others(metrics: Metrics) -> None:
    found = [
        value(metrics, "llamapool_model_condition", condition="Ready", status=status)
        for status in ("True", "False", "Unknown")
    ]
    assert found == [1, 0, 0]


def test_the_reason_of_a_condition_is_exported_for_alerts(metrics: Metrics) -> None:
    labels = {"condition": "MemoryFits", "status": "Unknown", "reason": "CheckpointNotSeen"}
    assert value(metrics, "llamapool_model_condition_reason", **labels) == 1


def test_quantiles_of_the_time_to_first_token_are_exported_while_there_are_requests(metrics: Metrics) -> None:
    name = "llamapool_model_time_to_first_token_seconds"
    assert value(metrics, name, quantile="0.9") == pytest.approx(0.9)
    seen = facts(pod())
    decision = decide(seen, now=NOW)
    metrics.show_model(
        KEY,
        plan=decision.plan,
        limits=decision.limits,
        conditions=judge(seen, decision),
        ttft=None,
        ttft_target_seconds=1.5,
        update_pending=False,
    )
    assert value(metrics, name, quantile="0.9") is None


def test_kills_are_counted_from_0_on_by_cause_and_phase_as_the_record_has_them(metrics: Metrics) -> None:
    metrics.show_kills(KEY, {})
    labels = {"cause": "ContainerOOM", "phase": "steady"}
    assert value(metrics, "llamapool_oom_total", **labels) == 0
    metrics.show_kills(KEY, {"ContainerOOM/steady": 3})
    assert value(metrics, "llamapool_oom_total", **labels) == 3
    assert value(metrics, "llamapool_oom_total", cause="Eviction", phase="steady") == 0
    metrics.forget_model(KEY)
    assert value(metrics, "llamapool_oom_total", **labels) is None


def test_a_counter_is_born_at_0(metrics: Metrics) -> None:
    assert value(metrics, "llamapool_decisions_total", reason="PoolCapChanged") == 0


def test_a_spec_that_cannot_be_used_leaves_no_figure_of_before(metrics: Metrics) -> None:
    seen = facts()
    metrics.show_conditions(KEY, judge(seen, decide(seen, now=NOW)))
    assert value(metrics, "llamapool_model_memory_limit_bytes") is None
    assert value(metrics, "llamapool_model_condition", condition="Ready", status="False") == 1


def test_every_series_of_a_deleted_model_disappears_and_those_of_others_stay(metrics: Metrics) -> None:
    other = ("models", "other")
    metrics.begin_model(other)
    metrics.scrape_errors.labels(*KEY, "Timeout").inc()
    metrics.forget_model(KEY)
    page = generate_latest(metrics.registry).decode()
    assert 'model="tiny"' not in page
    assert 'model="other"' in page
