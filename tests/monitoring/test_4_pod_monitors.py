"""What Prometheus Operator makes of the chart's PodMonitors finds the same targets under the same labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from tests.contract.chart import PROMETHEUS_OPERATOR, objects
from tests.monitoring.exported import FILE
from tests.monitoring.prometheus import by_pod_monitors, running
from tests.support.kubectl import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.monitoring.prometheus import Series
    from tests.support.models import Model


def test_pod_monitors_find_operator_and_server_once_each(chat: Model, tmp_path: Path) -> None:
    config = by_pod_monitors(objects(*PROMETHEUS_OPERATOR))
    with running(tmp_path / "prometheus", config, "127.0.0.1:9191") as prometheus:

        def scraped() -> list[Series] | None:
            targets = prometheus.targets()
            healthy = all(target["health"] == "up" for target in targets)
            return targets if len(targets) == 2 and healthy else None

        targets = until("one operator and one server", scraped, timeout_seconds=30)
        (server,) = [target for target in targets if target.get("llamapool_dev_model") == chat.name]
        assert set(yaml.safe_load(FILE.read_text())["scraping"]) <= set(server)
        found = until(
            "the model's limit",
            lambda: prometheus.values(f'llamapool_model_memory_limit_bytes{{model="{chat.name}"}}') or None,
        )
        assert [labels["namespace"] for labels, _ in found] == [chat.kubectl.namespace]
