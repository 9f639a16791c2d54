"""The loop looks at every model, at once when woken, and at each by itself."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest

from llamapool.adapters.metrics import Metrics, ModelKey
from llamapool.errors import ClusterError, ConflictError
from llamapool.loop import Loop
from llamapool.settings import LoopSettings

A, B = ("models", "a"), ("models", "b")


@dataclass
class Looks:
    """Counts looks, and does what a test wants in them."""

    known: set[ModelKey] = field(default_factory=lambda: {A, B})
    counts: Counter[ModelKey] = field(default_factory=Counter)
    forgotten: list[ModelKey] = field(default_factory=list)
    failures: dict[ModelKey, Callable[[], Exception]] = field(default_factory=dict)
    blocked: dict[ModelKey, asyncio.Event] = field(default_factory=dict)
    settled: bool = True

    async def look(self, key: ModelKey) -> bool:
        self.counts[key] += 1
        if key in self.blocked:
            await self.blocked[key].wait()
        if key in self.failures:
            failure = self.failures[key]
            raise failure()
        return self.settled


@asynccontextmanager
async def running(
    looks: Looks, *, interval_seconds: float = 100, metrics: Metrics | None = None
) -> AsyncIterator[Loop]:
    loop = Loop(
        look=looks.look,
        forget=looks.forgotten.append,
        metrics=metrics or Metrics(),
        settings=LoopSettings(interval_seconds=interval_seconds),
    )
    task = asyncio.create_task(loop.run(lambda: looks.known))
    try:
        yield loop
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not reached():  # noqa: ASYNC110 - the loop under test has no event for what is awaited
            await asyncio.sleep(0.01)


@contextmanager
def logged(caplog: pytest.LogCaptureFixture, text: str) -> Iterator[None]:
    with caplog.at_level(logging.WARNING, logger="llamapool.loop"):
        yield
    assert text in caplog.text


async def test_every_model_is_looked_at_at_the_start() -> None:
    looks = Looks()
    async with running(looks):
        await until(lambda: looks.counts == {A: 1, B: 1})


async def test_every_model_is_looked_at_again_after_the_interval() -> None:
    looks = Looks()
    async with running(looks, interval_seconds=0.3):
        await until(lambda: min(looks.counts[A], looks.counts[B]) >= 3)


async def test_a_woken_model_is_looked_at_at_once_and_the_others_are_not() -> None:
    looks = Looks()
    async with running(looks) as loop:
        await until(lambda: looks.counts == {A: 1, B: 1})
        loop.wake(A)
        await until(lambda: looks.counts[A] == 2)
        assert looks.counts[B] == 1


async def test_a_wake_up_during_a_look_is_not_lost() -> None:
    looks = Looks(known={A}, blocked={A: asyncio.Event()})
    async with running(looks) as loop:
        await until(lambda: looks.counts[A] == 1)
        loop.wake(A)
        looks.blocked[A].set()
        await until(lambda: looks.counts[A] == 2)


async def test_a_burst_of_wake_ups_is_one_look() -> None:
    looks = Looks(known={A})
    async with running(looks) as loop:
        await until(lambda: looks.counts[A] == 1)
        for _ in range(100):
            loop.wake(A)
            await asyncio.sleep(0.001)
        await until(lambda: looks.counts[A] >= 2)
        assert looks.counts[A] <= 3


async def test_a_model_that_is_not_settled_is_looked_at_again_soon() -> None:
    looks = Looks(known={A}, settled=False)
    async with running(looks):
        await until(lambda: looks.counts[A] >= 3)


async def test_a_model_that_somebody_else_wrote_meanwhile_is_looked_at_again_soon() -> None:
    looks = Looks(known={A}, failures={A: lambda: ConflictError(409, "Conflict", "has changed")})
    async with running(looks):
        await until(lambda: looks.counts[A] >= 3)


async def test_a_look_that_hangs_does_not_hold_up_the_others() -> None:
    looks = Looks(blocked={A: asyncio.Event()})
    async with running(looks, interval_seconds=0.1) as loop:
        await until(lambda: looks.counts[B] >= 3)
        assert looks.counts[A] == 1
        assert loop.alive


@pytest.mark.parametrize(
    ("failure", "reason", "said"),
    [
        (
            lambda: ClusterError(503, "ServiceUnavailable", "try later"),
            "ServiceUnavailable",
            "will try again: try later",
        ),
        (lambda: KeyError("bug"), "KeyError", "a fault of the operator"),
    ],
)
async def test_a_failure_of_one_model_is_counted_and_told_and_stops_nothing(
    failure: Callable[[], Exception], reason: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    looks, metrics = Looks(failures={A: failure}), Metrics()
    with logged(caplog, said):
        async with running(looks, interval_seconds=0.1, metrics=metrics):
            await until(lambda: min(looks.counts[A], looks.counts[B]) >= 2)
    counted = metrics.registry.get_sample_value("llamapool_reconcile_errors_total", {"reason": reason})
    assert counted is not None
    assert counted >= 1


async def test_a_model_that_is_gone_is_forgotten_once() -> None:
    looks = Looks()
    async with running(looks, interval_seconds=0.1):
        await until(lambda: looks.counts[A] >= 1)
        looks.known = {B}
        await until(lambda: looks.forgotten == [A])
        await until(lambda: looks.counts[B] >= 3)
        assert looks.forgotten == [A]


async def test_a_model_that_is_gone_during_a_look_is_forgotten_after_it() -> None:
    looks = Looks(known={A}, blocked={A: asyncio.Event()})
    async with running(looks):
        await until(lambda: looks.counts[A] == 1)
        looks.known = set()
        await asyncio.sleep(0.1)
        assert looks.forgotten == []
        looks.blocked[A].set()
        await until(lambda: looks.forgotten == [A])


async def test_the_loop_stops_when_it_is_cancelled_at_the_very_moment_it_is_woken() -> None:
    looks = Looks()
    async with running(looks) as loop:
        await until(lambda: looks.counts == {A: 1, B: 1})
        await asyncio.sleep(0.5)
        loop.wake(A)  # and cancelled by the end of this block, before the loop had its turn
