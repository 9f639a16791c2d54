"""What promtool says of the rules, and that every alert has a test of its firing and of its clearing."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.monitoring.queries import CHART, rules
from tests.support.kubectl import run

TESTS = Path(__file__).with_name("rules.test.yaml")


def test_the_rules_are_valid() -> None:
    for file in sorted(CHART.glob("rules/*.yaml")):
        assert "SUCCESS" in run("promtool", "check", "rules", "--lint=all", "--lint-fatal", str(file))


def test_the_rules_do_as_they_should() -> None:
    assert "SUCCESS" in run("promtool", "test", "rules", str(TESTS))


def test_every_alert_is_tested_before_in_and_after_its_fault() -> None:
    cases = [
        case
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for case in test.get("alert_rule_test", [])
    ]
    for alert in rules("alert"):
        fires = [bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert]
        assert fires == [False, True, False], alert
