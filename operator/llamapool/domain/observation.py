"""What several looks in a row tell that one does not: how memory moves, what was asked, how fast it was."""

from collections import deque
from dataclasses import dataclass, field, replace
from math import inf

from llamapool.domain.facts import Facts, Pod, ServerSample
from llamapool.domain.histogram import HistogramWindow
from llamapool.domain.memory import headroom_bytes
from llamapool.domain.policy import Calm, Rise
from llamapool.domain.trial import Measured
from llamapool.domain.ttft import Traffic

_MEMORY_SECONDS = 30.0
_LEAST_MEMORY_SECONDS = 8.0
_LEAST_SAMPLES = 3
_TRAFFIC_SECONDS = 600.0
_WANTED_SHARE = 0.2
_LEAST_REQUESTS = 10
_SETTLING_SECONDS = 10.0
"""After a change of the cap the first checkpoints still show the one before."""


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


class _TrafficWindow:
    """Requests and checkpoints of all servers over a window."""

    def __init__(self, length_seconds: float) -> None:
        self._ttft, self._prompts, self._checkpoints = (HistogramWindow(length_seconds) for _ in range(3))

    def add(self, pods: tuple[Pod, ...], now: float) -> None:
        for pod in pods:
            if not isinstance(pod.sample, ServerSample):
                continue
            for window, histogram in (
                (self._ttft, pod.sample.time_to_first_token),
                (self._prompts, pod.sample.prompt_tokens),
                (self._checkpoints, pod.sample.checkpoint_time),
            ):
                if histogram is not None:
                    window.add(pod.uid, histogram, now_seconds=now)
        for window in (self._ttft, self._prompts, self._checkpoints):
            window.keep({pod.uid for pod in pods})

    def total(self, now: float) -> Traffic:
        return Traffic(
            time_to_first_token=self._ttft.total(now_seconds=now),
            prompt_tokens=self._prompts.total(now_seconds=now),
            checkpoint_time=self._checkpoints.total(now_seconds=now),
        )


@dataclass
class _LegWindow:
    """What was observed in the leg of a trial: from the moment on that its limits have settled everywhere."""

    leg: tuple[str, int] | None = None
    acknowledged_at: float | None = None
    began_at: float | None = None
    window: _TrafficWindow = field(default_factory=lambda: _TrafficWindow(inf))

    def take(self, facts: Facts, now: float) -> Measured | None:
        trial = None if facts.record is None else facts.record.running_trial
        leg = None if trial is None else (trial.id, len(trial.legs))
        if leg != self.leg:
            self.leg, self.acknowledged_at, self.began_at = leg, None, None
            self.window = _TrafficWindow(inf)
        if trial is None or facts.written is None or not facts.acknowledged(facts.written.generation):
            return None
        self.acknowledged_at = now if self.acknowledged_at is None else self.acknowledged_at
        settling_seconds = min(_SETTLING_SECONDS, trial.policy.leg_seconds / 10)
        if now - self.acknowledged_at < settling_seconds:
            return None
        self.began_at = now if self.began_at is None else self.began_at
        self.window.add(facts.pods, now)
        total = self.window.total(now)
        return Measured(
            trial=trial.id,
            leg=len(trial.legs),
            seconds=now - self.began_at,
            time_to_first_token=total.time_to_first_token,
            prompt_tokens=total.prompt_tokens,
            checkpoint_time=total.checkpoint_time,
        )


class Observation:
    """Remembers the samples of a model's servers; a restart of the operator only begins it anew."""

    def __init__(self, window_seconds: float = 300.0) -> None:
        self._servers: dict[tuple[str, str], _Server] = {}
        self._traffic = _TrafficWindow(window_seconds)
        self._leg = _LegWindow()

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
        self._traffic.add(facts.pods, now)
        sampled = any(isinstance(pod.sample, ServerSample) for pod in facts.ready_pods)
        return replace(
            facts,
            rises=tuple(rises),
            calm=self._calm(facts.ready_pods),
            traffic=self._traffic.total(now) if sampled else None,
            measured=self._leg.take(facts, now),
        )

    def _calm(self, ready: tuple[Pod, ...]) -> Calm | None:
        bounded = [pod for pod in ready if not _unlimited(pod)]
        spare = [_spare_bytes(pod.sample) for pod in bounded]
        known = [one for one in spare if one is not None]
        if not ready or len(known) != len(spare):
            return None
        asked = [self._servers[pod.uid, pod.container_id].pool_asked() for pod in ready]
        given, missed = sum(hits for hits, _ in asked), sum(misses for _, misses in asked)
        wanted = given + missed >= _LEAST_REQUESTS and missed >= _WANTED_SHARE * (given + missed)
        return Calm(spare_bytes=min(known, default=None), pool_wanted=wanted)


def _unlimited(pod: Pod) -> bool:
    """Return whether status and server agree that nothing bounds a pod's memory; silence is no agreement."""
    return (
        pod.limit_reported
        and pod.limit_bytes is None
        and isinstance(pod.sample, ServerSample)
        and pod.sample.cgroup_limit_bytes is None
        and pod.sample.cgroup_unreclaimable_bytes is not None
    )


def _spare_bytes(sample: object) -> int | None:
    if not isinstance(sample, ServerSample):
        return None
    limit, used = sample.cgroup_limit_bytes, sample.cgroup_unreclaimable_bytes
    return None if limit is None or used is None else limit - headroom_bytes(limit) - used
