"""The operator is killed over and over during a storm: every fault is decided once, none twice, none lost."""

from __future__ import annotations

import random
import threading
from functools import partial
from typing import TYPE_CHECKING

from tests.e2e.test_kills import served
from tests.support import bursts
from tests.support.kubectl import Kubectl, NeverHappenedError, until
from tests.support.operator import signal_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.models import Model

OPERATOR_KILLS = 100


def life_seconds(draw: random.Random) -> float:
    """How long an operator lives: mostly too short to come to a decision, one in five long enough for it."""
    return draw.uniform(0.0, 3.0) if draw.random() < 0.8 else draw.uniform(5.0, 15.0)


def decided(model: Model, faults: int) -> bool:
    """Whether so many kills were decided."""
    kills: dict[str, int] = bursts.record(model)["kills"]
    return sum(kills.values()) >= faults


def test_a_hundred_kills_of_the_operator_lose_no_fault_and_double_none(
    create: Callable[..., Model], operator: Kubectl
) -> None:
    model = served(create, cooldownSeconds=0)
    draw = random.Random(20261202)  # noqa: S311 - moments by chance
    stop, killed = threading.Event(), [0]

    def keep_killing() -> None:
        while killed[0] < OPERATOR_KILLS and not stop.wait(life_seconds(draw)):
            try:
                signal_all(operator)
            except (NeverHappenedError, ProcessLookupError):
                continue
            killed[0] += 1

    killer = threading.Thread(target=keep_killing)
    killer.start()
    keys: list[str] = []
    faults = 0
    try:
        while killed[0] < OPERATOR_KILLS:
            bursts.provoke_kill(model, 1500)  # over the limit whatever state is held
            faults += 1
            until(f"fault {faults} decided", partial(decided, model, faults), timeout_seconds=300)
            keys.append(bursts.record(model)["handled"][-1]["key"])
            bursts.until_running(model)
    finally:
        stop.set()
        killer.join()
    print(f"{killed[0]} kills of the operator, {faults} faults")  # noqa: T201 - the figure of the run
    assert killed[0] >= OPERATOR_KILLS
    assert len(set(keys)) == faults
    assert sum(bursts.record(model)["kills"].values()) == faults
    assert model.restarts() == faults
