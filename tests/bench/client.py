"""The client: streamed completions, each on a connection of its own, and a stopwatch."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from tests.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_TOKENS_OUT = 4
_TIMEOUT_SECONDS = 300.0
# Without it a random model emits bytes that are no characters yet, which the server holds back: the stopwatch
# would time a later token than the first. 97 is the token of the letter a.
_ALWAYS_THE_SAME_TOKEN = [[97, 100]]


def tokens_out(prompt: str) -> int:
    """How many tokens to ask for: one to four, the same for the same prompt.

    Were it the same for all, clients would wait for each other and fall into step, in one of several patterns
    that last, and of which each has another median time to first token: 0.4 to 1.0 s of the same server.
    """
    return 1 + zlib.crc32(prompt.encode()) % _MOST_TOKENS_OUT


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back for one prompt.

    Attributes:
        text: that was generated.
        ttft_seconds: from sending the request to its first token.
    """

    text: str
    ttft_seconds: float


class Client:
    """Sends prompts to one server."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._address = f"http://127.0.0.1:{port}/completion"

    async def ask(self, prompt: str) -> Answer:
        """One prompt.

        Raises:
            BenchError: the server refused it, broke off, or sent no token.
        """
        try:
            return await self._ask(prompt)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise BenchError(f"{self._address}: {type(error).__name__}: {error}") from error

    async def _ask(self, prompt: str) -> Answer:
        body = {
            "prompt": prompt,
            "n_predict": tokens_out(prompt),
            "stream": True,
            "temperature": 0,
            "ignore_eos": True,
            "logit_bias": _ALWAYS_THE_SAME_TOKEN,
        }
        started = time.perf_counter()
        ttft_seconds, text = None, ""
        async with self._session.post(self._address, json=body) as answer:
            if not answer.ok:
                raise BenchError(f"{self._address} answered {answer.status}: {(await answer.text())[:500]}")
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    ttft_seconds = ttft_seconds or time.perf_counter() - started
                    text += json.loads(line[6:])["content"]
        if ttft_seconds is None or not text:
            raise BenchError(f"{self._address}: no token came for {prompt!r}")
        return Answer(text=text, ttft_seconds=ttft_seconds)

    async def converse(self, conversations: Sequence[Sequence[str]], *, clients: int) -> list[float]:
        """Conversations, so many at once; each turn sends all that was said before in its own.

        Returns:
            The time to first token of each turn, in seconds, the turns of one conversation together.

        Raises:
            BenchError: as `ask`.
        """
        waiting = iter(conversations)
        times = await asyncio.gather(*(self._converse_in_turn(waiting) for _ in range(clients)))
        return [seconds for each in times for seconds in each]

    async def _converse_in_turn(self, waiting: Iterator[Sequence[str]]) -> list[float]:
        times = []
        for messages in waiting:
            said = ""
            for message in messages:
                answer = await self.ask(said + message)
                said += message + answer.text
                times.append(answer.ttft_seconds)
        return times


def session() -> aiohttp.ClientSession:
    """A session without reuse: llama-server closes a connection that it has streamed on."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=0),
        timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS),
    )
