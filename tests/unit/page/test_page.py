"""What the status page answers, asked over HTTP."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from llamapool.page.history import TtftHistory
from llamapool.page.render import Frame
from llamapool.page.routes import StatusPage
from tests.unit.page.models import new, troubled, well

Client = TestClient[Any, Any]
Models = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def models() -> Models:
    return {("models", body["metadata"]["name"]): body for body in (well(), troubled(), new())}


@pytest.fixture
def trouble() -> list[str]:
    return []


@pytest.fixture
async def client(models: Models, trouble: list[str]) -> AsyncIterator[Client]:
    history, began = TtftHistory(), time.time()
    for minute in range(30):
        statuses = {key: body.get("status", {}) for key, body in models.items()}
        history.sample(statuses, now=began - 60 * (30 - minute))

    def frame(now: datetime) -> Frame:
        return Frame(now=now, replica="llamapool-0", leads=True, trouble="".join(trouble))

    page = StatusPage(lambda: models, history, frame)
    async with TestClient(TestServer(page.application())) as made:
        yield made


@pytest.fixture
def text(client: Client) -> Callable[[str], Awaitable[str]]:
    async def of(path: str) -> str:
        async with client.get(path) as answer:
            return await answer.text()

    return of


class _Outline(HTMLParser):
    """Collects what a screen reader goes by, and checks that elements are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.labelled: list[str] = []
        self.pictures: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        if attributes.get("role") == "img":
            self.pictures.append(attributes.get("aria-label"))
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        self.labelled += [attributes["aria-labelledby"] or ""] if "aria-labelledby" in attributes else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An SVG element that closes itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_fleet_shows_every_model_and_those_in_trouble_first(
    text: Callable[[str], Awaitable[str]],
) -> None:
    shown = await text("/")
    places = [shown.index(f'href="/models/models/{name}"') for name in ("jamba-mini", "lfm2", "qwen3-5-27b")]
    assert places == sorted(places)
    assert "0.42s" in shown


async def test_a_model_s_page_shows_budget_decisions_and_their_evidence(
    text: Callable[[str], Awaitable[str]],
) -> None:
    shown = await text("/models/models/qwen3-5-27b")
    for told in ("base 512Mi", "PoolCapChanged", "the server&#39;s own", "Evidence of 3-ab12", "600Mi"):
        assert told in shown
    assert "0.42 to 0.42 seconds" in shown


async def test_a_model_that_nobody_has_looked_at_has_a_page(text: Callable[[str], Awaitable[str]]) -> None:
    shown = await text("/models/models/lfm2")
    assert "The operator has not looked at it yet." in shown
    assert "No request was served in the last hour" in shown


async def test_no_model_at_all_says_how_to_create_one(
    models: Models, text: Callable[[str], Awaitable[str]]
) -> None:
    models.clear()
    assert "kubectl apply --filename hybridmodel.yaml" in await text("/")


@pytest.mark.parametrize("path", ["/models/models/none", "/nothing"])
async def test_what_is_not_there_is_a_page_too(client: Client, path: str) -> None:
    async with client.get(path) as answer:
        assert answer.status == 404
        assert "All models" in await answer.text()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_written(client: Client, method: str) -> None:
    async with client.request(method, "/models/models/lfm2") as answer:
        assert answer.status == 405


async def test_text_of_the_cluster_is_never_markup(
    models: Models, text: Callable[[str], Awaitable[str]]
) -> None:
    models["models", "jamba-mini"]["status"]["conditions"][0]["message"] = "<script>alert(1)</script>"
    shown = await text("/models/models/jamba-mini")
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


async def test_a_page_needs_no_script_and_nothing_from_elsewhere(client: Client) -> None:
    async with client.get("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "http" not in (await answer.text()).replace("http-equiv", "")


async def test_that_what_is_shown_may_be_old_is_said(
    trouble: list[str], text: Callable[[str], Awaitable[str]]
) -> None:
    trouble.append("the watch has stopped")
    assert "may be old: the watch has stopped" in await text("/")


@pytest.mark.parametrize("path", ["/", "/models/models/qwen3-5-27b", "/models/models/lfm2", "/none"])
async def test_a_page_reads_well_without_eyes(path: str, text: Callable[[str], Awaitable[str]]) -> None:
    outline = _Outline()
    outline.feed(await text(path))
    assert outline.open == []
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert len(outline.ids) == len(set(outline.ids))
    assert set(outline.labelled) <= set(outline.ids)
    assert all(outline.pictures)
