"""The paired method: all arms of a group loaded at once, the same prompts for each in random order."""

from __future__ import annotations

import os
import random
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from tests.bench.arms import ARMS, OURS, UPSTREAM
from tests.bench.client import Client, session
from tests.bench.comparisons import decided, pairs, ttft_ratio
from tests.bench.machine import Memcpy
from tests.bench.measurements import Batch, Round
from tests.bench.models import model_file
from tests.bench.server import Server, running
from tests.cluster.progress import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

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
        """
        warm_up, prompts = self._load.warm_up_prompts(self._random), self._load.prompts(self._random)
        batches: dict[str, Batch] = {}
        async with AsyncExitStack() as stack:
            servers: dict[str, Server] = {}
            if not self._load.cold:
                for arm in self._in_random_order():
                    servers[arm] = await stack.enter_async_context(self.server(arm))
            for arm in self._in_random_order():
                if self._load.cold:
                    async with self.server(arm) as server:
                        batches[arm] = await self._batch(server, warm_up, prompts)
                else:
                    batches[arm] = await self._batch(servers[arm], warm_up, prompts)
        return Round(batches=batches, memcpy_bytes_per_second=self._memcpy.bytes_per_second())

    def _in_random_order(self) -> list[str]:
        return self._random.sample(self._arms, len(self._arms))

    async def _batch(self, server: Server, warm_up: list[str], prompts: Conversations) -> Batch:
        clients = self._load.clients or self._load.slots
        async with session() as opened:
            client = Client(opened, server.port)
            await client.converse([[prompt] for prompt in warm_up], clients=clients)
            server.new_times()  # of the warm-up: not counted
            histogram, faults = server.histogram(), server.page_faults()
            started = time.perf_counter()
            ttft_seconds = await client.converse(prompts, clients=clients)
            wall_seconds = time.perf_counter() - started
        checkpoints, saves = server.new_times()
        page_faults, observed = server.page_faults() - faults, server.histogram()
        return Batch(
            ttft_seconds=tuple(ttft_seconds),
            turns=self._load.turns,
            wall_seconds=wall_seconds,
            checkpoints=checkpoints,
            saves=saves,
            page_faults=page_faults,
            peak_rss_bytes=server.peak_rss_bytes(),
            histogram=observed.since(histogram) if observed and histogram else None,
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
