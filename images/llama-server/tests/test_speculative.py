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
@pytest.mark.parametrize(
    ("buffers", "drafts", "keeps_prompts"),
    [
        pytest.param(1, False, False, id="no room to draft"),
        pytest.param(4, True, False, id="tight"),
        pytest.param(None, True, True, id="no budget"),
    ],
)
def test_it_drafts_within_the_budget_and_answers_what_upstream_answers(
    *,
    servers: Any,
    hybrid_model: Path,
    draft_model: Path,
    buffers: int | None,
    drafts: bool,
    keeps_prompts: bool,
) -> None:
    """Beside an upstream that processes the same tokens in the same batches: near ties depend on them."""
    flags = ("--parallel", "1")
    drafting = ("--spec-type", "draft-simple", "--model-draft", str(draft_model))
    upstream = servers.start(hybrid_model, *flags, *(drafting if drafts else ()), upstream=True).until_ready()
    answers = upstream.conversations(turns=3, cache_prompt=keeps_prompts)
    upstream.stop()
    budget = {"LLAMAPOOL_STATE_BUDGET_BYTES": str(buffers * CHECKPOINT_BYTES)} if buffers else {}
    server = servers.start(hybrid_model, *flags, *drafting, env=budget).until_ready()
    assert server.conversations(turns=3) == answers
    figures = server.metrics()
    assert figures[STATE] <= figures.get(BUDGET, float("inf"))
    timings = server.complete("and what does it draft?")["timings"]
    assert (timings.get("draft_n", 0) > 0) == drafts
    assert server.stop() == 0
