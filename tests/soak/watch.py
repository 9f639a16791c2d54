"""A scrape of a server every second, and what all of them together say about its bounds."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tests.soak.server_pod import metrics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

EVERY_SECONDS = 1.0
HEADROOM_SHARE, LEAST_HEADROOM_BYTES = 0.05, 256 << 20
_COUNTERS = (
    "checkpoints_evicted_total",
    "checkpoints_skipped_total",
    "prompts_evicted_total",
    "prompts_skipped_total",
    "allocation_failures_total",
    "pool_hits_total",
    "pool_misses_total",
    "cgroup_oom_kills_total",
)


@dataclass(frozen=True)
class Scrape:
    """One of them.

    Attributes:
        at_seconds: when it was answered, by a clock that only goes forward.
        took_seconds: until it was.
        figures: samples by name, without prefix.
    """

    at_seconds: float
    took_seconds: float
    figures: dict[str, float]

    @property
    def over_budget_bytes(self) -> float:
        """State beyond the budget that the same scrape reports."""
        return self.figures["state_bytes"] - self.figures["state_budget_bytes"]

    @property
    def inside_headroom_bytes(self) -> float:
        """Unreclaimable memory beyond the limit less the headroom; negative where it is not reached."""
        limit = self.figures["cgroup_limit_bytes"]
        headroom = max(LEAST_HEADROOM_BYTES, HEADROOM_SHARE * limit)
        return self.figures["cgroup_unreclaimable_bytes"] - (limit - headroom)


@dataclass
class Watch:
    """Scrapes a server for as long as its block lasts.

    Attributes:
        address: of the server.
        scrapes: so far.
        failures: scrapes that were not answered: when, and why.
    """

    address: str
    scrapes: list[Scrape] = field(default_factory=list)
    failures: list[tuple[float, str]] = field(default_factory=list)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.scrape()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread:
            self._thread.join()

    @property
    def last(self) -> dict[str, float]:
        return self.scrapes[-1].figures

    def scrape(self) -> None:
        """One scrape, now."""
        started = time.monotonic()
        try:
            figures = metrics(self.address)
        except OSError as error:
            self.failures.append((started, str(error)))
        else:
            now = time.monotonic()
            self.scrapes.append(Scrape(now, now - started, figures))

    def _run(self) -> None:
        due = time.monotonic()
        while not self._done.wait(max(0.0, due - time.monotonic())):
            due += EVERY_SECONDS
            self.scrape()


def longest_inside_seconds(scrapes: Sequence[Scrape]) -> float:
    """The longest time inside the headroom, from the first scrape that saw it to one that did not."""
    longest, since = 0.0, None
    for scrape in scrapes:
        if since is not None:
            longest = max(longest, scrape.at_seconds - since)
        if scrape.inside_headroom_bytes <= 0:
            since = None
        elif since is None:
            since = scrape.at_seconds
    return longest


def summary(watch: Watch) -> dict[str, Any]:
    """The figures of a run, for its record."""
    scrapes = watch.scrapes
    took = sorted(scrape.took_seconds for scrape in scrapes)
    budgets = [int(scrape.figures["state_budget_bytes"]) for scrape in scrapes]
    states = [int(scrape.figures["state_bytes"]) for scrape in scrapes]
    return {
        "scrapes": len(scrapes),
        "scrapes_failed": len(watch.failures),
        "scrape_p99_seconds": took[int(0.99 * (len(took) - 1))],
        "limit_bytes": sorted({int(scrape.figures["cgroup_limit_bytes"]) for scrape in scrapes}),
        "state_budget_bytes": {"lowest": min(budgets), "highest": max(budgets), "last": budgets[-1]},
        "state_bytes": {"highest": max(states), "last": states[-1]},
        "over_budget_scrapes": sum(scrape.over_budget_bytes > 0 for scrape in scrapes),
        "inside_headroom": {
            "most_bytes": max(0, *(int(scrape.inside_headroom_bytes) for scrape in scrapes)),
            "scrapes": sum(scrape.inside_headroom_bytes > 0 for scrape in scrapes),
            "longest_seconds": longest_inside_seconds(scrapes),
        },
        "base_bytes": {
            "first": int(scrapes[0].figures["memory_base_bytes"]),
            "highest": max(int(scrape.figures["memory_base_bytes"]) for scrape in scrapes),
        },
        **{name: int(watch.last[name]) for name in _COUNTERS},
    }
