"""The cap follows the pod's limit while the server runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.e2e.test_serving import BUFFER_BYTES, cap_of
from tests.support.kubectl import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.kubectl import Kubectl
    from tests.support.models import Model

# A share of 12.5 % of 1 GiB is three buffers of 38 MiB, of 1.5 GiB five.
POOL = {"mode": "Auto", "limitPercent": 12.5}


def test_a_resize_in_place_moves_the_cap_both_ways_without_a_restart(create: Callable[..., Model]) -> None:
    model = create(pool=POOL)
    model.until_condition("Ready")
    model.chat("hello")
    until("three buffers of 1Gi", lambda: cap_of(model, 3 * BUFFER_BYTES))
    deployed = model.kubectl.get("deployment", model.name)["metadata"]["generation"]

    model.resize("1536Mi")
    until("five buffers of 1536Mi", lambda: cap_of(model, 5 * BUFFER_BYTES), timeout_seconds=30)
    model.resize("1Gi")
    until("three buffers of 1Gi again", lambda: cap_of(model, 3 * BUFFER_BYTES), timeout_seconds=30)

    assert model.restarts() == 0
    assert model.kubectl.get("deployment", model.name)["metadata"]["generation"] == deployed


def test_a_written_cap_reaches_the_server_in_seconds(create: Callable[..., Model]) -> None:
    model = create(pool={"mode": "Fixed", "cap": "64Mi"})
    model.until_condition("Ready")
    model.until_condition("LimitsApplied")
    started = time.monotonic()
    model.kubectl(
        "patch", "hm", model.name, "--type", "merge", "--patch", '{"spec":{"pool":{"cap":"128Mi"}}}'
    )
    until("the fixed cap", lambda: cap_of(model, 128 << 20), timeout_seconds=10, every_seconds=0.1)
    # The nudge makes the kubelet refresh the mounted file; its own sync takes 10 s or more.
    assert time.monotonic() - started < 8


def test_a_pool_that_is_off_keeps_nothing(create: Callable[..., Model]) -> None:
    model = create(pool={"mode": "Off"})
    model.until_condition("Ready")
    model.until_condition("LimitsApplied")
    for prompt in ("first", "a second one", "the third of them"):
        model.chat(prompt)
    metrics = model.metrics()
    assert metrics["llamapool_pool_cap_bytes"] == 0
    assert metrics["llamapool_pool_held_bytes"] == 0


def test_the_cap_comes_from_the_limit_that_a_limit_range_gave(
    create: Callable[..., Model], kubectl: Kubectl
) -> None:
    default = {"type": "Container", "default": {"memory": "1536Mi"}, "defaultRequest": {"memory": "256Mi"}}
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "defaults"},
            "spec": {"limits": [default]},
        }
    )
    model = create(resources={"requests": {"cpu": "100m"}}, pool=POOL)
    model.until_condition("Ready")
    assert model.status()["memory"]["limit"] == "1536Mi"
    model.chat("hello")
    until("five buffers of 1536Mi", lambda: cap_of(model, 5 * BUFFER_BYTES))
