"""Two replicas of the operator: one acts, the other takes over, and no decision is lost or made twice."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_serving import cap_of
from tests.support import chart
from tests.support.kubectl import Kubectl, until
from tests.support.models import MEBIBYTE, Model
from tests.support.operator import assert_decided_once, leader, signal_leader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def replicated(operator: Kubectl) -> Iterator[Kubectl]:
    """Two replicas; one again after the test."""
    chart.install("--set", "replicas=2")
    until("a leader", lambda: leader(operator))
    yield operator
    chart.install()


@pytest.fixture
def model(create: Callable[..., Model], replicated: Kubectl) -> Model:
    del replicated
    made = create(pool={"mode": "Fixed", "cap": "64Mi"})
    made.until_condition("LimitsApplied")
    return made


def ask_for(model: Model, mebibytes: int) -> None:
    patch = f'{{"spec":{{"pool":{{"cap":"{mebibytes}Mi"}}}}}}'
    model.kubectl("patch", "hm", model.name, "--type", "merge", "--patch", patch)


def until_applied(model: Model, mebibytes: int) -> None:
    until(f"{mebibytes} MiB", partial(cap_of, model, mebibytes * MEBIBYTE))


def test_a_leader_that_hangs_is_replaced_within_20_seconds_and_writes_nothing_when_it_wakes_up(
    model: Model, replicated: Kubectl
) -> None:
    hung, processes = signal_leader(replicated, signal.SIGSTOP)
    started = time.monotonic()
    try:
        ask_for(model, 128)
        until_applied(model, 128)
        seconds = time.monotonic() - started
        print(f"replaced, decided and applied {seconds:.1f} s after the leader hung")  # noqa: T201
        assert seconds < 20
        assert leader(replicated) != hung
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
    ask_for(model, 160)
    until_applied(model, 160)
    model.until_condition("LimitsApplied")
    assert leader(replicated) != hung
    assert_decided_once(model)


def test_an_upgrade_hands_over_without_waiting_for_the_lease_to_end(
    model: Model, replicated: Kubectl
) -> None:
    first = leader(replicated)
    assert first is not None
    replicated("delete", "pod", first, "--wait=false")
    started = time.monotonic()
    until("another leader", lambda: leader(replicated) not in (None, first), every_seconds=0.1)
    assert time.monotonic() - started < 8
    ask_for(model, 96)
    until_applied(model, 96)


def test_both_replicas_killed_in_turn_while_caps_move_lose_no_decision_and_double_none(
    model: Model, replicated: Kubectl
) -> None:
    for turn, mebibytes in enumerate((96, 128, 160, 192)):
        ask_for(model, mebibytes)
        name, _ = signal_leader(replicated, signal.SIGKILL)
        if turn % 2:
            # Its container's successor would take the lease back; without the pod the other replica has to.
            replicated("delete", "pod", name, "--force", "--grace-period", "0")
        until_applied(model, mebibytes)
    model.until_condition("LimitsApplied")
    assert_decided_once(model)
