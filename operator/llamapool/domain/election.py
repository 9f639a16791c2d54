"""Who leads: the rules of a Lease, by a candidate's own clock. As in client-go's leaderelection package.

A lease is judged by how long *this* candidate has seen it unchanged, never by the times written in it: the
clocks of two nodes need not agree.
"""

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class LeaseSettings:
    """How long a lease holds; takeover after a crash takes `duration_seconds` and `retry_seconds` at most."""

    duration_seconds: float = 12.0
    """A lease that was not renewed for that long is free."""

    renew_deadline_seconds: float = 8.0
    """The holder stops to act that long after its last renewal: before another may start."""

    retry_seconds: float = 2.0
    """Time between two attempts to take or to renew."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A Lease as the API server has it.

    Attributes:
        holder: identity of who holds it; empty: it was given back.
        version: its resourceVersion, which moves with every renewal.
        duration_seconds: how long its holder asked it to last.
        acquired_at: when the holder took it, as written.
        transitions: how often it changed hands.
    """

    holder: str
    version: str
    duration_seconds: float
    acquired_at: str
    transitions: int


@dataclass
class Candidate:
    """One candidate's view of a lease. Times are seconds of a clock that never goes back.

    Attributes:
        identity: what it writes as holder.
        settings: how long a lease holds.
        held_until: the lease is its own before that time.
    """

    identity: str
    settings: LeaseSettings
    held_until: float = -math.inf
    _seen_version: str | None = field(default=None, init=False)
    _seen_at: float = field(default=-math.inf, init=False)

    def may_take(self, lease: Lease | None, now: float) -> bool:
        """Take in what the API server has, and say whether to write it as one's own.

        Args:
            lease: the lease; None where there is none.
            now: the time before it was read.
        """
        if lease is None or not lease.holder:
            return True
        if lease.version != self._seen_version:
            self._seen_version, self._seen_at = lease.version, now
        if lease.holder == self.identity:
            return True
        self.held_until = -math.inf
        return now >= self._seen_at + lease.duration_seconds

    def taken(self, now: float) -> None:
        """Note that the lease was written as one's own.

        Args:
            now: the time before the request was sent: others count from when the API server took it in.
        """
        self.held_until = now + self.settings.renew_deadline_seconds

    def give_up(self) -> None:
        """Stop to act at once."""
        self.held_until = -math.inf

    def leads(self, now: float) -> bool:
        """Return whether it may act."""
        return now < self.held_until
