"""How much of their prompts several conversations over fewer slots process again under a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT_BYTES = 150 << 20  # as mapped
ANSWER_TOKENS = 8
TURNS = 3


def test_four_conversations_over_two_slots_are_not_processed_again(servers: Any, hybrid_model: Path) -> None:
    # A checkpoint of each, three cached prompts beside them: seven and a little. So the eighth buffer is all
    # there is for what a turn makes anew, and no slot has room for a second checkpoint.
    env = {"LLAMAPOOL_STATE_BUDGET_BYTES": str(8 * CHECKPOINT_BYTES)}
    flags = ("--parallel", "2", "--no-kv-unified", "--cache-ram", "2048")
    server = servers.start(hybrid_model, *flags, env=env).until_ready()
    texts = dict.fromkeys(("amber", "birch", "cedar", "daisy"), "")
    for turn in range(TURNS):
        for name, text in texts.items():
            message = f"{name}: and then, {name}, tell me about chapter {turn} of it."
            answer = server.complete(text + message, tokens=ANSWER_TOKENS)
            texts[name] = text + message + answer["content"]
            # The newest checkpoint is four tokens before the end of the prompt; an answer of random bytes may
            # come back as more tokens than it had.
            new_tokens = len(message) + 4 + 3 * ANSWER_TOKENS
            assert answer["timings"]["prompt_n"] <= new_tokens, f"{name}, turn {turn}"
    figures = server.metrics()
    assert figures["llamapool_checkpoints_evicted_total"] > 0  # the budget was tight enough to matter
    assert figures["llamapool_prompts_evicted_total"] == 0
