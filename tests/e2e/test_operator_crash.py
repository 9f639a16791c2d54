"""The operator dies by SIGKILL at any moment; what it left half done is finished, once."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_serving import BUFFER_BYTES, cap_of
from tests.support.kubectl import Kubectl, until
from tests.support.models import MEBIBYTE
from tests.support.operator import assert_decided_once, signal_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.models import Model


@pytest.mark.parametrize("delay_seconds", [0.0, 0.2, 0.5, 1.0])
def test_a_kill_while_a_model_is_created_converges(
    create: Callable[..., Model], operator: Kubectl, delay_seconds: float
) -> None:
    model = create()
    time.sleep(delay_seconds)
    signal_all(operator)
    model.until_condition("Ready")
    model.chat("hello")
    until("two buffers", lambda: cap_of(model, 2 * BUFFER_BYTES))
    model.until_condition("LimitsApplied")
    assert_decided_once(model)


def test_kills_while_the_cap_moves_lose_no_decision_and_double_none(
    create: Callable[..., Model], operator: Kubectl
) -> None:
    model = create(pool={"mode": "Fixed", "cap": "64Mi"})
    model.until_condition("Ready")
    for mebibytes in (96, 128, 160):
        patch = f'{{"spec":{{"pool":{{"cap":"{mebibytes}Mi"}}}}}}'
        model.kubectl("patch", "hm", model.name, "--type", "merge", "--patch", patch)
        signal_all(operator)
        until(f"{mebibytes} MiB", partial(cap_of, model, mebibytes * MEBIBYTE))
    model.until_condition("LimitsApplied")
    assert_decided_once(model)
