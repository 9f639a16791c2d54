"""The paired method: all arms of a group loaded at once, the same prompts for each in random order."""

from __future__ import annotations

import os
import random
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from tests.bench.arms import ARMS, OURS, UPSTREAM
from tests.bench.client import Client, session
from tests.bench.comparisons import decided, pairs, ttft_ratio
from tests.bench.machine import Memcpy
from tests.bench.measurements import Batch, Round, joined
from tests.bench.models import model_file
from tests.bench.server import Server, running
from tests.cluster.progress import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from llamapool.domain.histogram import Histogram
    from tests.bench.loads import Conversations, Load
    from tests.bench.paired import Plan

_LEAST_ROUNDS = 2
_LEAST_MEMCPY_BYTES = 32 << 20


def groups(arms: Sequence[str], size: int) -> list[list[str]]:
    """The arms in groups that fit the memory; upstream and ours are in each, so that all can be compared.

    Raises:
        ValueError: a group would hold nothing beside these two.
    """
    references = [arm for arm in (UPSTREAM, OURS) if arm in arms]
    others = [arm for arm in arms if arm not in references]
    room = size - len(references)
    if not others:
        return [references]
    if room < 1:
        raise ValueError(f"size is {size}, want at least {len(references) + 1}")
    count = -(-len(others) // room)
    return [references + others[index::count] for index in range(count)]


async def measure(
    load: Load, arms: Sequence[str], plan: Plan, *, until_seconds: float, folder: Path
) -> list[Round]:
    """The rounds of one group of arms: until the intervals decide, or the plan or the time ends.

    Args:
        load: what to ask.
        arms: names of the group.
        plan: how many rounds.
        until_seconds: on the monotonic clock: no round begins that would end after it, but for the first
            two, or the first if that is the plan's least.
        folder: for logs.

    Raises:
        BenchError: a server failed.
    """
    bench = _Bench(load, arms, plan, folder)
    rounds: list[Round] = []
    while len(rounds) < plan.most:
        started = time.monotonic()
        rounds.append(await bench.round())
        took_seconds = time.monotonic() - started
        _say_where_it_stands(load, arms, rounds, plan, left_seconds=until_seconds - time.monotonic())
        if plan.looks_after(len(rounds)) and decided(rounds, arms, plan, neutral=load.neutral):
            break
        enough = len(rounds) >= min(_LEAST_ROUNDS, plan.least)
        if enough and time.monotonic() + took_seconds > until_seconds:
            break
    return rounds


class _Bench:
    """Makes rounds of one load and one group of arms."""

    def __init__(self, load: Load, arms: Sequence[str], plan: Plan, folder: Path) -> None:
        self._load, self._arms, self._folder = load, arms, folder
        self._random = random.Random(f"{plan.seed} {load.name} {' '.join(arms)}")  # noqa: S311 - no secrets
        self._memcpy = Memcpy(max(_LEAST_MEMCPY_BYTES, load.shape.state_bytes))
        self._model = model_file(load.shape)

    def server(self, arm: str) -> AbstractAsyncContextManager[Server]:
        """One arm's server until the block ends."""
        # One core is the client's: threads that wait for each other at every operation must not share theirs.
        threads = max(1, (os.cpu_count() or 1) - 1)
        flags = ["--model", str(self._model), "--threads", str(threads), *self._load.server_flags()]
        return running(ARMS[arm], flags, self._folder)

    async def round(self) -> Round:
        """One batch for each arm, its server started for this round.

        Where a process finds its memory moves its times by more than what is to be measured. Were the servers
        kept, the rounds would agree with each other on a difference that belongs to these processes alone.
        And what the host's other guests do moves them within seconds: so the batch is put in slices, the arms
        taking turns. A second pass, where the load asks for it, has each arm as often first as last.
        """
        warm_up, slices = self._load.warm_up_prompts(self._random), self._load.slices_of_prompts(self._random)
        starts, *turns = (self._in_random_order(self._arms) for _ in range(1 + len(slices)))
        passes = []
        for _ in range(self._load.passes):
            passes.append(await self._pass(starts, warm_up, list(zip(turns, slices, strict=True))))
            starts, turns = starts[::-1], [each[::-1] for each in turns]
        return Round(
            batches={arm: joined([each[arm] for each in passes]) for arm in starts},
            memcpy_bytes_per_second=self._memcpy.bytes_per_second(),
        )

    async def _pass(
        self,
        starts: Sequence[str],
        warm_up: Conversations,
        turns: Sequence[tuple[Sequence[str], Conversations]],
    ) -> dict[str, Batch]:
        """One batch for each arm: the servers started in one order, each slice put in an order of its own."""
        batches: dict[str, Batch] = {}
        for together in [[arm] for arm in starts] if self._load.cold else [starts]:
            async with AsyncExitStack() as stack:
                of: dict[str, _Turns] = {}
                for arm in together:
                    server = await stack.enter_async_context(self.server(arm))
                    of[arm] = await stack.enter_async_context(_Turns(server, self._load))
                for arm in together:
                    await of[arm].begin(warm_up)
                for order, prompts in turns:
                    for arm in order:
                        if arm in of:
                            await of[arm].take(prompts)
                batches |= {arm: of[arm].batch() for arm in together}
        return batches

    def _in_random_order(self, arms: Sequence[str]) -> list[str]:
        return self._random.sample(arms, len(arms))


class _Turns:
    """The turns of one server in a round: a slice of the batch each."""

    def __init__(self, server: Server, load: Load) -> None:
        self._server, self._load = server, load
        self._clients = load.clients or load.slots
        self._ttft_seconds: list[float] = []
        self._wall_seconds = 0.0
        self._page_faults = 0
        self._histogram: Histogram | None = None

    async def __aenter__(self) -> Self:
        self._session = session()
        self._client = Client(self._session, self._server.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def begin(self, warm_up: Conversations) -> None:
        """Warm it up, and count from here on."""
        await self._client.converse(warm_up, clients=self._clients)
        self._server.new_times()  # of the warm-up: not counted
        self._page_faults, self._histogram = self._server.page_faults(), self._server.histogram()

    async def take(self, prompts: Conversations) -> None:
        """One turn."""
        started = time.perf_counter()
        self._ttft_seconds += await self._client.converse(prompts, clients=self._clients)
        self._wall_seconds += time.perf_counter() - started

    def batch(self) -> Batch:
        """What all turns showed."""
        checkpoints, saves = self._server.new_times()
        observed = self._server.histogram()
        return Batch(
            ttft_seconds=tuple(self._ttft_seconds),
            turns=self._load.turns,
            wall_seconds=self._wall_seconds,
            checkpoints=checkpoints,
            saves=saves,
            page_faults=self._server.page_faults() - self._page_faults,
            peak_rss_bytes=self._server.peak_rss_bytes(),
            histogram=observed.since(self._histogram) if observed and self._histogram else None,
        )


def _say_where_it_stands(
    load: Load, arms: Sequence[str], rounds: list[Round], plan: Plan, *, left_seconds: float
) -> None:
    seen = []
    for arm, against in pairs(arms):
        estimate = ttft_ratio(rounds, arm, against, confidence=plan.confidence, seed=plan.seed)
        seen.append(f"{arm}/{against} {estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]")
    bounds = f"{plan.least} to {plan.most}, at most {max(0, left_seconds):.0f} s left"
    say(f"{load.name}: round {len(rounds)} of {bounds}: TTFT p50 {', '.join(seen)}")
