"""Speculative decoding, whose checkpoint upstream cannot do without, within the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.models.hybrid import HybridShape, write_hybrid_model

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT_BYTES = 150 << 20  # as mapped, of the target
STATE, BUDGET = "llamapool_state_bytes", "llamapool_state_budget_bytes"


@pytest.fixture(scope="session")
def draft_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("draft") / "draft.gguf"
    write_hybrid_model(path, HybridShape(layers=8), seed=1)
    return path


@pytest.mark.long
@pytest.mark.parametrize("buffers", [1, 4, None], ids=["no room to draft", "tight", "no budget"])
def test_it_drafts_within_the_budget_and_answers_what_upstream_answers(
    servers: Any, hybrid_model: Path, draft_model: Path, buffers: int | None
) -> None:
    flags = ("--parallel", "1", "--spec-type", "draft-simple", "--model-draft", str(draft_model))
    upstream = servers.start(hybrid_model, *flags, upstream=True).until_ready()
    answers = upstream.conversations(turns=3)
    upstream.stop()
    budget = {"LLAMAPOOL_STATE_BUDGET_BYTES": str(buffers * CHECKPOINT_BYTES)} if buffers else {}
    server = servers.start(hybrid_model, *flags, env=budget).until_ready()
    assert server.conversations(turns=3) == answers
    figures = server.metrics()
    assert figures[STATE] <= figures.get(BUDGET, float("inf"))
    drafted = server.complete("and what does it draft?")["timings"].get("draft_n", 0)
    assert (drafted > 0) == (buffers != 1)
    assert server.stop() == 0
