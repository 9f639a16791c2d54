"""The whole server under AddressSanitizer, leaks included, from its start to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import builds
from tests.bench.builds import Build

if TYPE_CHECKING:
    from pathlib import Path

STATE = "llamapool_state_bytes"
TIGHT_BYTES = 4 * (150 << 20)
STRICT = {"ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1:abort_on_error=0:exitcode=99"}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "budget", [{}, {"LLAMAPOOL_STATE_BUDGET_BYTES": str(TIGHT_BYTES)}], ids=["free", "tight"]
)
def test_it_is_clean_through_conversations_sleep_wake_and_shutdown(
    servers: Any, hybrid_model: Path, budget: dict[str, str]
) -> None:
    flags = ("--parallel", "2", "--sleep-idle-seconds", "4")
    program = builds.server(Build.SANITIZED)
    server = servers.start(hybrid_model, *flags, program=program, env={**STRICT, **budget}).until_ready()
    first = server.conversations(("hello", "zebra", "third"), turns=3)
    server.until(STATE, 0, seconds=30)
    assert server.conversations(("hello", "zebra", "third"), turns=3) == first
    assert server.stop() == 0
    assert "AddressSanitizer" not in server.log()
    assert "LeakSanitizer" not in server.log()
