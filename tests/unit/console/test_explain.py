"""A model explained in sentences, for whoever is on call."""

from datetime import UTC, datetime
from typing import Any

from llamapool.api import parse_model
from llamapool.console.explain import explain
from llamapool.domain.decide import decide
from llamapool.domain.judge import judge
from llamapool.domain.values import time_text
from llamapool.manifests.status import model_status
from tests.unit.builders import model_body
from tests.unit.policy.kills import Model, box, end

NOW = datetime.fromtimestamp(1_764_590_400, UTC)


def explained(model: Model) -> str:
    body = model_body()
    decision = decide(model.facts, now=time_text(model.now))
    body["status"] = model_status(
        parse_model(body),
        body,
        facts=model.facts,
        decision=decision,
        conditions=judge(model.facts, decision),
        ttft=None,
        update_pending=False,
        now=time_text(model.now),
    )
    return explain(body, now=datetime.fromtimestamp(model.now, UTC))


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_kill_is_told_with_what_was_seen_what_was_done_and_how_limits_moved() -> None:
    model = Model()
    model.look(end(box=box()))
    told = flat(explained(model))
    for part in ("PoolHalved, Applied", "poolCap 600Mi -> poolCap 300Mi", "pooled 600Mi", "cap is halved"):
        assert part in told, told


def test_trouble_that_no_step_answers_says_what_to_do() -> None:
    model = Model()
    model.look(end(box=box(live=2, pooled=0)))
    told = flat(explained(model))
    assert "Degraded is True (MemoryOutsideState)" in told
    assert "raise spec.resources.limits.memory" in told


def test_the_plan_is_told_as_a_sum() -> None:
    assert "limit 4Gi = base 400Mi + state budget" in flat(explained(Model()))


def test_a_repeated_end_is_told_once_with_how_often() -> None:
    model = Model()
    for number in range(3):
        model.look(end(number, exit_code=139, reason="Error", box=box()))
    assert "(3 times): Crashed, NothingChanged" in flat(explained(model))


def test_a_model_that_nobody_has_seen_is_said_to_be_so() -> None:
    body: dict[str, Any] = model_body()
    assert "no operator has seen it yet" in explain(body, now=NOW)
