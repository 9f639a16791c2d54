"""Fetching and reading the metrics of one server."""

import math
from typing import Protocol

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from llamapool.domain.facts import ServerSample
from llamapool.domain.histogram import Histogram
from llamapool.errors import ScrapeError

_HISTOGRAMS = ("time_to_first_token_seconds", "checkpoint_seconds", "prompt_tokens")
_LARGEST_PAGE_BYTES = 4 << 20


class Scraper(Protocol):
    """A way to a server's metrics."""

    def scrape(self, host: str, port: int) -> ServerSample:
        """Return what the server reports; ScrapeError if it could not be had."""


class HttpScraper:
    """Scrapes over HTTP; connections are kept and may be used from several threads."""

    def __init__(self, *, timeout_seconds: float) -> None:
        self._pool = urllib3.PoolManager(
            num_pools=256, timeout=urllib3.Timeout(total=timeout_seconds), retries=False
        )

    def scrape(self, host: str, port: int) -> ServerSample:
        """Return what the server reports.

        Raises:
            ScrapeError: no answer in time (Timeout), none at all (Unreachable), another status than 200
                (BadStatus), or text that is not Prometheus' (Malformed).
        """
        address = f"[{host}]" if ":" in host else host
        try:
            with self._pool.request(
                "GET", f"http://{address}:{port}/metrics", preload_content=False
            ) as response:
                text = response.read(_LARGEST_PAGE_BYTES)
        except urllib3.exceptions.NewConnectionError as error:  # to urllib3 this is a timeout, too
            raise ScrapeError("Unreachable", f"no connection to {address}:{port}") from error
        except urllib3.exceptions.TimeoutError as error:
            raise ScrapeError("Timeout", f"no answer from {address}:{port} in time") from error
        except urllib3.exceptions.HTTPError as error:
            # The library's text has object addresses in it, and would be new at every scrape.
            raise ScrapeError("Unreachable", f"{address}:{port}: {type(error).__name__}") from error
        if response.status != 200:  # noqa: PLR2004 - HTTP
            raise ScrapeError("BadStatus", f"{address}:{port} answers {response.status}, not 200")
        return parse_sample(text.decode(errors="replace"))


def parse_sample(text: str) -> ServerSample:
    """Read the text of a server's /metrics.

    Raises:
        ScrapeError: it is not Prometheus' text format (Malformed).
    """
    figures: dict[str, float] = {}
    buckets: dict[str, dict[float, float]] = {f"llamapool_{name}_bucket": {} for name in _HISTOGRAMS}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in buckets:
                    buckets[sample.name][float(sample.labels["le"])] = sample.value
                elif not sample.labels and math.isfinite(sample.value):
                    figures[sample.name] = sample.value
    except (ValueError, KeyError) as error:
        raise ScrapeError("Malformed", f"metrics that cannot be read: {error}") from error

    def whole(name: str) -> int | None:
        figure = figures.get(f"llamapool_{name}")
        return None if figure is None else int(figure)

    def histogram(name: str) -> Histogram | None:
        return _histogram(buckets[f"llamapool_{name}_bucket"], figures.get(f"llamapool_{name}_sum"))

    return ServerSample(
        limits_generation=whole("limits_generation"),
        pool_cap_bytes=whole("pool_cap_bytes"),
        pool_held_bytes=whole("pool_held_bytes"),
        pool_held_buffers=whole("pool_held_buffers"),
        pool_hits=whole("pool_hits_total"),
        pool_misses=whole("pool_misses_total"),
        pool_declines=whole("pool_declines_total"),
        checkpoint_bytes=whole("checkpoint_bytes"),
        state_bytes=whole("state_bytes"),
        state_budget_bytes=whole("state_budget_bytes"),
        base_bytes=whole("memory_base_bytes"),
        cgroup_limit_bytes=whole("cgroup_limit_bytes"),
        cgroup_unreclaimable_bytes=whole("cgroup_unreclaimable_bytes"),
        cgroup_oom_kills=whole("cgroup_oom_kills_total"),
        time_to_first_token=histogram("time_to_first_token_seconds"),
        checkpoint_time=histogram("checkpoint_seconds"),
        prompt_tokens=histogram("prompt_tokens"),
    )


def _histogram(buckets: dict[float, float], total: float | None) -> Histogram | None:
    """Return the histogram; None where it is absent, lacks its last bucket, or counts NaN."""
    bounds = tuple(sorted(buckets))
    if not bounds or bounds[-1] != math.inf or not all(math.isfinite(count) for count in buckets.values()):
        return None
    return Histogram(bounds, tuple(buckets[bound] for bound in bounds), total)
