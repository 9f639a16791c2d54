"""No query of a dashboard or rule names anything that operator and server do not export."""

import pytest
from prometheus_client.core import Metric

from llamapool.adapters.metrics import Metrics
from tests.monitoring.exported import VARIABLES, exported, faults
from tests.monitoring.queries import Query, all_queries, rules

QUERIES = all_queries()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_a_query_names_only_what_is_exported(query: Query) -> None:
    assert faults(query.with_variables(VARIABLES), query.shown) == []


def test_both_dashboards_and_all_rules_are_looked_at() -> None:
    assert {query.kind for query in QUERIES} == {"panel", "annotation", "variable", "record", "alert"}
    assert len({query.place for query in QUERIES}) > 40


@pytest.mark.parametrize(
    ("expression", "shown", "fault"),
    [
        ("llamapool_pool_hit_total", "", "metric llamapool_pool_hit_total"),
        ('llamapool_pool_hits_total{pod="a"}', "", "label pod"),
        ("sum by (model) (rate(llamapool_pool_hits_total[5m]))", "", "groups by model"),
        ('llamapool_model_condition{condition="Healthy"}', "", "condition=Healthy"),
        ('llamapool_model_condition_reason{reason="Broken"}', "", "reason=Broken"),
        ('llamapool_decisions_total{reason=~"PoolCapChanged|PoolShrunk"}', "", "reason=PoolShrunk"),
        ("sum by (reason) (llamapool_decisions_total)", "model", "shows model"),
        ("histogram_quantile(0.9, llamapool_time_to_first_token_seconds_bucket)", "le", "shows le"),
        ("sum(llamapool_leader) / sum(llamapool_follower)", "", "metric llamapool_follower"),
    ],
)
def test_a_query_that_names_anything_else_is_refused(expression: str, shown: str, fault: str) -> None:
    found = faults(expression, frozenset({shown} - {""}))
    assert len(found) == 1
    assert fault in found[0]


def test_the_operator_s_registry_has_the_metrics_that_are_listed() -> None:
    def names(metric: Metric) -> set[str]:
        if metric.type == "histogram":
            return {f"{metric.name}_{suffix}" for suffix in ("bucket", "count", "sum")}
        return {f"{metric.name}_total" if metric.type == "counter" else metric.name}

    families = {name for metric in Metrics().registry.collect() for name in names(metric)}
    assert families == set(exported("operator"))


@pytest.mark.parametrize("alert", rules("alert"))
def test_every_alert_has_a_severity_a_text_and_a_runbook(alert: str) -> None:
    rule = rules("alert")[alert]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert rule["annotations"]["runbook"] == f"docs/runbooks/{alert}.md"
