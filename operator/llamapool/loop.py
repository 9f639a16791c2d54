"""The one background loop: looks at every known model now and then, and at once when it is woken."""

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from llamapool.adapters.metrics import Metrics, ModelKey
from llamapool.errors import ClusterError, ConflictError, LlamapoolError
from llamapool.settings import LoopSettings

_LOG = logging.getLogger(__name__)
_SPACING_SECONDS = 0.2
"""Least time between two looks at a model: a burst of events is one reason to look."""
_UNSETTLED_SECONDS = 0.5
_LONGEST_TURN_SECONDS = 30.0


@dataclass(kw_only=True)
class Loop:
    """Looks at models, several at once, each by itself: a failure of one does not touch the others.

    Attributes:
        look: looks at one model and says whether it is settled; one that is not is looked at again soon.
        forget: told of a model that is gone.
        metrics: counts looks and failures.
        settings: interval and concurrency.
    """

    look: Callable[[ModelKey], Awaitable[bool]]
    forget: Callable[[ModelKey], None]
    metrics: Metrics
    settings: LoopSettings
    _due_at: dict[ModelKey, float] = field(default_factory=dict)
    _running: dict[ModelKey, asyncio.Task[bool]] = field(default_factory=dict)
    _woken: set[ModelKey] = field(default_factory=set)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _turned_at: float = field(default_factory=time.monotonic)

    def wake(self, key: ModelKey) -> None:
        """Look at a model as soon as may be."""
        self._woken.add(key)
        self._wake.set()

    @property
    def alive(self) -> bool:
        """Whether the loop still turns."""
        return time.monotonic() - self._turned_at < _LONGEST_TURN_SECONDS

    async def run(self, known: Callable[[], Iterable[ModelKey]]) -> None:
        """Turn until cancelled; looks that are under way are then cancelled too.

        Args:
            known: the models that exist.
        """
        slots = asyncio.Semaphore(self.settings.concurrency)
        try:
            while True:
                self._turned_at = time.monotonic()
                self._turn(set(known()), slots)
                waiting = [at for key, at in self._due_at.items() if key not in self._running]
                timeout = min([*waiting, self._turned_at + 1.0]) - time.monotonic()
                with suppress(TimeoutError):
                    # Not wait_for(): in Python 3.11 it loses a cancellation that comes with the event.
                    async with asyncio.timeout(max(0.0, timeout)):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            for task in self._running.values():
                task.cancel()

    def _turn(self, known: set[ModelKey], slots: asyncio.Semaphore) -> None:
        """Start the looks that are due."""
        now = time.monotonic()
        for key in self._due_at.keys() - known - self._running.keys():
            del self._due_at[key]
            self.forget(key)
        for key in known - self._running.keys():
            due_at = self._due_at.setdefault(key, now)
            if due_at <= now or key in self._woken:
                self._woken.discard(key)
                self._due_at[key] = now + self.settings.interval_seconds
                task = asyncio.create_task(self._look_once(key, slots))
                self._running[key] = task
                task.add_done_callback(functools.partial(self._finish, key))
        self._woken &= known

    async def _look_once(self, key: ModelKey, slots: asyncio.Semaphore) -> bool:
        async with slots:
            with self.metrics.reconcile_seconds.time():
                settled = await self.look(key)
        await asyncio.sleep(_SPACING_SECONDS)
        return settled

    def _finish(self, key: ModelKey, task: asyncio.Task[bool]) -> None:
        """Note when to look again, and say what went wrong, a bug of ours included."""
        del self._running[key]
        self._wake.set()
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, ConflictError) or (error is None and not task.result()):
            self._due_at[key] = time.monotonic() + _UNSETTLED_SECONDS
        if error is None:
            return
        reason = error.reason if isinstance(error, ClusterError) else type(error).__name__
        self.metrics.reconcile_errors.labels(reason).inc()
        if isinstance(error, LlamapoolError):
            _LOG.warning("%s/%s: will try again: %s", *key, error)
        else:
            _LOG.error("%s/%s: a fault of the operator", *key, exc_info=error)
