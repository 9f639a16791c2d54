"""Whether memory fits is known before a server runs, and its first figures take over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.kubectl import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.models import Model

# Nothing runs of an image that is not there, but the init container that reads the model's header.
NEVER_RUNS = {"image": "nowhere.invalid/llama-server:0", "pullPolicy": "Never"}


def test_what_does_not_fit_is_told_with_what_would_though_no_server_ever_ran(
    create: Callable[..., Model],
) -> None:
    model = create(server={"slots": 32, "contextSize": 8192, **NEVER_RUNS})
    message = model.until_condition("MemoryFits", "False")["message"]
    assert "by a predicted base of" in message
    assert "spec.resources.limits.memory to at least" in message
    assert "eviction risk: the memory request of 256Mi is below the limit of 1Gi" in message
    model.kubectl("patch", "hm", model.name, "--type", "merge", "--patch", '{"spec":{"server":{"slots":2}}}')
    assert "for 2 slots, by a predicted base of" in model.until_condition("MemoryFits")["message"]
    assert model.status()["memory"]["baseMeasured"] is False


def test_a_measured_base_takes_over_and_the_prediction_was_within_its_tolerance(
    create: Callable[..., Model],
) -> None:
    model = create()
    model.until_condition("Ready")
    # Buffers are memory only once they are used: more tokens than are computed at once use them all.
    model.chat("x" * 600)

    def within_tolerance() -> bool:
        error_bytes = model.status().get("memory", {}).get("baseErrorBytes")
        return error_bytes is not None and abs(error_bytes) <= 32 << 20

    until("a measured base near the predicted one", within_tolerance, timeout_seconds=120)
    memory = model.status()["memory"]
    assert memory["baseMeasured"] is True
    assert memory["baseErrorBytes"] == memory["predictedBaseBytes"] - memory["baseBytes"]
    assert memory["checkpointBytes"] == model.metrics()["llamapool_checkpoint_bytes"]
    assert "predicted" not in model.until_condition("MemoryFits")["message"]
