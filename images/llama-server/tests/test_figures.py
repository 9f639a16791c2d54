"""The server's figures under load: at once whatever it does, and those of a client's stopwatch."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

STATE = "llamapool_state_bytes"
MADE = "llamapool_checkpoint_seconds_count"
SAVED = "llamapool_prompt_cache_bytes"
SLEEP_SECONDS = 5


class Scraper(threading.Thread):
    """Scrapes a server until told to stop; seconds that each took."""

    def __init__(self, server: Any, every_seconds: float) -> None:
        super().__init__()
        self._server, self._every = server, every_seconds
        self._done = threading.Event()
        self.took_seconds: list[float] = []

    def run(self) -> None:
        while not self._done.wait(self._every):
            started = time.monotonic()
            self._server.metrics()
            self.took_seconds.append(time.monotonic() - started)

    def stop(self) -> None:
        self._done.set()
        self.join()


@pytest.fixture
def scraped(servers: Any, hybrid_model: Path) -> Iterator[tuple[Any, Scraper]]:
    """A server that sleeps after 5 s of idleness, and is scraped all the time."""
    flags = ("--parallel", "1", "--sleep-idle-seconds", str(SLEEP_SECONDS))
    server = servers.start(hybrid_model, *flags).until_ready()
    scraper = Scraper(server, every_seconds=0.2)
    scraper.start()
    yield server, scraper
    scraper.stop()


@pytest.mark.long
def test_scrapes_answer_through_prefill_prompt_saves_sleep_and_wake_and_let_it_sleep(
    scraped: tuple[Any, Scraper],
) -> None:
    server, scraper = scraped
    server.complete("a long prompt. " * 60)
    server.conversations(("one", "two"), turns=3)
    figures = server.metrics()
    assert figures[SAVED] > 0
    assert figures[MADE] > 0
    idle_since = time.monotonic()
    server.until(STATE, 0, seconds=SLEEP_SECONDS + 10)
    assert time.monotonic() - idle_since >= SLEEP_SECONDS - 1
    time.sleep(2)
    assert server.metrics()[STATE] == 0  # and none of the scrapes has woken it
    server.complete("wake up")
    assert server.metrics()[MADE] > figures[MADE]
    took = sorted(scraper.took_seconds)
    assert len(took) >= 50
    assert took[int(0.99 * (len(took) - 1))] < 0.05, took[-5:]


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[max(0, round(share * len(values)) - 1)]


def test_the_histogram_has_the_quantiles_of_a_clients_stopwatch_within_a_bucket(
    servers: Any, hybrid_model: Path
) -> None:
    server = servers.start(hybrid_model, "--parallel", "2", "--cache-ram", "0").until_ready()

    def time_one(number: int) -> float:
        prompt = f"{number} of them. " * (1 + number % 4)
        started = time.monotonic()
        server.complete(prompt, tokens=1)  # the answer is its first token
        return time.monotonic() - started

    with ThreadPoolExecutor(4) as clients:
        by_the_client = list(clients.map(time_one, range(20)))
    rows = server.buckets("llamapool_time_to_first_token_seconds")
    bounds = [bound for bound, _ in rows]
    for share in (0.5, 0.9):
        by_the_histogram = next(index for index, (_, count) in enumerate(rows) if count >= share * 20)
        by_the_stopwatch = bisect_left(bounds, quantile(by_the_client, share))
        assert abs(by_the_histogram - by_the_stopwatch) <= 1, (share, sorted(by_the_client))
