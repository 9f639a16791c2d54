"""Under 2 GiB, with nothing else set, conversations run to their ends: no kill, no bound passed."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llamapool.domain.black_box import parse_black_box
from tests.soak.conversations import Load, hold
from tests.soak.server_pod import LIMIT, VOLUME
from tests.soak.watch import Watch, summary
from tests.support.kubectl import CommandError, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.soak.conversations import Progress
    from tests.soak.server_pod import ServerPod

pytestmark = pytest.mark.timeout(3600)

FOLDER = Path(__file__).parents[2] / "build" / "soak"
MIB = 1 << 20
CHECKPOINT_BYTES = 150 * MIB  # as mapped
BASE_WINDOW_SECONDS = 600
INSIDE_BYTES, INSIDE_SECONDS = 64 * MIB, 2.0
ONE = Load(document_bytes=600)
FOUR = Load(conversations=4, message_bytes=1)  # short: without a cache every turn processes all of it again
NO_CACHE = ("--cache-ram", "0")


def flags(slots: int, load: Load, *others: str) -> tuple[str, ...]:
    return ("--parallel", str(slots), "--ctx-size", str(slots * load.context_tokens), *others)


def write_record(case: str, pod: ServerPod, figures: dict[str, Any]) -> None:
    """Figures come first, the verdict after: a failed run leaves its record, too."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    record = {"case": case, "limit": LIMIT, "restarts": pod.restarts(), **figures}
    (FOLDER / f"{case}.json").write_text(json.dumps(record, indent=2) + "\n")


def soak(
    case: str, pod: ServerPod, load: Load, meanwhile: Callable[[Watch], None] | None = None
) -> dict[str, Any]:
    """Hold the conversations under watch, write the record, assert every bound; the figures."""
    started = time.monotonic()
    with Watch(pod.address()) as watch:
        progress = hold(pod.address(), load, (lambda: meanwhile(watch)) if meanwhile else None)
    figures = {"seconds": time.monotonic() - started, **turns(load, progress), **summary(watch)}
    write_record(case, pod, figures)
    assert_bounds(figures)
    assert progress.turns == load.conversations * load.turns
    assert pod.restarts() == 0
    return figures


def turns(load: Load, progress: Progress) -> dict[str, Any]:
    every = sorted(seconds for each in progress.turn_seconds for seconds in each)
    return {
        "conversations": load.conversations,
        "turns": progress.turns,
        "broken_off": progress.broken_off,
        "turn_p50_seconds": every[len(every) // 2] if every else None,
        "turn_p90_seconds": every[int(0.9 * (len(every) - 1))] if every else None,
    }


def assert_bounds(figures: dict[str, Any]) -> None:
    assert figures["broken_off"] == []
    assert figures["cgroup_oom_kills_total"] == 0
    assert figures["scrapes_failed"] == 0
    assert figures["over_budget_scrapes"] == 0
    assert figures["inside_headroom"]["most_bytes"] <= INSIDE_BYTES
    assert figures["inside_headroom"]["longest_seconds"] <= INSIDE_SECONDS


def assert_state_came_back(figures: dict[str, Any]) -> None:
    """It gave way to the smallest budget, and fills the last one again but for less than two buffers."""
    assert figures["state_bytes"]["last"] > figures["state_budget_bytes"]["lowest"]
    assert figures["state_bytes"]["last"] > figures["state_budget_bytes"]["last"] - 2 * CHECKPOINT_BYTES


@pytest.mark.parametrize("cache", [(), NO_CACHE], ids=["cache", "no-cache"])
def test_one_conversation_of_100_turns(start: Callable[..., ServerPod], cache: tuple[str, ...]) -> None:
    figures = soak(f"one-{'no-cache' if cache else 'cache'}", start(*flags(2, ONE, *cache)), ONE)
    assert figures["checkpoints_evicted_total"] > 0  # the budget was what held it


@pytest.mark.parametrize("cache", [(), NO_CACHE], ids=["cache", "no-cache"])
def test_four_conversations_of_100_turns_over_two_slots(
    start: Callable[..., ServerPod], cache: tuple[str, ...]
) -> None:
    soak(f"four-{'no-cache' if cache else 'cache'}", start(*flags(2, FOUR, *cache)), FOUR)


def test_the_ceiling_halved_and_restored(start: Callable[..., ServerPod]) -> None:
    pod = start(*flags(2, ONE))

    def halve_and_restore(watch: Watch) -> None:
        whole = int(watch.last["state_budget_bytes"])
        pod.write_ceiling(1, whole // 2)
        until("half the budget", lambda: watch.last["state_budget_bytes"] <= whole // 2, timeout_seconds=60)
        time.sleep(10)
        assert watch.last["state_bytes"] <= whole // 2
        pod.write_ceiling(2, None)
        until("the budget back", lambda: watch.last["state_budget_bytes"] > 0.9 * whole, timeout_seconds=60)

    assert_state_came_back(soak("ceiling", pod, ONE, halve_and_restore))


def test_a_memory_backed_volume_slowly_filled_and_emptied(start: Callable[..., ServerPod]) -> None:
    """Files of 8 MiB, two a second; state comes back once the fill is out of the base's ten minutes."""
    load = replace(ONE, think_seconds=0.5)  # so that turns go on while it fills
    pod, files, seconds_each = start(*flags(2, load)), 64, 0.5
    fill = f"for i in $(seq {files}); do head -c 8M /dev/zero > {VOLUME}/$i; sleep {seconds_each}; done"
    drain = f"for i in $(seq {files}); do rm {VOLUME}/$i; sleep {seconds_each}; done"

    def fill_and_drain(watch: Watch) -> None:
        whole = watch.last["state_budget_bytes"]
        pod.execute(fill)
        time.sleep(5)
        assert watch.last["state_budget_bytes"] < whole - files * 7 * MIB
        pod.execute(drain)
        until(
            "the budget back",
            lambda: watch.last["state_budget_bytes"] > 0.9 * whole,
            timeout_seconds=BASE_WINDOW_SECONDS + 60,
        )

    assert_state_came_back(soak("volume", pod, load, fill_and_drain))


def test_resized_down_and_up_in_place(start: Callable[..., ServerPod]) -> None:
    """A shrink lowers the ceiling first, as the operator does: the kubelet refuses one below the usage."""
    pod = start(*flags(2, ONE))

    def resize(watch: Watch) -> None:
        whole = int(watch.last["state_budget_bytes"])
        pod.write_ceiling(1, whole - 640 * MIB)
        until("the smaller budget", lambda: watch.last["state_budget_bytes"] <= whole - 640 * MIB)
        pod.resize("1536Mi")
        pod.write_ceiling(2, None)
        until("the smaller limit seen", lambda: watch.last["cgroup_limit_bytes"] == 1536 * MIB)
        time.sleep(10)
        assert watch.last["state_budget_bytes"] <= whole - 500 * MIB
        pod.resize("2Gi")
        until("the larger limit seen", lambda: watch.last["cgroup_limit_bytes"] == 2048 * MIB)

    figures = soak("resized", pod, ONE, resize)
    assert figures["limit_bytes"] == [1536 * MIB, 2048 * MIB]
    assert_state_came_back(figures)


def test_control_stock_llama_server_is_killed_by_its_ninth_turn(start: Callable[..., ServerPod]) -> None:
    """In the seventh, here: the first turn leaves one checkpoint of 149.6 MiB, each later one two.

    One is where the last prompt ended, one four tokens before its own end. After six turns that is eleven,
    with the base of 354 MiB 2,000 MiB; a twelfth is too much. A conversation that does not go on where
    it was restores a checkpoint first, and leaves one a turn.
    """
    pod = start(*flags(2, ONE, *NO_CACHE), stock=True)
    progress = hold(pod.address(), ONE)
    ended = until("the kubelet's account of the kill", pod.last_end, timeout_seconds=30)
    figures = {"turns": progress.turns, "broken_off": progress.broken_off, "reason": ended["reason"]}
    write_record("control", pod, figures)
    assert ended["reason"] == "OOMKilled"
    assert progress.turns < 9


def test_the_black_box_of_a_burst_has_the_accounting_of_the_last_second(
    start: Callable[..., ServerPod],
) -> None:
    pod = start(*flags(2, ONE))
    hold(pod.address(), Load(turns=10))
    with Watch(pod.address()) as watch:
        time.sleep(2)
    began = time.time()
    with pytest.raises(CommandError):  # it dies with its container
        pod.execute(f"head -c 2G /dev/zero > {VOLUME}/burst; sleep 60")
    took_seconds = time.time() - began
    ended = until("the kubelet's account of the kill", pod.last_end, timeout_seconds=30)
    box = parse_black_box(ended["message"])
    figures = {"reason": ended["reason"], "burst_seconds": took_seconds, "message": ended["message"].strip()}
    write_record("burst", pod, figures)
    assert ended["reason"] == "OOMKilled"
    assert box is not None
    assert box.phase == "ready"
    assert box.at_seconds >= math.floor(began - 1)  # whole seconds, rounded down
    assert box.limit_bytes == 2048 * MIB
    assert 0 < box.state_bytes <= watch.last["state_bytes"]
