"""Trials of the pool under live traffic: of the one that ships, and of one that a delay makes harmful."""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kubectl import CommandError, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.models import Model

SLOW_POOL_IMAGE = "LLAMAPOOL_SLOW_POOL_IMAGE"
TRIAL = {"legs": 7, "legSeconds": 20, "minRequests": 8}
SPEC: dict[str, Any] = {"pool": {"mode": "Auto", "limitPercent": 25, "idleTrimSeconds": 0}}
SERVER: dict[str, Any] = {
    "slots": 2,
    "contextSize": 2048,
    "ctxCheckpoints": 1,
    "cacheRAM": 0,
    "extraArgs": ["--threads", "1"],  # see tests/e2e/test_kills.py
}
TRIAL_SECONDS = 600


@pytest.fixture
def slow_pool_image() -> str:
    """The server's image built with a delay in the pool's hits; `make test-long` names it."""
    image = os.environ.get(SLOW_POOL_IMAGE)
    if image is None:
        raise LookupError(f"{SLOW_POOL_IMAGE} is not set; `make test-long` builds the image and names it")
    return image


@contextmanager
def traffic(model: Model, *, length: Callable[[], int] = lambda: 2) -> Iterator[None]:
    """Two clients that ask, one prompt after the other, each of its own words."""
    stop = threading.Event()

    def ask(client: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            words = " ".join(f"w{client}{number:05}{word}" for word in range(length()))
            model.chat(words, max_tokens=1)

    clients = [threading.Thread(target=ask, args=(client,)) for client in (1, 2)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join()


def served(create: Callable[..., Model], *, ttft: str, trial: dict[str, int] = TRIAL, **server: Any) -> Model:
    model = create(server={**SERVER, **server}, tuning={"ttft": ttft, "trial": trial}, **SPEC)
    model.until_condition("Ready")
    model.chat("hello")
    until("a cap of some buffers", lambda: (model.status().get("pool", {}).get("capBytes") or 0) > 0)
    return model


def tried(model: Model) -> dict[str, Any]:
    """A trial that came to its end; one that other work on the machine has made slow is asked for again."""
    for request in ("first", "second", "third"):
        model.kubectl("annotate", "hybridmodel", model.name, f"llamapool.dev/trial={request}", "--overwrite")
        until("a trial", lambda: trial_of(model).get("result") == "Running", timeout_seconds=30)
        trial = until("the trial's end", lambda: finished(model), timeout_seconds=TRIAL_SECONDS)
        if not re.match(r"time to first token p90 went from|\d+ requests in leg", trial["message"]):
            break
        until("the pool on", lambda: capped(model, off=False), timeout_seconds=15)
    return trial


def trial_of(model: Model) -> dict[str, Any]:
    trial: dict[str, Any] = model.status().get("trial", {})
    return trial


def finished(model: Model) -> dict[str, Any] | None:
    try:
        trial = trial_of(model)
    except CommandError:
        return None
    return trial if trial.get("result") not in (None, "Running") else None


def capped(model: Model, *, off: bool) -> bool:
    """Whether the server has the pool off, or on."""
    return (model.metrics()["llamapool_pool_cap_bytes"] == 0) is off


def test_a_harmful_pool_is_found_recommended_and_left_on(
    create: Callable[..., Model], slow_pool_image: str
) -> None:
    model = served(create, ttft="Recommend", image=slow_pool_image)
    with traffic(model):
        trial = tried(model)
    assert trial["result"] == "PoolHarms", trial
    assert model.status()["decisions"][0]["outcome"] == "Recommended"
    until("the pool on", lambda: capped(model, off=False), timeout_seconds=15)


def test_a_harmful_pool_is_turned_off_in_auto(create: Callable[..., Model], slow_pool_image: str) -> None:
    model = served(create, ttft="Auto", image=slow_pool_image)
    with traffic(model):
        trial = tried(model)
    assert trial["result"] == "PoolHarms", trial
    until("the pool off", lambda: capped(model, off=True), timeout_seconds=15)
    assert model.condition("PoolActive") is not None
    assert model.until_condition("PoolActive", "False")["reason"] == "TurnedOffAfterTrial"


def test_the_pool_as_it_ships_stays_on(create: Callable[..., Model]) -> None:
    model = served(create, ttft="Auto")
    with traffic(model):
        trial = tried(model)
    assert trial["result"] in ("PoolHelps", "Inconclusive"), trial
    until("the pool on", lambda: capped(model, off=False), timeout_seconds=15)


def test_a_mix_that_changes_in_mid_trial_is_inconclusive(create: Callable[..., Model]) -> None:
    # So many requests that half a leg of them tells a change of the mix from chance.
    model = served(create, ttft="Auto", trial={"legs": 7, "legSeconds": 45, "minRequests": 16})

    def length() -> int:
        return 2 if trial_of(model).get("legsDone", 0) < 2 else 20

    with traffic(model, length=length):
        trial = tried(model)
    assert trial["result"] == "Inconclusive", trial
    assert "other lengths" in trial["message"]
    until("the pool on", lambda: capped(model, off=False), timeout_seconds=15)
