"""After traffic and faults, no query of the chart is without data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.monitoring.prometheus import SECONDS_A_MINUTE
from tests.monitoring.queries import Query, all_queries

if TYPE_CHECKING:
    from tests.monitoring.prometheus import Prometheus
    from tests.support.models import Model

# Alerts are empty while all is well; that they fire is tested before.
SHOWN = [query for query in all_queries() if query.kind != "alert"]


@pytest.mark.parametrize("query", SHOWN, ids=lambda query: query.place)
def test_a_query_returns_data(query: Query, prometheus: Prometheus, chat: Model) -> None:
    variables = {
        "namespace": chat.kubectl.namespace,
        "model": chat.name,
        "replica": f"{chat.pod()['status']['podIP']}:9090",
        "__rate_interval": f"{2 * SECONDS_A_MINUTE}s",
    }
    assert prometheus.samples(query.with_variables(variables))
