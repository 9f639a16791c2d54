"""What a transfer says of itself in the log."""

import time
from collections.abc import Callable

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Progress:
    """Says every few seconds how far a transfer has come, at which rate, and when it will be done.

    Args:
        what: the file's name.
        done_bytes: held when the transfer began.
        size_bytes: of the whole file; None: not known.
        say: takes one line.
        every_seconds: between two lines.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        what: str,
        *,
        done_bytes: int,
        size_bytes: int | None,
        say: Callable[[str], None],
        every_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._say, self._every_seconds, self._clock = what, say, every_seconds, clock
        self._begun_bytes = self._done_bytes = done_bytes
        self._size_bytes = size_bytes
        self._begun_at = self._said_at = clock()

    def add(self, count: int) -> None:
        """Note that so many bytes more are held."""
        self._done_bytes += count
        now = self._clock()
        if now - self._said_at >= self._every_seconds:
            self._said_at = now
            self._say(self._line(now))

    def _line(self, now: float) -> str:
        rate = (self._done_bytes - self._begun_bytes) / max(now - self._begun_at, 1e-6)
        done = f"{self._what}: {human(self._done_bytes)}"
        if self._size_bytes is None:
            return f"{done}, {human(rate)}/s"
        left_seconds = (self._size_bytes - self._done_bytes) / rate if rate else 0.0
        share = 100 * self._done_bytes // max(1, self._size_bytes)
        left = f", {left_seconds:.0f} s left" if rate else ""
        return f"{done} of {human(self._size_bytes)} ({share} %), {human(rate)}/s{left}"


def human(count: float) -> str:
    """Return a number of bytes for a log, rounded."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - four digits are too many to read
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"
