"""What operator and servers export, and that Prometheus gets it once."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.monitoring.exported import FILE, exported
from tests.support.kubectl import until

if TYPE_CHECKING:
    from tests.monitoring.prometheus import Prometheus, Series
    from tests.support.kubectl import Kubectl
    from tests.support.models import Model

# Not there before their first event.
LATER = {"llamapool_reconcile_errors_total", "llamapool_scrape_errors_total"}


def page(kubectl: Kubectl, service: str) -> dict[str, frozenset[str]]:
    """Metrics of a Service's port 9090, with their labels."""
    address = kubectl.get("service", service)["spec"]["clusterIP"]
    with urllib.request.urlopen(f"http://{address}:9090/metrics", timeout=10) as response:
        families = text_string_to_metric_families(response.read().decode())
        samples = [sample for family in families for sample in family.samples]
    return {sample.name: frozenset(sample.labels) for sample in samples}


def test_a_real_server_exports_what_is_listed(chat: Model) -> None:
    def complete() -> dict[str, frozenset[str]] | None:
        found = page(chat.kubectl, chat.name)
        return found if "llamapool_checkpoint_bytes" in found else None

    assert until("a first checkpoint", complete) == exported("server")


def test_a_real_operator_exports_what_is_listed(operator: Kubectl, chat: Model) -> None:
    chat.until_condition("LimitsApplied")
    wanted = exported("operator")

    def complete() -> dict[str, frozenset[str]] | None:
        found = page(operator, "llamapool")
        return found if "llamapool_model_time_to_first_token_seconds" in found else None

    found = until("figures of the model", complete)
    assert found.items() <= wanted.items()
    assert wanted.keys() - found.keys() <= LATER


def test_prometheus_scrapes_operator_and_server_once_each(prometheus: Prometheus, chat: Model) -> None:
    def scraped() -> list[Series] | None:
        targets = prometheus.targets()
        mine = [target for target in targets if target.get("llamapool_dev_model") == chat.name]
        operators = [target for target in targets if target.get("app_kubernetes_io_component") == "operator"]
        healthy = all(target["health"] == "up" for target in [*mine, *operators])
        return mine if len(mine) == len(operators) == 1 and healthy else None

    (server,) = until("one operator and one server", scraped, timeout_seconds=30)
    assert set(yaml.safe_load(FILE.read_text())["scraping"]) <= set(server)


def test_series_of_a_model_have_its_own_namespace(prometheus: Prometheus, chat: Model) -> None:
    found = until(
        "the model's limit",
        lambda: prometheus.values(f'llamapool_model_memory_limit_bytes{{model="{chat.name}"}}') or None,
    )
    assert [(labels["namespace"], value) for labels, value in found] == [(chat.kubectl.namespace, 1 << 30)]
