"""Under a memory limit no allocation ever fails: what does not fit must not be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.limited import LimitedServer, memory_cgroup
from tests.models.hybrid import HybridShape, write_hybrid_model
from tests.support.llama_server import binary

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LIMIT_BYTES = 1 << 30
TURNS = 9
MESSAGE = "Tell me more about the sea, and about the ships that sail on it by night. "
ARGUMENTS = ("--parallel", "2", "--ctx-size", "8192", "--cache-ram", "128")


def served(scratch: Path) -> tuple[int, str | None]:
    """How many turns of one conversation are answered, and how the server ended; None: it did not."""
    model = scratch / "model.gguf"
    write_hybrid_model(model, HybridShape())
    with (
        memory_cgroup("llamapool-test-memory-limit") as cgroup,
        LimitedServer(
            binary(),
            model,
            *ARGUMENTS,
            cgroup=cgroup,
            limit_bytes=LIMIT_BYTES,
            scratch=scratch,
        ) as running,
    ):
        assert running.ready()
        prompt, answered = "", 0
        while answered < TURNS:
            prompt += MESSAGE
            if not running.complete(prompt):
                break
            answered += 1
    return answered, running.end


def test_a_conversation_kills_a_stock_server_though_its_prompt_cache_is_capped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMAPOOL_MODE", "off")
    answered, end = served(tmp_path)
    assert answered < TURNS
    assert end == "killed"


def test_the_same_conversation_is_served_within_the_same_limit_by_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMAPOOL_MODE", "on")
    assert served(tmp_path) == (TURNS, None)
