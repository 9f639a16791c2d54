"""What several looks in a row tell that one does not: how memory moves, and what was asked of the pool."""

from collections import deque
from dataclasses import dataclass, field, replace

from llamapool.domain.facts import Facts, Pod, ServerSample
from llamapool.domain.memory import headroom_bytes
from llamapool.domain.policy import Calm, Rise

_MEMORY_SECONDS = 30.0
_LEAST_MEMORY_SECONDS = 8.0
_LEAST_SAMPLES = 3
_TRAFFIC_SECONDS = 600.0
_WANTED_SHARE = 0.2
_LEAST_REQUESTS = 10


@dataclass
class _Server:
    """The last samples of one container of one pod."""

    samples: deque[tuple[float, ServerSample]] = field(default_factory=deque)

    def add(self, sample: ServerSample, now: float) -> None:
        self.samples.append((now, sample))
        while self.samples and self.samples[0][0] < now - _TRAFFIC_SECONDS:
            self.samples.popleft()

    def bytes_per_second(self, now: float) -> float | None:
        """Return how fast unreclaimable memory grows; None where too little was seen."""
        seen = [
            (at, sample.cgroup_unreclaimable_bytes)
            for at, sample in self.samples
            if at >= now - _MEMORY_SECONDS and sample.cgroup_unreclaimable_bytes is not None
        ]
        if len(seen) < _LEAST_SAMPLES or seen[-1][0] - seen[0][0] < _LEAST_MEMORY_SECONDS:
            return None
        return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])

    def pool_asked(self) -> tuple[int, int]:
        """Return buffers asked for and given, and those missed or declined, within the window."""
        first, last = self.samples[0][1], self.samples[-1][1]
        hits, misses, declines = (
            max(0, (getattr(last, name) or 0) - (getattr(first, name) or 0))
            for name in ("pool_hits", "pool_misses", "pool_declines")
        )
        return hits, misses + declines


@dataclass
class Observation:
    """Remembers the samples of a model's servers; a restart of the operator only begins it anew."""

    _servers: dict[tuple[str, str], _Server] = field(default_factory=dict)

    def take(self, facts: Facts, *, now: float) -> Facts:
        """Take in what a look has seen, and return its facts with what the last looks tell.

        Args:
            facts: of this look.
            now: Unix seconds.
        """
        running = {(pod.uid, pod.container_id): pod for pod in facts.pods}
        self._servers = {key: self._servers.get(key, _Server()) for key in running}
        for key, pod in running.items():
            if isinstance(pod.sample, ServerSample):
                self._servers[key].add(pod.sample, now)
        rises = []
        for key, pod in running.items():
            rate = self._servers[key].bytes_per_second(now)
            if rate is not None and rate > 0 and isinstance(pod.sample, ServerSample):
                accounting = pod.sample.accounting(at_seconds=now)
                rises.append(Rise(pod_name=pod.name, now=accounting, bytes_per_second=rate))
        return replace(facts, rises=tuple(rises), calm=self._calm(facts.ready_pods))

    def _calm(self, ready: tuple[Pod, ...]) -> Calm | None:
        spare = [_spare_bytes(pod.sample) for pod in ready]
        known = [one for one in spare if one is not None]
        if not ready or len(known) != len(spare):
            return None
        asked = [self._servers[pod.uid, pod.container_id].pool_asked() for pod in ready]
        given, missed = sum(hits for hits, _ in asked), sum(misses for _, misses in asked)
        wanted = given + missed >= _LEAST_REQUESTS and missed >= _WANTED_SHARE * (given + missed)
        return Calm(spare_bytes=min(known), pool_wanted=wanted)


def _spare_bytes(sample: object) -> int | None:
    if not isinstance(sample, ServerSample):
        return None
    limit, used = sample.cgroup_limit_bytes, sample.cgroup_unreclaimable_bytes
    return None if limit is None or used is None else limit - headroom_bytes(limit) - used
