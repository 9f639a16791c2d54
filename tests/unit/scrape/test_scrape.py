"""A server's metrics are read for what they say, and what is missing stays unknown."""

import math
import socket
import threading

import pytest

from llamapool.adapters.scrape import HttpScraper, parse_sample
from llamapool.domain.histogram import Histogram
from llamapool.errors import ScrapeError
from tests.unit.scrape.pages import PAGE, serving


def failure(port: int, *, timeout_seconds: float = 5) -> str:
    with pytest.raises(ScrapeError) as raised:
        HttpScraper(timeout_seconds=timeout_seconds).scrape("127.0.0.1", port)
    return raised.value.reason


def test_the_figures_of_a_page_are_read() -> None:
    with serving(PAGE) as port:
        sample = HttpScraper(timeout_seconds=5).scrape("127.0.0.1", port)
    assert sample.checkpoint_bytes == 156893184
    assert sample.limits_generation == 7
    assert sample.pool_cap_bytes == 629145600
    assert sample.pool_hits == 3
    assert sample.time_to_first_token == Histogram((0.1, 1.0, math.inf), (1.0, 4.0, 5.0), 3.5)


def test_a_figure_that_is_not_a_number_is_unknown() -> None:
    assert parse_sample(PAGE).base_bytes is None


def test_a_figure_that_is_missing_is_unknown_and_not_0() -> None:
    sample = parse_sample("")
    assert (sample.pool_cap_bytes, sample.limits_generation, sample.time_to_first_token) == (None, None, None)


def test_a_histogram_without_its_top_bucket_is_unknown() -> None:
    page = PAGE.replace('llamapool_time_to_first_token_seconds_bucket{le="+Inf"} 5\n', "")
    assert parse_sample(page).time_to_first_token is None


@pytest.mark.parametrize("page", ["llamapool_pool_cap_bytes\n", "<html>no metrics</html>", 'a{b="c} 1\n'])
def test_text_that_is_not_prometheus_is_malformed(page: str) -> None:
    with serving(page) as port:
        assert failure(port) == "Malformed"


def test_a_status_other_than_200_is_told() -> None:
    with serving(PAGE, status=503) as port:
        assert failure(port) == "BadStatus"


def test_a_server_that_does_not_answer_in_time_is_left() -> None:
    with serving(PAGE, delay=threading.Event()) as port:
        assert failure(port, timeout_seconds=0.2) == "Timeout"


def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert failure(port) == "Unreachable"
