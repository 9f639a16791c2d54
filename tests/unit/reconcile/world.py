"""A cluster and its servers in memory, behind the Protocols of the real ones; it can be interrupted."""

import copy
import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from llamapool.adapters.metrics import Metrics
from llamapool.domain.facts import ServerSample
from llamapool.domain.limits import Limits
from llamapool.errors import ClusterError, ConflictError, NotFoundError, ScrapeError
from llamapool.manifests.common import Images
from llamapool.manifests.overlay import lay_over
from llamapool.reconcile import Reconciler
from llamapool.settings import LoopSettings
from tests.unit.builders import BUFFER, CHECKPOINT, model_body
from tests.unit.oom.statuses import black_box, terminated
from tests.unit.ttft.observed import seconds, tokens

Manifest = dict[str, Any]


class Killed(BaseException):
    """The operator's process dies here; nothing of it may catch that."""


@dataclass
class FakeCluster:
    """The API server's behaviour that the operator builds on.

    Attributes:
        objects: by kind, namespace and name.
        writes: what was written, in order.
        before_write: called before each write takes effect.
        after_write: called after it did.
        refused: kinds whose writes are forbidden.
    """

    objects: dict[tuple[str, str, str], Manifest] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    before_write: Any = lambda: None
    after_write: Any = lambda: None
    refused: set[str] = field(default_factory=set)
    _versions: Any = field(default_factory=lambda: itertools.count(2))

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        return copy.deepcopy(self.objects.get((kind, namespace, name)))

    def list(self, kind: str, namespace: str | None, label_selector: str = "") -> list[Manifest]:
        name, _, value = label_selector.partition("=")
        return [
            copy.deepcopy(item)
            for (its_kind, its_namespace, _), item in self.objects.items()
            if its_kind == kind
            and namespace in (None, its_namespace)
            and (not name or item["metadata"].get("labels", {}).get(name) == value)
        ]

    def create(self, manifest: Mapping[str, Any]) -> Manifest:
        key = _key(manifest)
        with self._write("create", key):
            if key in self.objects:
                raise ConflictError(409, "AlreadyExists", f"{key} exists")
            self._store(key, copy.deepcopy(dict(manifest)))
        return copy.deepcopy(self.objects[key])

    def apply(self, manifest: Mapping[str, Any]) -> Manifest:
        key, wanted = _key(manifest), copy.deepcopy(dict(manifest))
        with self._write("apply", key):
            live = self.objects.get(key, {})
            version = wanted["metadata"].pop("resourceVersion", None)
            if version not in (None, live.get("metadata", {}).get("resourceVersion")):
                raise ConflictError(409, "Conflict", f"{key} has changed")
            self._store(key, lay_over(live, wanted))
        return copy.deepcopy(self.objects[key])

    def apply_status(self, manifest: Mapping[str, Any]) -> Manifest:
        key = _key(manifest)
        with self._write("status", key):
            if key not in self.objects:
                raise NotFoundError(404, "NotFound", f"no {key}")
            self._store(key, {**self.objects[key], "status": copy.deepcopy(manifest["status"])})
        return copy.deepcopy(self.objects[key])

    def annotate(self, kind: str, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        key = (kind, namespace, name)
        with self._write("annotate", key):
            if key not in self.objects:
                raise NotFoundError(404, "NotFound", f"no {key}")
            self._store(key, lay_over(self.objects[key], {"metadata": {"annotations": dict(annotations)}}))

    def _store(self, key: tuple[str, str, str], item: Manifest) -> None:
        """Keep an object; one that did not change keeps its version, as on the API server."""
        live = self.objects.get(key)
        if live is not None:
            item["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        if item != live:
            item["metadata"]["resourceVersion"] = str(next(self._versions))
            self.objects[key] = item

    def _write(self, verb: str, key: tuple[str, str, str]) -> "_Write":
        if key[0] in self.refused:
            raise ClusterError(403, "Forbidden", f"{verb} {key[0]} is forbidden")
        return _Write(self, f"{verb} {key[0]}")


@dataclass
class _Write:
    """One write with its hooks around it."""

    cluster: FakeCluster
    what: str

    def __enter__(self) -> None:
        self.cluster.before_write()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.cluster.writes.append(self.what)
            self.cluster.after_write()


def _key(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata["namespace"], metadata["name"]


@dataclass
class World:
    """One model, its cluster, its Deployment's controller, its kubelet and its server.

    Attributes:
        limit: memory limit that the kubelet has set.
        seen_checkpoint: whether the server has made a checkpoint.
        down: the server does not answer scrapes.
        cap_bound: the server's own bound on its cap.
        requests: how many it has served, all alike; None: it does not report that.
    """

    cluster: FakeCluster = field(default_factory=FakeCluster)
    limit: str | None = "2Gi"
    seen_checkpoint: bool = False
    down: bool = False
    cap_bound: int = 1 << 40
    requests: int | None = None
    now: datetime = datetime(2026, 12, 1, 12, tzinfo=UTC)
    metrics: Metrics = field(default_factory=Metrics)
    executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    _mounted: Limits = field(init=False)

    def __post_init__(self) -> None:
        self.set_model()
        self.reconciler = self.operator()

    def operator(self) -> Reconciler:
        """A freshly started operator."""
        return Reconciler(
            cluster=self.cluster,
            scraper=self,
            metrics=self.metrics,
            executor=self.executor,
            images=Images(server="server:1", operator="operator:1"),
            settings=LoopSettings(),
            clock=lambda: self.now,
        )

    def set_model(self, **spec: Any) -> None:
        """Apply the HybridModel anew; what the cluster has made of it stays."""
        body = model_body(**spec)
        live = self.cluster.objects.get(_key(body))
        if live is not None:
            body["status"] = live.get("status", {})
            body["metadata"]["generation"] = live["metadata"]["generation"] + 1
        self.cluster.objects[_key(body)] = body

    def start_pod(self) -> None:
        """The Deployment's controller and the kubelet have done their work."""
        pod = {
            "kind": "Pod",
            "metadata": {
                "name": "tiny-1",
                "namespace": "models",
                "uid": "uid-of-pod",
                "labels": {"llamapool.dev/model": "tiny"},
                "resourceVersion": "1",
            },
        }
        self.cluster.objects[_key(pod)] = pod
        self.set_limit(self.limit)

    def set_limit(self, limit: str | None) -> None:
        """The kubelet reports another limit."""
        self.limit = limit
        resources = {} if limit is None else {"limits": {"memory": limit}}
        status = {"name": "server", "state": {"running": {}}, "ready": True, "resources": resources}
        self.pod["status"] = {"podIP": "10.0.0.1", "containerStatuses": [status]}

    def kill_server(self) -> None:
        """The server is killed for memory in the steady phase, with two pooled buffers, and comes back."""
        box = black_box(pool_held_bytes=2 * BUFFER, generation=self.written.generation)
        self._restart_server(137, "OOMKilled", box)

    def crash_server(self) -> None:
        """The server ends by itself, and comes back."""
        self._restart_server(139, "Error", black_box())

    def _restart_server(self, code: int, reason: str, message: str) -> None:
        status = self.pod["status"]["containerStatuses"][0]
        number = status.get("restartCount", 0)
        last = terminated(code, reason, message, containerID=f"containerd://{number}")
        status |= {
            "restartCount": number + 1,
            "containerID": f"containerd://{number + 1}",
            "lastState": {"terminated": last},
        }

    def scrape(self, host: str, port: int) -> ServerSample:
        """The server: it applies what its limits file says, its own bound on top."""
        assert (host, port) == ("10.0.0.1", 9090)
        if self.down:
            raise ScrapeError("Timeout", "no answer")
        limits = self._mounted = self.written if self._has_limits else self._mounted
        cap = (1 << 30) if limits.pool_cap_bytes is None else limits.pool_cap_bytes
        return ServerSample(
            limits_generation=limits.generation,
            pool_cap_bytes=min(cap, self.cap_bound),
            checkpoint_bytes=CHECKPOINT if self.seen_checkpoint else None,
            **self._observed(),
        )

    def _observed(self) -> dict[str, Any]:
        if self.requests is None:
            return {}
        made = seconds(*[0.1] * self.requests)
        prompts = tokens(*[40] * self.requests)
        return {"time_to_first_token": made, "checkpoint_time": made, "prompt_tokens": prompts}

    def look(self) -> bool:
        """The operator looks once."""
        return self.reconciler.look(("models", "tiny"))

    def start_pod_and_settle(self) -> None:
        """A model that was made and is served."""
        self.look()
        self.start_pod()
        self.settle()

    def settle(self) -> None:
        """Let the operator look until it has nothing more to write, some seconds apart."""
        for _ in range(10):
            before = len(self.cluster.writes)
            self.now += timedelta(seconds=5)
            self.look()
            if len(self.cluster.writes) == before:
                return
        raise AssertionError(f"still writing: {self.cluster.writes[-5:]}")

    @property
    def model(self) -> Manifest:
        return self.cluster.objects["HybridModel", "models", "tiny"]

    @property
    def status(self) -> Manifest:
        status: Manifest = self.model.get("status", {})
        return status

    @property
    def pod(self) -> Manifest:
        return self.cluster.objects["Pod", "models", "tiny-1"]

    @property
    def configmap(self) -> Manifest:
        return self.cluster.objects["ConfigMap", "models", "tiny-limits"]

    @property
    def written(self) -> Limits:
        return Limits.from_json(self.configmap["data"]["limits.json"])

    @property
    def _has_limits(self) -> bool:
        return ("ConfigMap", "models", "tiny-limits") in self.cluster.objects

    @property
    def events(self) -> list[Manifest]:
        return self.cluster.list("Event", "models")

    def condition(self, kind: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        (held,) = [held for held in self.status["conditions"] if held["type"] == kind]
        return held["status"], held["reason"]
