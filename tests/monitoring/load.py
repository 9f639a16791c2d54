"""Steady traffic to a model, and what became of each request."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.models import Model


@dataclass
class Traffic:
    """Requests one after another, each with a prompt of its own.

    Attributes:
        answered: how many were.
        failures: what the others ended in.
    """

    answered: int = 0
    failures: list[str] = field(default_factory=list)


@contextmanager
def traffic(model: Model, *, pause_seconds: float = 0.5) -> Iterator[Traffic]:
    """Send requests until the block ends; the last one is waited for."""
    seen, stop = Traffic(), threading.Event()

    def send() -> None:
        turn = 0
        while not stop.wait(pause_seconds):
            turn += 1
            try:
                model.chat(f"prompt {turn} of {time.monotonic()}", max_tokens=4)
            except (OSError, AssertionError, ValueError) as error:
                seen.failures.append(f"{type(error).__name__}: {error}")
            else:
                seen.answered += 1

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
