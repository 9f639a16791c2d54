"""Taking, renewing and giving back the Lease that says which replica of the operator acts."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from llamapool.adapters.cluster import Cluster, Manifest
from llamapool.domain.election import Candidate, Lease, LeaseSettings
from llamapool.errors import ClusterError

_LOG = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Leadership:
    """One replica's part in the election; safe to be asked from several threads.

    Attributes:
        cluster: the Kubernetes API; its requests must time out well within the renewal deadline.
        namespace, name: of the Lease.
        identity: of this replica. A restarted container may keep it: its predecessor is dead.
        settings: how long a lease holds.
        monotonic: seconds of a clock that never goes back.
        clock: the time, for the Lease's readers; nothing is decided by it.
    """

    cluster: Cluster
    namespace: str
    name: str
    identity: str
    settings: LeaseSettings = field(default_factory=LeaseSettings)
    monotonic: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _candidate: Candidate = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:  # noqa: D105
        self._candidate = Candidate(self.identity, self.settings)

    @property
    def leads(self) -> bool:
        """Whether this replica may act."""
        return self._candidate.leads(self.monotonic())

    def attempt(self) -> None:
        """Try once to take or to renew the lease; what goes wrong is logged, and tried again later."""
        with self._lock:
            led, now = self.leads, self.monotonic()
            try:
                lease = _lease_of(self.cluster.get("Lease", self.namespace, self.name))
                if self._candidate.may_take(lease, now):
                    self._write(lease, holder=self.identity)
                    self._candidate.taken(now)
            except ClusterError as error:
                # Also a conflict: another candidate was faster.
                _LOG.warning("lease %s/%s: will try again: %s", self.namespace, self.name, error)
            if self.leads != led:
                _LOG.info("%s %s", self.identity, "leads" if self.leads else "stands by")

    def release(self) -> None:
        """Stop to act, and let the next replica take over without waiting."""
        with self._lock:
            led = self.leads
            self._candidate.give_up()
            if not led:
                return
            try:
                lease = _lease_of(self.cluster.get("Lease", self.namespace, self.name))
                if lease is not None and lease.holder == self.identity:
                    self._write(lease, holder="")
            except ClusterError as error:
                _LOG.warning("lease %s/%s: not given back: %s", self.namespace, self.name, error)

    def _write(self, lease: Lease | None, *, holder: str) -> None:
        """Write the lease, unless somebody has since it was read."""
        now = self.clock().astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec: Manifest = {"leaseDurationSeconds": int(self.settings.duration_seconds), "renewTime": now}
        metadata: Manifest = {"name": self.name, "namespace": self.namespace}
        kept = lease is not None and lease.holder == holder
        spec["acquireTime"] = lease.acquired_at if kept and lease is not None else now
        if holder:
            spec["holderIdentity"] = holder  # the API has no empty holder: one that is given back has none
        changes = 0 if lease is None else lease.transitions
        spec["leaseTransitions"] = changes + (lease is not None and bool(holder) and not kept)
        manifest = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        if lease is None:
            self.cluster.create(manifest)
        else:
            metadata["resourceVersion"] = lease.version
            self.cluster.apply(manifest)


def _lease_of(manifest: Manifest | None) -> Lease | None:
    if manifest is None:
        return None
    spec = manifest.get("spec") or {}
    return Lease(
        holder=spec.get("holderIdentity") or "",
        version=manifest["metadata"]["resourceVersion"],
        duration_seconds=spec.get("leaseDurationSeconds") or 0,
        acquired_at=spec.get("acquireTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
    )
