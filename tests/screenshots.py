"""Draws the status page for the docs, in Chromium: ``python -m tests.screenshots``.

The models are those of the page's unit tests, so that the pictures are the same wherever they are drawn.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from llamapool.page.history import TtftHistory
from llamapool.page.render import Frame
from llamapool.page.routes import StatusPage
from tests.unit.page.models import new, troubled, well

DOCS = Path(__file__).parents[1] / "docs" / "images"
PORT = 18082
NOW = datetime(2026, 12, 1, 12, 10, tzinfo=UTC)
BODIES = {("models", body["metadata"]["name"]): body for body in (well(), troubled(), new())}
PAGES = {
    "fleet": ("/", 1100, 420, BODIES),
    "model": ("/models/models/qwen3-5-27b", 1100, 1360, BODIES),
    "trouble": ("/models/models/jamba-mini", 1100, 1420, BODIES),
    "empty": ("/", 1100, 320, {}),
    "error": ("/models/models/mamba", 1100, 280, BODIES),
    "narrow": ("/models/models/jamba-mini", 500, 1960, BODIES),
}


def history() -> TtftHistory:
    """Three quarters of an hour in which the time to first token rises and falls."""
    made = TtftHistory()
    for minute in range(46):
        p90 = 0.42 + 0.18 * math.sin(minute / 6) ** 2
        status = {"ttft": {"p50": f"{p90 / 2:.3f}s", "p90": f"{p90:.3f}s"}} if not 20 < minute < 26 else {}
        made.sample(dict.fromkeys(BODIES, status), now=NOW.timestamp() - 60 * (45 - minute))
    return made


def shoot(path: str, width: int, height: int, file: Path) -> None:
    """Draw one page."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={profile}", f"--window-size={width},{height}", f"--screenshot={file}",
                f"http://127.0.0.1:{PORT}{path}",
            ],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip


async def draw() -> None:
    """Serve the pages and draw them."""
    if shutil.which("chromium") is None:
        raise SystemExit("screenshots: chromium is not on PATH: apt-get install chromium")
    shown: dict[tuple[str, str], dict[str, object]] = {}
    page = StatusPage(
        lambda: shown, history(), lambda _: Frame(now=NOW, replica="llamapool-7c9d5", leads=True)
    )
    runner = web.AppRunner(page.application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", PORT).start()
    DOCS.mkdir(parents=True, exist_ok=True)
    for name, (path, width, height, bodies) in PAGES.items():
        shown.clear()
        shown.update(bodies)
        await asyncio.to_thread(shoot, path, width, height, DOCS / f"status-page-{name}.png")
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(draw())
