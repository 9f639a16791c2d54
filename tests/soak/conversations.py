"""Growing conversations, several at once, and what may happen beside them on the way."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from tests.soak.server_pod import complete

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 100
TOKENS_OUT = 1


@dataclass(frozen=True, kw_only=True)
class Load:
    """Conversations whose every turn sends all that was said before.

    Attributes:
        conversations: at once.
        message_bytes: that each turn adds; a byte is a token.
        document_bytes: that the turn after the first tenth adds instead, if any. More than a micro batch (512
            tokens) has the server touch all of its compute buffer, when state has long filled the budget.
        think_seconds: between an answer and the next message.
        turns: of each.
    """

    conversations: int = 1
    message_bytes: int = 6
    document_bytes: int = 0
    think_seconds: float = 0.0
    turns: int = TURNS

    @property
    def context_tokens(self) -> int:
        """Of a slot: a whole conversation, with room for answers of more bytes than tokens."""
        needed = self.turns * (self.message_bytes + 4 * TOKENS_OUT) + self.document_bytes
        return 256 * -(-needed // 256)

    def message(self, conversation: int, turn: int) -> str:
        """What is said in a turn, counted from 0."""
        is_document = self.document_bytes > 0 and turn == self.turns // 10
        return str(conversation).ljust(self.document_bytes if is_document else self.message_bytes, ".")


@dataclass(frozen=True)
class Progress:
    """Of a run: seconds of each turn that was answered, by conversation, and why one ended early."""

    turn_seconds: list[list[float]]
    broken_off: list[str]

    @property
    def turns(self) -> int:
        return sum(len(each) for each in self.turn_seconds)


def hold(address: str, load: Load, meanwhile: Callable[[], None] | None = None) -> Progress:
    """Hold the conversations to their ends, `meanwhile` beside them.

    It begins once a fifth of a conversation's turns is over, and the last fifth of them waits for its end.

    Raises:
        CommandError, NeverHappenedError: what `meanwhile` raises.
    """
    turn_seconds: list[list[float]] = [[] for _ in range(load.conversations)]
    broken_off: list[str] = []
    begin, end = Event(), Event()

    def converse(number: int) -> None:
        said = ""
        for turn in range(load.turns):
            if turn == load.turns // 5:
                begin.set()
            if turn == load.turns * 4 // 5:
                end.wait()
            said += load.message(number, turn)
            started = time.monotonic()
            try:
                said += complete(address, said, tokens=TOKENS_OUT)
            except OSError as error:
                broken_off.append(f"conversation {number}, turn {turn + 1}: {error}")
                begin.set()
                return
            turn_seconds[number].append(time.monotonic() - started)
            time.sleep(load.think_seconds)

    with ThreadPoolExecutor(load.conversations) as pool:
        running = [pool.submit(converse, number) for number in range(load.conversations)]
        begin.wait()
        try:
            if meanwhile:
                meanwhile()
        finally:
            end.set()
        for each in running:
            each.result()
    return Progress(turn_seconds, broken_off)
