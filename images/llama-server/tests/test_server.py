"""The patched server as a whole, on a synthetic hybrid model, beside upstream's."""

from __future__ import annotations

import json
import mmap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.models.hybrid import HybridShape

MIB = 1 << 20
STATE_BYTES = HybridShape().state_bytes
CHECKPOINT_BYTES = 150 * MIB  # as mapped
STATE = "llamapool_state_bytes"
BUDGET = "llamapool_state_budget_bytes"


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"LLAMAPOOL_MODE": "off"},
        {"LLAMAPOOL_POOL_CAP_BYTES": "0"},
        {"LLAMAPOOL_STATE_BUDGET_BYTES": str(3 * CHECKPOINT_BYTES)},
    ],
    ids=["pool", "off", "cap 0", "tight budget"],
)
def test_it_answers_what_upstream_answers(
    servers: Any, hybrid_model: Path, upstream_answers: str, env: dict[str, str]
) -> None:
    server = servers.start(hybrid_model, "--parallel", "1", env=env).until_ready()
    assert server.conversations() == upstream_answers
    assert server.stop() == 0


QUICK_FIRSTS = (1, 6)  # of the failing allocations, that `make test` tries; `make test-long` tries them all


@pytest.mark.parametrize(
    "first",
    [pytest.param(each, marks=() if each in QUICK_FIRSTS else pytest.mark.long) for each in range(1, 13)],
)
@pytest.mark.parametrize(
    "pool",
    # Without one every allocation of state is the server's own; with one the next is mostly made ahead of it.
    [{"LLAMAPOOL_POOL_CAP_BYTES": "0"}, pytest.param({}, marks=pytest.mark.long)],
    ids=["cap 0", "pool"],
)
@pytest.mark.parametrize("count", [1, 3])
def test_it_answers_what_upstream_answers_when_an_allocation_of_state_fails(
    *,
    servers: Any,
    hybrid_model: Path,
    upstream_answers: str,
    failing_mmap: Path,
    pool: dict[str, str],
    first: int,
    count: int,
) -> None:
    failing = {"LD_PRELOAD": str(failing_mmap), "FAIL_MMAP_FIRST": str(first), "FAIL_MMAP_COUNT": str(count)}
    env = failing | pool
    server = servers.start(hybrid_model, "--parallel", "1", env=env).until_ready()
    assert server.conversations() == upstream_answers
    assert server.metrics()["llamapool_allocation_failures_total"] >= 1
    assert server.stop() == 0


def test_state_never_exceeds_the_budget_in_any_scrape(
    servers: Any, hybrid_model: Path, tmp_path: Path
) -> None:
    limits = tmp_path / "limits.json"
    env = {
        "LLAMAPOOL_LIMITS_FILE": str(limits),
        "LLAMAPOOL_STATE_BUDGET_BYTES": str(8 * CHECKPOINT_BYTES),
    }
    server = servers.start(hybrid_model, "--parallel", "2", env=env).until_ready()
    done = threading.Event()
    over: list[tuple[float, float]] = []
    highest = 0.0

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.01):
            figures = server.metrics()
            highest = max(highest, figures[STATE])
            if figures[STATE] > figures[BUDGET]:
                over.append((figures[STATE], figures[BUDGET]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    server.conversations(("one", "two", "three"), turns=5)
    limits.write_text(json.dumps({"generation": 1, "stateBudgetBytes": 4 * CHECKPOINT_BYTES}))
    server.conversations(("four", "five"), turns=3)
    limits.write_text(json.dumps({"generation": 2, "stateBudgetBytes": None}))
    server.conversations(("six", "seven"), turns=3)
    done.set()
    watcher.join()
    assert over == []
    assert highest > 4 * CHECKPOINT_BYTES
    assert server.stop() == 0


def test_an_idle_server_gives_state_up_when_its_budget_shrinks(
    servers: Any, hybrid_model: Path, tmp_path: Path
) -> None:
    limits = tmp_path / "limits.json"
    env = {"LLAMAPOOL_LIMITS_FILE": str(limits)}
    server = servers.start(hybrid_model, "--parallel", "2", "--cache-ram", "0", env=env).until_ready()
    server.conversations(turns=3)
    assert server.metrics()[STATE] > 2 * CHECKPOINT_BYTES
    limits.write_text(json.dumps({"generation": 1, "stateBudgetBytes": 2 * CHECKPOINT_BYTES}))
    server.until(BUDGET, 2 * CHECKPOINT_BYTES)
    assert server.metrics()[STATE] <= 2 * CHECKPOINT_BYTES


def test_a_limits_file_is_applied_live_within_two_seconds(
    servers: Any, hybrid_model: Path, tmp_path: Path
) -> None:
    limits = tmp_path / "limits.json"
    server = servers.start(hybrid_model, env={"LLAMAPOOL_LIMITS_FILE": str(limits)}).until_ready()
    limits.write_text(json.dumps({"generation": 3, "poolCapBytes": 2 * CHECKPOINT_BYTES}))
    server.until("llamapool_limits_generation", 3, seconds=2)
    assert server.metrics()["llamapool_pool_cap_bytes"] == 2 * CHECKPOINT_BYTES


def test_metrics_answer_while_the_model_is_loading(servers: Any, hybrid_model: Path) -> None:
    server = servers.start(hybrid_model)
    deadline = time.monotonic() + 10
    figures: dict[str, float] = {}
    while not figures and time.monotonic() < deadline:
        try:
            figures = server.metrics()
        except OSError:  # the port is not open yet
            time.sleep(0.005)
    assert "llamapool_pool_cap_bytes" in figures
    assert "llamapool_memory_base_bytes" not in figures  # not loaded yet
    server.until_ready()
    assert "llamapool_memory_base_bytes" in server.metrics()


def test_a_sleeping_server_holds_no_state_and_scrapes_do_not_keep_it_awake(
    servers: Any, hybrid_model: Path
) -> None:
    server = servers.start(hybrid_model, "--sleep-idle-seconds", "3").until_ready()
    first = server.conversations(turns=1)
    assert server.metrics()[STATE] > 0
    server.until(STATE, 0, seconds=15)
    assert server.metrics()["llamapool_checkpoints_live"] == 0
    assert server.conversations(turns=1) == first
    assert server.stop() == 0


def test_an_idle_server_empties_its_pool(servers: Any, hybrid_model: Path) -> None:
    env = {"LLAMAPOOL_IDLE_TRIM_SECONDS": "2"}
    flags = ("--parallel", "1", "--cache-ram", "0", "--ctx-checkpoints", "1")
    server = servers.start(hybrid_model, *flags, env=env).until_ready()
    server.conversations()
    assert server.metrics()["llamapool_pool_hits_total"] > 0
    server.until("llamapool_pool_held_bytes", 0)


def test_the_black_box_survives_a_kill(servers: Any, hybrid_model: Path, tmp_path: Path) -> None:
    box = tmp_path / "termination-log"
    env = {"LLAMAPOOL_TERMINATION_LOG": str(box), "LLAMAPOOL_POOL_CAP_BYTES": str(CHECKPOINT_BYTES)}
    server = servers.start(hybrid_model, env=env).until_ready()
    server.conversations(turns=1)
    server.until("llamapool_pool_held_bytes", CHECKPOINT_BYTES)  # full: nothing is made ahead any more
    state_bytes = server.metrics()[STATE]
    time.sleep(1.5)
    killed_at = time.time()
    server.process.kill()
    server.process.wait()
    record = json.loads(box.read_text())
    assert box.stat().st_size <= 1024
    assert record["phase"] == "ready"
    assert record["state_bytes"] == state_bytes
    assert killed_at - record["at"] <= 2.5
    assert "tell me more" not in box.read_text()


def test_it_is_neutral_without_checkpoints(servers: Any, hybrid_model: Path) -> None:
    flags = ("--parallel", "1", "--ctx-checkpoints", "0")
    upstream = servers.start(hybrid_model, *flags, upstream=True).until_ready()
    answers = upstream.conversations(turns=2)
    upstream.stop()
    server = servers.start(hybrid_model, *flags).until_ready()
    assert server.conversations(turns=2) == answers
    figures = server.metrics()
    assert figures["llamapool_checkpoint_seconds_count"] == 0
    assert figures["llamapool_pool_misses_total"] == 0


def test_it_is_neutral_on_a_model_without_recurrent_layers(servers: Any, dense_model: Path) -> None:
    upstream = servers.start(dense_model, "--parallel", "1", upstream=True).until_ready()
    answers = upstream.conversations()
    upstream.stop()
    server = servers.start(dense_model, "--parallel", "1").until_ready()
    assert server.conversations() == answers
    assert server.metrics()["llamapool_pool_misses_total"] == 0


@pytest.mark.parametrize(
    ("flags", "mode", "states"),
    [((), "on", 2), (("--ctx-checkpoints", "0"), "on", 0), ((), "off", 0)],
    ids=["pool", "no checkpoints", "off"],
)
def test_huge_pages_are_wished_for_under_the_states_of_which_checkpoints_are_made(
    *, servers: Any, hybrid_model: Path, flags: tuple[str, ...], mode: str, states: int
) -> None:
    env = {"LLAMAPOOL_POOL_CAP_BYTES": "0", "LLAMAPOOL_MODE": mode}  # a pool's buffers would be counted too
    server = servers.start(hybrid_model, "--parallel", "2", *flags, env=env).until_ready()
    wished_bytes = bytes_wished_to_be_in_huge_pages(server.process.pid)
    # Whole pages of them: the first and the last are shared with other data.
    assert states * STATE_BYTES - 2 * mmap.PAGESIZE <= wished_bytes <= states * CHECKPOINT_BYTES


def bytes_wished_to_be_in_huge_pages(pid: int) -> int:
    """The size of all memory areas of the process that have `hg` among their VmFlags."""
    wished_bytes, area_bytes = 0, 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, *values = line.split()
        if name == "Size:":
            area_bytes = int(values[0]) * 1024
        elif name == "VmFlags:" and "hg" in values:
            wished_bytes += area_bytes
    return wished_bytes


def test_the_time_to_first_token_is_the_clients_within_a_bucket(servers: Any, hybrid_model: Path) -> None:
    server = servers.start(hybrid_model, "--parallel", "1", "--cache-ram", "0").until_ready()
    started = time.monotonic()
    server.complete("a prompt of a few words", tokens=1)
    by_the_client = time.monotonic() - started
    (bound, _), *_ = [row for row in server.buckets("llamapool_time_to_first_token_seconds") if row[1] == 1]
    assert bound / 1.25**2 <= by_the_client <= bound * 1.25


def test_a_saved_prompt_shares_its_checkpoints(servers: Any, hybrid_model: Path) -> None:
    server = servers.start(hybrid_model, "--parallel", "1").until_ready()
    server.conversations(("one", "two"), turns=1)
    figures = server.metrics()
    whole_prompts = figures["llamapool_prompt_cache_bytes"]
    assert whole_prompts > 0
    made = figures["llamapool_checkpoint_seconds_count"]
    assert figures["llamapool_checkpoints_live_bytes"] <= made * CHECKPOINT_BYTES


def test_children_of_one_prompt_share_its_checkpoints(servers: Any, hybrid_model: Path) -> None:
    server = servers.start(hybrid_model, "--parallel", "4", "--cache-ram", "0").until_ready()
    server.complete("a prompt that all four continue", tokens=2, n_cmpl=4)
    figures = server.metrics()
    assert figures["llamapool_checkpoints_live"] == figures["llamapool_checkpoint_seconds_count"]


def test_router_mode_is_refused_with_a_clear_message(servers: Any) -> None:
    server = servers.start(None)
    assert server.process.wait(30) == 1
    assert "router mode is not supported" in server.log()


def test_a_bad_setting_is_refused_with_its_name_and_what_would_be_right(
    servers: Any, hybrid_model: Path
) -> None:
    server = servers.start(hybrid_model, env={"LLAMAPOOL_POOL_CAP_BYTES": "1Gi"})
    assert server.process.wait(30) == 1
    assert "LLAMAPOOL_POOL_CAP_BYTES is '1Gi', want a whole number of bytes from 0" in server.log()
