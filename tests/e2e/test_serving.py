"""A HybridModel is applied, served, and explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.conftest import SMALL
from tests.support.kubectl import until
from tests.support.models import MEBIBYTE, Model

if TYPE_CHECKING:
    from collections.abc import Callable

# What the server maps for one checkpoint: its data, rounded up to whole huge pages.
BUFFER_BYTES = -(-SMALL.state_bytes // (2 * MEBIBYTE)) * 2 * MEBIBYTE


def cap_of(model: Model, cap_bytes: int) -> dict[str, float] | None:
    """The server's metrics once it reports that cap."""
    metrics = model.metrics()
    return metrics if metrics["llamapool_pool_cap_bytes"] == cap_bytes else None


def test_a_prompt_is_answered_through_the_service(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    answer = model.chat("hello")
    assert answer["usage"]["completion_tokens"] > 0
    assert answer["choices"][0]["message"]["role"] == "assistant"


def test_the_cap_is_one_buffer_a_slot_once_a_checkpoint_was_measured(create: Callable[..., Model]) -> None:
    model = create(server={"slots": 3, "contextSize": 2048})
    model.until_condition("Ready")
    assert model.status()["memory"]["limit"] == "1Gi"
    model.chat("hello")
    # 1/16 of 1 GiB is 64 MiB: one buffer; three slots can use three.
    metrics = until("three buffers", lambda: cap_of(model, 3 * BUFFER_BYTES))
    assert SMALL.state_bytes < metrics["llamapool_checkpoint_bytes"] <= BUFFER_BYTES
    model.until_condition("LimitsApplied")
    written = model.status()["limits"]["written"]
    assert written["poolCapBytes"] == 3 * BUFFER_BYTES
    assert metrics["llamapool_limits_generation"] == written["generation"]


def test_a_second_prompt_takes_its_checkpoint_from_the_pool(create: Callable[..., Model]) -> None:
    model = create(server={"slots": 1, "contextSize": 2048, "ctxCheckpoints": 1, "cacheRAM": 0})
    model.until_condition("Ready")
    model.chat("one prompt")
    until("one buffer", lambda: cap_of(model, BUFFER_BYTES))
    model.chat("a second, quite different prompt")
    model.chat("and a third")
    assert model.metrics()["llamapool_pool_hits_total"] > 0


def test_the_table_of_kubectl_get_shows_readiness_cap_and_limit(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    model.chat("hello")
    until("two buffers", lambda: cap_of(model, 2 * BUFFER_BYTES))
    model.until_condition("LimitsApplied")
    header, row = model.kubectl("get", "hm", model.name).splitlines()
    for column in ("READY", "POOL CAP", "TTFT P90", "LIMIT", "FITS", "AGE"):
        assert column in header
    for value in ("True", f"{2 * BUFFER_BYTES // MEBIBYTE}Mi", "1Gi"):
        assert value in row.split()


def test_every_change_of_the_cap_is_an_event_told_once(create: Callable[..., Model]) -> None:
    model = create()
    model.until_condition("Ready")
    model.chat("hello")
    until("two buffers", lambda: cap_of(model, 2 * BUFFER_BYTES))
    model.until_condition("LimitsApplied")
    generation = model.status()["limits"]["written"]["generation"]

    def decisions_told() -> list[str] | None:
        events = model.kubectl.list("events")
        told = [event["message"] for event in events if event["reason"] == "PoolCapChanged"]
        return told if len(told) >= len(model.status()["decisions"]) else None

    told = until("an event for each decision", decisions_told)
    assert len(told) == len(set(told)) <= generation


def test_a_bad_source_is_said_in_the_condition_and_nothing_is_deployed(create: Callable[..., Model]) -> None:
    model = create(model={"source": {"image": {"path": "/models/tiny.gguf"}}, "sha256": "0" * 64})
    condition = model.until_condition("Ready", "False")
    assert condition["reason"] == "FieldUnsupported"
    assert "spec.model.sha256" in condition["message"]
    assert model.kubectl.find("deployment", model.name) is None
