"""Which metrics and labels there are, and what a query names that there is not."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import promql_parser
import yaml

from llamapool.domain.conditions import ConditionStatus, ConditionType, DecisionReason, Reason
from llamapool.domain.oom import Cause, Phase
from tests.monitoring.queries import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE = Path(__file__).with_name("exported.yaml")
# What Grafana puts for its variables; the values do not matter here.
VARIABLES = {
    "namespace": "models",
    "model": "tiny",
    "replica": "10.0.0.1:9090",
    "__rate_interval": "1m",
}
VALUES: Mapping[str, frozenset[str]] = {
    "condition": frozenset(ConditionType),
    "status": frozenset(ConditionStatus),
    "reason": frozenset(Reason) | frozenset(DecisionReason),
    "cause": frozenset(Cause),
    "phase": frozenset(Phase),
    "quantile": frozenset({"0.5", "0.9", "0.99"}),
}
"""Labels with a fixed set of values."""


def exported(part: str) -> dict[str, frozenset[str]]:
    """Metrics of ``operator`` or ``server`` with their own labels."""
    content: dict[str, dict[str, list[str]]] = yaml.safe_load(FILE.read_text())
    return {metric: frozenset(labels) for metric, labels in content[part].items()}


@functools.cache
def known() -> dict[str, frozenset[str]]:
    """Every metric that a query may name, with every label it has in Prometheus."""
    scraping = frozenset(yaml.safe_load(FILE.read_text())["scraping"])
    own = {"instance", "job"}
    found = {metric: labels | own for metric, labels in exported("operator").items()}
    found |= {metric: labels | scraping for metric, labels in exported("server").items()}
    found["up"] = scraping
    for name, rule in rules("record").items():
        found[name] = labels_of(promql_parser.parse(rule["expr"]), found)
    return found


def faults(expression: str, shown: frozenset[str] = frozenset()) -> list[str]:
    """What a query names that nothing exports; empty where all is well.

    Args:
        expression: PromQL without variables.
        shown: labels that its legend or text names.
    """
    metrics = known()
    found: list[str] = []
    parsed = promql_parser.parse(expression)
    for part in _parts(parsed):
        if isinstance(part, promql_parser.VectorSelector):
            found += _faults_of_selector(part, metrics)
        elif isinstance(part, promql_parser.AggregateExpr) and part.modifier is not None:
            missing = frozenset(part.modifier.labels) - labels_of(part.expr, metrics)
            found += [f"groups by {label}, which its series do not have" for label in sorted(missing)]
    missing = shown - labels_of(parsed, metrics)
    return found + [f"shows {label}, which its result does not have" for label in sorted(missing)]


def labels_of(part: Any, metrics: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Labels that the result of an expression may have."""
    if isinstance(part, promql_parser.VectorSelector):
        return metrics.get(part.name or "", frozenset())
    if isinstance(part, promql_parser.AggregateExpr):
        return frozenset(part.modifier.labels) if part.modifier is not None else frozenset()
    inner = frozenset(label for child in _children(part) for label in labels_of(child, metrics))
    if isinstance(part, promql_parser.Call) and part.func.name == "label_replace":
        return inner | {part.args[1].val}
    if isinstance(part, promql_parser.Call) and part.func.name == "histogram_quantile":
        return inner - {"le"}
    return inner


def _faults_of_selector(selector: Any, metrics: Mapping[str, frozenset[str]]) -> Iterator[str]:
    if selector.name not in metrics:
        yield f"names the metric {selector.name}, which nothing exports"
        return
    for matcher in selector.matchers.matchers:
        if matcher.name not in metrics[selector.name]:
            yield f"names the label {matcher.name}, which {selector.name} does not have"
            continue
        for value in _values_named(matcher):
            if value not in VALUES.get(matcher.name, {value}):
                yield f"names {matcher.name}={value}, a value that it never has"


def _values_named(matcher: Any) -> list[str]:
    """Values that a matcher asks for; of a pattern those that are alternatives of plain words."""
    if matcher.op == promql_parser.MatchOp.Equal:
        return [matcher.value]
    if matcher.op == promql_parser.MatchOp.Re:
        return [word for word in matcher.value.split("|") if word.isalnum()]
    return []


def _parts(part: Any) -> Iterator[Any]:
    yield part
    for child in _children(part):
        yield from _parts(child)


def _children(part: Any) -> list[Any]:
    names = ("expr", "lhs", "rhs", "vector_selector")
    inner = [getattr(part, name, None) for name in names]
    return [child for child in (*inner, *getattr(part, "args", ())) if child is not None]
