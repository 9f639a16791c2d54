"""Every query that the chart ships: of panels, annotations and variables of dashboards, and of rules."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHART = Path(__file__).parents[2] / "charts" / "llamapool"
_LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+), *(?P<label>\w+)\)")
_LABEL_IN_TEXT = re.compile(r"\{\{ *\$?(?:labels\.)?(\w+) *\}\}")


@dataclass(frozen=True)
class Query:
    """One query and where it stands.

    Attributes:
        place: file and panel, annotation, variable or rule.
        expression: PromQL, Grafana's variables still in it.
        shown: labels that its legend or text names.
        kind: panel, annotation, variable, record or alert.
        name: of the panel, annotation, variable, record or alert.
    """

    place: str
    expression: str
    shown: frozenset[str]
    kind: str
    name: str

    def with_variables(self, values: Mapping[str, str]) -> str:
        """The expression as Grafana sends it."""
        text = self.expression
        for name, value in sorted(values.items(), key=lambda item: -len(item[0])):
            text = text.replace(f"${name}", value)
        return text


def all_queries() -> list[Query]:
    """Every query of every dashboard and rule of the chart."""
    dashboards = [query for path in sorted(CHART.glob("dashboards/*.json")) for query in _of_dashboard(path)]
    return dashboards + [query for path in sorted(CHART.glob("rules/*.yaml")) for query in _of_rules(path)]


def rules(kind: str) -> dict[str, Mapping[str, Any]]:
    """Rules of a kind (``alert`` or ``record``) by their name."""
    files = [yaml.safe_load(path.read_text()) for path in sorted(CHART.glob("rules/*.yaml"))]
    found = [rule for file in files for group in file["groups"] for rule in group["rules"]]
    return {rule[kind]: rule for rule in found if kind in rule}


def labels_in(text: str) -> frozenset[str]:
    """Labels that a legend, or the text of an alert, names."""
    return frozenset(_LABEL_IN_TEXT.findall(text)) - {"value"}


def _of_dashboard(path: Path) -> Iterator[Query]:
    dashboard = json.loads(path.read_text())

    def query(kind: str, name: str, expression: str, shown: str = "") -> Query:
        return Query(f"{path.name}: {kind} {name}", expression, labels_in(shown), kind, name)

    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield query("panel", panel["title"], target["expr"], target["legendFormat"])
    for annotation in dashboard["annotations"]["list"]:
        yield query("annotation", annotation["name"], annotation["expr"])
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            values = _LABEL_VALUES.fullmatch(variable["query"])
            assert values is not None, f"{path.name}: variable {variable['name']}: {variable['query']}"
            grouped = f"count by ({values['label']}) ({values['selector']})"
            yield query("variable", variable["name"], grouped)


def _of_rules(path: Path) -> Iterator[Query]:
    for group in yaml.safe_load(path.read_text())["groups"]:
        for rule in group["rules"]:
            kind = "alert" if "alert" in rule else "record"
            text = " ".join(rule.get("annotations", {}).values())
            name = rule[kind]
            yield Query(f"{path.name}: {name}", rule["expr"], labels_in(text), kind, name)
