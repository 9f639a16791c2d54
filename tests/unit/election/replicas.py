"""Replicas of the operator on one clock, before one API server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from llamapool.domain.election import LeaseSettings
from llamapool.errors import ClusterError
from llamapool.leadership import Leadership
from tests.unit.reconcile.world import FakeCluster, Manifest

SETTINGS = LeaseSettings()
START = datetime(2026, 12, 1, 12, tzinfo=UTC)


@dataclass
class Link(FakeCluster):
    """One replica's way to the API server; it can be cut."""

    shared: FakeCluster = field(default_factory=FakeCluster)
    cut: bool = False

    def _through(self) -> FakeCluster:
        if self.cut:
            raise ClusterError(0, "Unreachable", "no answer")
        return self.shared

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        return self._through().get(kind, namespace, name)

    def create(self, manifest: Mapping[str, Any]) -> Manifest:
        return self._through().create(manifest)

    def apply(self, manifest: Mapping[str, Any]) -> Manifest:
        applied = self._through().apply(manifest)
        # As server-side apply does: what its one field manager no longer names goes.
        live = self.shared.objects["Lease", "system", "llamapool"]["spec"]
        for name in live.keys() - manifest["spec"].keys():
            del live[name]
        return applied


@dataclass
class Replicas:
    """Time passes for all of them alike; each has a wall clock of its own."""

    server: FakeCluster = field(default_factory=FakeCluster)
    seconds: float = 1000.0

    def make(self, identity: str, *, wall_clock_ahead: timedelta = timedelta(0)) -> tuple[Leadership, Link]:
        link = Link(shared=self.server)
        replica = Leadership(
            cluster=link,
            namespace="system",
            name="llamapool",
            identity=identity,
            settings=SETTINGS,
            monotonic=lambda: self.seconds,
            clock=lambda: START + timedelta(seconds=self.seconds) + wall_clock_ahead,
        )
        return replica, link

    def seconds_until(self, reached: Callable[[], bool], *replicas: Leadership) -> float:
        """Let the replicas try at their pace, and return how long it took."""
        began = self.seconds
        while not reached():
            self.seconds += SETTINGS.retry_seconds
            for replica in replicas:
                replica.attempt()
            if self.seconds > began + 60:
                raise AssertionError("not within a minute")
        return self.seconds - began

    @property
    def spec(self) -> Manifest:
        spec: Manifest = self.server.objects["Lease", "system", "llamapool"]["spec"]
        return spec
