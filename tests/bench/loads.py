"""The loads: what is asked of every arm, in batches of the same prompts."""

from __future__ import annotations

import string
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.bench.arms import ARMS, CAP0, OURS, PUBLISHED, UPSTREAM
from tests.models.hybrid import HybridShape

if TYPE_CHECKING:
    import random

PROMPT_BYTES = 5
MESSAGE_BYTES = 24
CONVERSATIONS, TURNS = 4, 4
_GIBIBYTE = 1 << 30
_NO_PROMPT_CACHE = ("--cache-ram", "0")

Conversations = list[list[str]]
"""Each a list of messages."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load.

    Attributes:
        name: in the record.
        what: in plain words.
        slots: of the server.
        clients: at once; as many as slots if 0.
        shape: of the model.
        flags: of llama-server, beside slots and context.
        conversations: in a batch; a short prompt is one of a single turn.
        turns: messages in each.
        message_bytes: length of each message.
        slices: that a batch is put in, the arms taking turns.
        warm_up: conversations held before each batch, not measured, so that every arm begins as it goes on.
        cold: servers are started one by one, each right before its batch, the first that it sees.
        passes: how often a batch is held, on servers started anew each time, the arms in the opposite order:
            who goes first finds the memory that others have just left, and may take half as long as the last.
        neutral: nothing is to be gained: the interval must lie inside ±5 %.
        arms: names of those that it is put to.
        weight: its part of the time.
        live_checkpoints: at most, of one server, cached ones included; for the memory to expect.
    """

    name: str
    what: str
    slots: int
    live_checkpoints: int
    conversations: int
    weight: float
    clients: int = 0
    turns: int = 1
    message_bytes: int = PROMPT_BYTES
    shape: HybridShape = field(default_factory=HybridShape)
    flags: tuple[str, ...] = _NO_PROMPT_CACHE
    slices: int = 1
    warm_up: int = 0
    cold: bool = False
    passes: int = 1
    neutral: bool = False
    arms: tuple[str, ...] = tuple(ARMS)

    @property
    def peak_bytes(self) -> int:
        """Memory to expect of one server at its peak: weights and buffers, states, checkpoints and a pool."""
        states = self.slots + self.live_checkpoints
        return _GIBIBYTE // 2 + int(states * self.shape.state_bytes)

    def server_flags(self) -> list[str]:
        """Flags of llama-server."""
        tokens = self.slots * max(256, 2 * self.turns * self.message_bytes)
        return ["--parallel", str(self.slots), "--ctx-size", str(tokens), *self.flags]

    def slices_of_prompts(self, random: random.Random) -> list[Conversations]:
        """The prompts of one batch, none like another from its first bytes on."""
        conversations = self._conversations(random, self.conversations)
        return [conversations[index :: self.slices] for index in range(self.slices)]

    def warm_up_prompts(self, random: random.Random) -> Conversations:
        """What is sent before the batch."""
        return self._conversations(random, self.warm_up)

    def _conversations(self, random: random.Random, count: int) -> Conversations:
        return [[_text(random, self.message_bytes) for _ in range(self.turns)] for _ in range(count)]


def _text(random: random.Random, length_bytes: int) -> str:
    return "".join(random.choices(string.ascii_letters, k=length_bytes))


_STEADY = "steady short prompts"
_GROWING = Load(
    name="conversations-2",
    what=f"{CONVERSATIONS} growing conversations over 2 slots, prompt cache on",
    slots=2,
    clients=CONVERSATIONS,
    conversations=CONVERSATIONS,
    turns=TURNS,
    message_bytes=MESSAGE_BYTES,
    flags=("--cache-ram", "2560"),
    live_checkpoints=25,
    passes=2,
    arms=(UPSTREAM, PUBLISHED, OURS, CAP0),
    weight=14,
)
LOADS = {
    load.name: load
    for load in (
        Load(
            name="steady-8",
            what=f"{_STEADY}, 8 slots, 8 clients",
            slots=8,
            warm_up=8,
            conversations=32,
            slices=2,
            live_checkpoints=8,
            weight=9,
        ),
        Load(
            name="steady-1",
            what=f"{_STEADY}, 1 slot, 1 client",
            slots=1,
            warm_up=2,
            conversations=24,
            slices=6,
            live_checkpoints=1,
            weight=3,
        ),
        Load(
            name="steady-32",
            what=f"{_STEADY}, 32 slots, 32 clients, a quarter of the layers",
            slots=32,
            warm_up=32,
            conversations=32,
            shape=HybridShape(layers=16),
            live_checkpoints=32,
            weight=7,
        ),
        Load(
            name="cold-8",
            what="the first wave after the start, 8 slots, 8 clients",
            slots=8,
            conversations=8,
            live_checkpoints=8,
            cold=True,
            arms=(UPSTREAM, PUBLISHED, OURS, CAP0),
            weight=4,
        ),
        _GROWING,
        replace(
            _GROWING,
            name="conversations-2-settled",
            what=f"{_GROWING.what}, on servers whose memory no longer grows: as many were held before",
            warm_up=CONVERSATIONS,
            passes=1,
            live_checkpoints=28,
            weight=9,
            arms=tuple(ARMS),
        ),
        Load(
            name="neutral-no-checkpoints",
            what="control: --ctx-checkpoints 0, 8 slots, 8 clients, a quarter of the layers",
            slots=8,
            shape=HybridShape(layers=16),
            warm_up=8,
            conversations=64,
            slices=4,
            flags=("--ctx-checkpoints", "0", *_NO_PROMPT_CACHE),
            live_checkpoints=0,
            neutral=True,
            arms=(UPSTREAM, OURS),
            weight=5,
        ),
        Load(
            name="neutral-dense",
            what="control: a model without recurrent layers, prompt cache on, 8 slots, 8 clients",
            slots=8,
            warm_up=32,
            conversations=240,
            slices=6,
            shape=HybridShape(full_attention_interval=1),
            flags=(),
            live_checkpoints=0,
            neutral=True,
            arms=(UPSTREAM, OURS),
            weight=5,
        ),
    )
}
