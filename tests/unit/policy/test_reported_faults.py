"""Faults that people have reported of such systems, each kept as the outcome that is right."""

from dataclasses import replace
from typing import Any

import pytest

from llamapool.cli import objects_of
from llamapool.domain.conditions import ConditionStatus
from llamapool.domain.decide import decide
from llamapool.domain.facts import Pod, Resize, ScrapeFailure, ServerSample
from llamapool.domain.judge import judge
from llamapool.domain.observation import Observation
from llamapool.domain.values import time_text
from llamapool.manifests.common import Images
from tests.unit.builders import BUFFER, CHECKPOINT, GIB, MIB, model_body
from tests.unit.policy.kills import BASE, Model


def test_page_cache_that_fills_the_limit_shrinks_nothing() -> None:
    model, observation = Model(), Observation()
    for number in range(10):
        cached = model.pod(8 * GIB, state_bytes=4 * BUFFER)  # 7.9 GiB in use, of which 6.8 GiB are files
        seen = observation.take(replace(model.facts, pods=(cached,)), now=model.now + number * 5)
        model.look(pods=seen.pods, rises=seen.rises, calm=seen.calm)
    assert model.reasons == []


def under(limit: int, *, wanted: int | None = None) -> Pod:
    pod = Model.pod(limit)
    resize = None if wanted is None else Resize(limit_bytes=wanted, refused=False, message="")
    return replace(pod, resize=resize)


def test_a_shrink_with_much_pooled_trims_first_and_a_growth_waits_for_its_limit() -> None:
    model = Model(slots=20)
    model.look(pods=(under(8 * GIB),))
    assert model.cap_buffers == 20  # 3,000 MiB may be pooled
    room = 4 * GIB - 256 * MIB - BASE
    model.look(pods=(under(8 * GIB, wanted=4 * GIB),))
    assert model.limits.state_budget_bytes == room
    model.look(pods=(under(4 * GIB),))
    assert model.limits.state_budget_bytes is None
    small = model.limits
    model.look(pods=(under(4 * GIB, wanted=12 * GIB),))
    assert model.limits == small
    model.look(pods=(under(12 * GIB),))
    assert model.cap_buffers == 20


def test_a_server_that_is_silent_through_an_hour_of_prefill_is_neither_blamed_nor_retuned() -> None:
    model = Model()
    written = model.limits
    busy = replace(model.pod(), ready=False, sample=ScrapeFailure(reason="Timeout", message="no answer"))
    for _ in range(720):
        decision = model.look(pods=(busy,))
    assert (model.limits, model.reasons) == (written, [])
    held = {one.type.value: one.status for one in judge(replace(model.facts, pods=(busy,)), decision)}
    assert held["Degraded"] is ConditionStatus.FALSE
    assert held["TTFTHealthy"] is ConditionStatus.UNKNOWN


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param({"requests": {"memory": "8Gi"}}, id="request only"),
        pytest.param({"limits": {"memory": "8Gi"}}, id="limit only"),
        pytest.param({"requests": {"memory": "4Gi"}, "limits": {"memory": "8Gi"}}, id="request below limit"),
        pytest.param({"limits": {"memory": "8Gi", "cpu": "2"}, "requests": {"cpu": "1"}}, id="cpu, too"),
    ],
)
def test_resources_reach_the_pod_as_they_were_written_and_nothing_is_added(resources: dict[str, Any]) -> None:
    workload = next(
        made
        for made in objects_of(
            model_body(resources=resources), Images(server="server:1", operator="operator:1")
        )
        if made["kind"] == "Deployment"
    )
    (server,) = [one for one in workload["spec"]["template"]["spec"]["containers"] if one["name"] == "server"]
    assert server["resources"] == resources


def test_a_server_of_an_older_image_that_lacks_every_figure_is_unknown_and_not_acted_on() -> None:
    model = Model()
    written = model.limits
    old = replace(model.pod(), sample=ServerSample(checkpoint_bytes=CHECKPOINT))
    decision = decide(replace(model.facts, pods=(old,)), now=time_text(model.now))
    assert decision.limits == written
    unknown = [
        one.type.value
        for one in judge(replace(model.facts, pods=(old,)), decision)
        if one.status == "Unknown"
    ]
    assert {"LimitsApplied", "PoolActive", "TTFTHealthy"} <= set(unknown)
