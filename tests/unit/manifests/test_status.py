"""What status says, and which of its changes are worth a write."""

from typing import Any

from llamapool.api import parse_model
from llamapool.domain.decide import decide
from llamapool.domain.facts import Facts, ServerSample
from llamapool.domain.histogram import Histogram
from llamapool.domain.judge import judge
from llamapool.manifests.event import decision_event
from llamapool.manifests.status import model_status, what_people_see
from tests.unit.builders import BUFFER, CHECKPOINT, GIB, MIB, NOW, facts, model_body, pod

BODY = model_body()


def status(seen: Facts, ttft: Histogram | None = None) -> dict[str, Any]:
    decision = decide(seen, now=NOW)
    return model_status(
        parse_model(BODY),
        BODY,
        facts=seen,
        decision=decision,
        conditions=judge(seen, decision),
        ttft=ttft,
        update_pending=False,
        now=NOW,
    )


def serving(**figures: Any) -> Facts:
    reported: dict[str, Any] = {
        "limits_generation": 1,
        "pool_cap_bytes": 3 * BUFFER,
        "checkpoint_bytes": CHECKPOINT,
        "base_bytes": GIB,
    }
    sample = ServerSample(**reported | figures)
    return facts(pod(name="a", sample=sample), pod(name="b", sample=sample))


def test_the_columns_of_kubectl_get_are_filled() -> None:
    written = status(serving(), Histogram((0.1, float("inf")), (10, 10)))
    assert written["pool"]["cap"] == "600Mi"
    assert written["memory"]["limit"] == "2Gi"
    assert written["ttft"]["p90"] == "0.09s"
    ready, fits = (
        next(held["status"] for held in written["conditions"] if held["type"] == kind)
        for kind in ("Ready", "MemoryFits")
    )
    assert (ready, fits) == ("True", "True")


def test_ttft_is_absent_while_no_request_was_served() -> None:
    assert "ttft" not in status(serving())


def test_the_plan_is_told_in_bytes() -> None:
    assert status(serving())["memory"] == {
        "limit": "2Gi",
        "limitBytes": 2 * GIB,
        "headroomBytes": 256 * MIB,
        "baseBytes": GIB,
        "baseMeasured": True,
        "stateBudgetBytes": 768 * MIB,
        "checkpointBytes": CHECKPOINT,
        "bufferBytes": BUFFER,
    }


def test_limits_are_told_as_written_and_as_each_pod_applies_them() -> None:
    limits = status(serving())["limits"]
    assert limits["written"]["generation"] == 1
    assert limits["written"]["poolCapBytes"] == 4 * BUFFER
    assert limits["acknowledged"] == {"pods": 2, "of": 2}
    assert limits["effective"] == {"poolCapBytes": 3 * BUFFER}
    assert [(each["name"], each["generation"]) for each in limits["pods"]] == [("a", 1), ("b", 1)]


def test_figures_of_the_pool_are_summed_over_the_pods_but_for_the_cap() -> None:
    pool = status(serving(pool_held_bytes=BUFFER, pool_hits=3))["pool"]
    assert (pool["heldBytes"], pool["hits"], pool["capBytes"]) == (2 * BUFFER, 6, 4 * BUFFER)


def test_a_figure_that_no_server_reports_is_absent_and_not_0() -> None:
    assert "heldBytes" not in status(serving())["pool"]


def test_a_moving_figure_is_not_a_change_that_people_see() -> None:
    first, second = (status(serving(pool_held_bytes=held)) for held in (0, BUFFER))
    assert first != second
    assert what_people_see(first) == what_people_see(second)


def test_a_moved_cap_is_a_change_that_people_see() -> None:
    first, second = (status(serving(base_bytes=base)) for base in (GIB, GIB + 400 * MIB))
    assert what_people_see(first) != what_people_see(second)


def test_an_event_tells_the_caps_and_what_they_were_decided_on() -> None:
    decision = decide(serving(), now=NOW)
    event = decision_event(parse_model(BODY), decision.record.decisions[0])
    assert event["reason"] == "PoolCapChanged"
    assert event["metadata"]["name"] == f"tiny.{decision.limits.decision}"
    assert event["involvedObject"]["uid"] == "uid-of-tiny"
    for part in ("the server's own -> 600Mi", "limit 2Gi", "one buffer 150Mi", "4 slots"):
        assert part in event["message"]
