"""The conditions that tuning adds: what a person on call, and an alert, read first."""

from dataclasses import replace

from llamapool.domain.conditions import Condition
from llamapool.domain.decide import decide
from llamapool.domain.facts import Facts, Resize, ScrapeFailure
from llamapool.domain.judge import judge
from llamapool.domain.ttft import Traffic
from llamapool.domain.values import time_text
from tests.unit.policy.kills import QUICK, Model, box, end
from tests.unit.ttft.observed import seconds


def condition(model: Model, kind: str, facts: Facts | None = None) -> Condition:
    seen = facts or model.facts
    decision = decide(seen, now=time_text(model.now))
    return next(held for held in judge(seen, decision) if held.type == kind)


def test_a_sound_model_is_not_degraded() -> None:
    held = condition(Model(), "Degraded")
    assert (held.status, held.reason) == ("False", "Sound")


def test_a_kill_that_no_step_answers_degrades_and_the_message_says_what_to_do() -> None:
    model = Model()
    model.look(end(box=box(live=2, pooled=0)))
    held = condition(model, "Degraded")
    assert (held.status, held.reason) == ("True", "MemoryOutsideState")
    assert "raise spec.resources.limits.memory" in held.message


def test_a_server_that_is_killed_over_and_over_is_neither_ready_nor_sound() -> None:
    model = Model()
    for number in range(3):
        model.look(end(number, box=box()))
    assert (condition(model, "Ready").status, condition(model, "Ready").reason) == ("False", "OOMLooping")
    assert condition(model, "Degraded").reason == "OOMLooping"


def test_a_resize_that_the_kubelet_refuses_is_shown_with_its_words() -> None:
    model = Model()
    refused = Resize(limit_bytes=1 << 40, refused=True, message="Node didn't have enough capacity")
    seen = replace(model.facts, pods=(replace(model.pod(), resize=refused),))
    held = condition(model, "Degraded", seen)
    assert (held.status, held.reason) == ("True", "ResizeRefused")
    assert "enough capacity" in held.message


def test_a_pool_that_was_turned_off_says_why() -> None:
    model = Model(QUICK)
    for number in range(2):
        model.look(end(number, box=box(pooled=4)))
    assert condition(model, "PoolActive").reason == "TurnedOffAfterOOM"


def test_a_missing_metric_is_unknown_and_not_fine() -> None:
    held = condition(Model(), "TTFTHealthy")
    assert (held.status, held.reason) == ("Unknown", "MetricMissing")


def test_metrics_that_cannot_be_had_are_unknown_and_change_nothing() -> None:
    model = Model()
    dark = replace(model.pod(), sample=ScrapeFailure(reason="Timeout", message="no answer"))
    held = condition(model, "TTFTHealthy", replace(model.facts, pods=(dark,)))
    assert (held.status, held.reason) == ("Unknown", "MetricsUnavailable")
    assert not model.look(pods=(dark,)).changed


def test_an_idle_model_has_no_traffic_and_no_nan() -> None:
    model = Model()
    idle = model.pod(time_to_first_token=seconds())
    held = condition(model, "TTFTHealthy", replace(model.facts, pods=(idle,), traffic=Traffic()))
    assert (held.status, held.reason) == ("Unknown", "NoTraffic")
