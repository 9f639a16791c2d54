"""A cluster that refuses to be written to by a replica that does not lead."""

import builtins
from collections.abc import Callable, Mapping

from llamapool.adapters.cluster import Cluster, Manifest
from llamapool.errors import NotLeadingError


class FencedCluster:
    """Reads pass; a write raises NotLeadingError unless the replica leads at that very moment.

    A look may take longer than a lease holds: a stalled node, a suspended process. Checking once, at its
    beginning, would let it write beside the new leader.
    """

    def __init__(self, cluster: Cluster, leads: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._leads = leads

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object; None if there is none."""
        return self._cluster.get(kind, namespace, name)

    def list(self, kind: str, namespace: str | None, label_selector: str = "") -> builtins.list[Manifest]:
        """Return the objects that a label selector matches, of one namespace or of all (None)."""
        return self._cluster.list(kind, namespace, label_selector)

    def create(self, manifest: Mapping[str, object]) -> Manifest:
        """Create an object and return it."""
        self._require()
        return self._cluster.create(manifest)

    def apply(self, manifest: Mapping[str, object]) -> Manifest:
        """Apply an object and return it."""
        self._require()
        return self._cluster.apply(manifest)

    def apply_status(self, manifest: Mapping[str, object]) -> Manifest:
        """Apply the status of an object and return the object."""
        self._require()
        return self._cluster.apply_status(manifest)

    def annotate(self, kind: str, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """Set annotations of an object."""
        self._require()
        self._cluster.annotate(kind, namespace, name, annotations)

    def _require(self) -> None:
        if not self._leads():
            raise NotLeadingError(0, "NotLeading", "not written: another replica leads, or none does yet")
