"""After traffic and faults, no query of the chart is without data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.monitoring.picture import PANELS, RECORD, record
from tests.monitoring.prometheus import SECONDS_A_MINUTE
from tests.monitoring.queries import Query, all_queries

if TYPE_CHECKING:
    from tests.monitoring.prometheus import Prometheus
    from tests.support.models import Model

# Alerts are empty while all is well; that they fire is tested before.
SHOWN = [query for query in all_queries() if query.kind != "alert"]


def variables(chat: Model) -> dict[str, str]:
    """What Grafana would put in."""
    return {
        "namespace": chat.kubectl.namespace,
        "model": chat.name,
        "replica": f"{chat.pod()['status']['podIP']}:9090",
        "__rate_interval": f"{2 * SECONDS_A_MINUTE}s",
    }


@pytest.mark.parametrize("query", SHOWN, ids=lambda query: query.place)
def test_a_query_returns_data(query: Query, prometheus: Prometheus, chat: Model) -> None:
    # The model under traffic is not killed; the one that was is gone, its series are not.
    killed = {"model": "bursty"} if query.name == "OOM kill" else {}
    assert prometheus.samples(query.with_variables(variables(chat) | killed))


def test_the_panels_of_the_picture_are_recorded(prometheus: Prometheus, chat: Model) -> None:
    record(prometheus, variables(chat))
    panels = json.loads(RECORD.read_text())
    assert [panel["title"].split(" of ")[0] for panel in panels if panel["series"]] == [
        title.split(" of ")[0] for title in PANELS
    ]
