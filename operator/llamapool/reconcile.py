"""One look at one model: gather, decide, build, apply.

Written in this order, so that whatever an interruption leaves undone is found and finished by the next look:
the ConfigMap (limits and the record of why), then Service and Deployment, the nudge of the pods, the Events,
and last the status, whose list of decisions says which Events were told.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from llamapool.adapters.cluster import Cluster, Manifest
from llamapool.adapters.metrics import Metrics, ModelKey
from llamapool.adapters.scrape import Scraper
from llamapool.api import HybridModel, parse_model
from llamapool.domain.conditions import Condition, Reason
from llamapool.domain.decide import Decision, decide
from llamapool.domain.facts import Facts, ScrapeFailure, ServerSample
from llamapool.domain.judge import judge, unusable
from llamapool.domain.observation import Observation
from llamapool.errors import (
    ClusterError,
    ConflictError,
    InvalidFieldError,
    NotFoundError,
    OwnershipError,
    UnsupportedFieldError,
)
from llamapool.gather import Observed, gather, read_limits
from llamapool.manifests.common import GENERATION_ANNOTATION, MODEL_LABEL, Images, limits_name
from llamapool.manifests.configmap import limits_configmap
from llamapool.manifests.deployment import deployment
from llamapool.manifests.disruption import disruption_budget
from llamapool.manifests.drift import difference
from llamapool.manifests.event import decision_event
from llamapool.manifests.fetch import cache_claim
from llamapool.manifests.rollout import roll
from llamapool.manifests.service import service
from llamapool.manifests.status import model_status, status_object, unusable_status, what_people_see
from llamapool.settings import LoopSettings

_LOG = logging.getLogger(__name__)
_EVENT_AGE = timedelta(hours=1)
"""The API server drops Events after an hour; an older decision is not told again."""
_ACKNOWLEDGEMENT = timedelta(seconds=15)
_REFUSED = (400, 403, 422)
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass
class _Memory:
    """What is kept of a model between two looks; nothing that a restart may not lose."""

    observation: Observation
    status_written_at: datetime = _NEVER
    limits_written_at: datetime = _NEVER


@dataclass(kw_only=True)
class Reconciler:
    """Looks at models, one at a time or several from several threads.

    Attributes:
        cluster: the Kubernetes API.
        scraper: the way to the servers' metrics.
        metrics: the operator's own metrics.
        executor: runs the scrapes of one model's pods at once.
        images: the images of model pods.
        scrape_annotations: whether Services ask a Prometheus to scrape them.
        settings: intervals.
        clock: the time, with its zone.
    """

    cluster: Cluster
    scraper: Scraper
    metrics: Metrics
    executor: Executor
    images: Images
    scrape_annotations: bool = True
    settings: LoopSettings
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _memories: dict[ModelKey, _Memory] = field(default_factory=dict)

    def look(self, key: ModelKey) -> bool:
        """Bring one model to what its spec asks for.

        Args:
            key: namespace and name.

        Returns:
            Whether things are settled; False while an acknowledgement of new limits is still awaited.

        Raises:
            ClusterError: the API server did not answer as hoped; the next look goes on from there.
        """
        body = self.cluster.get("HybridModel", *key)
        if body is None or "deletionTimestamp" in body["metadata"]:
            return True  # the garbage collector takes everything that it owns
        now = self.clock()
        try:
            model = parse_model(body)
        except UnsupportedFieldError as error:
            return self._tell_unusable(body, unusable(Reason.FIELD_UNSUPPORTED, str(error)), now)
        except InvalidFieldError as error:
            return self._tell_unusable(body, unusable(Reason.SPEC_INVALID, str(error)), now)
        try:
            return self._serve(model, body, now)
        except OwnershipError as error:
            return self._tell_unusable(body, unusable(Reason.NAME_TAKEN, str(error)), now)
        except ClusterError as error:
            if error.status not in _REFUSED:
                raise
            return self._tell_unusable(body, unusable(Reason.CLUSTER_REFUSED, str(error)), now)

    def forget(self, key: ModelKey) -> None:
        """Drop what is kept of a model that is gone, its metrics included."""
        self._memories.pop(key, None)
        self.metrics.forget_model(key)

    def _serve(self, model: HybridModel, body: Manifest, now: datetime) -> bool:
        key, memory = (model.namespace, model.name), self._memory_of((model.namespace, model.name))
        observed = gather(
            model, self.cluster, self.scraper, self.executor, known=(body.get("status") or {}).get("model")
        )
        _require_ours(model, observed)
        facts = memory.observation.take(observed.facts, now=now.timestamp())
        decision = decide(facts, now=_text(now))
        if model.paused:
            decision = decision.put_off(facts, now=_text(now))
        conditions = judge(facts, decision)
        ttft = None if facts.traffic is None else facts.traffic.time_to_first_token

        workload, update_pending = roll(deployment(model, self.images), observed.deployment, body)
        if decision.changed or not model.paused:
            self._write_limits(model, observed, decision, memory, now)
        if not model.paused:
            self._keep(service(model, scrape_annotations=self.scrape_annotations), observed.service)
            if (claim := cache_claim(model)) is not None:
                self._keep(claim, observed.cache_claim)
            self._keep(workload, observed.deployment)
            self._keep(disruption_budget(model), observed.disruption_budget)
        self._nudge(model, facts, decision)
        self._tell_decisions(model, body, decision, now)
        status = model_status(
            model,
            body,
            facts=facts,
            decision=decision,
            conditions=conditions,
            ttft=ttft,
            update_pending=update_pending,
            now=_text(now),
        )
        self._write_status(body, status, memory, now)

        self._count_scrape_errors(key, facts)
        self.metrics.show_model(
            key,
            plan=decision.plan,
            limits=decision.limits,
            conditions=conditions,
            ttft=ttft,
            ttft_target_seconds=model.tuning.target_p90_seconds,
            update_pending=update_pending,
        )
        self.metrics.show_kills(key, decision.record.kills)
        return _acknowledged(facts, decision) or now - memory.limits_written_at > _ACKNOWLEDGEMENT

    def _write_limits(
        self, model: HybridModel, observed: Observed, decision: Decision, memory: _Memory, now: datetime
    ) -> None:
        """Write the ConfigMap; whoever wrote it since it was read wins, and this look ends in a conflict."""
        for message in observed.unreadable:
            _LOG.warning("%s/%s: begun anew: %s", model.namespace, limits_name(model.name), message)
        wanted = limits_configmap(model, decision.limits, decision.record)
        live = observed.configmap
        if live is None:
            self.cluster.create(wanted)
        elif decision.changed or difference(live["metadata"], wanted["metadata"]):
            version = {"resourceVersion": live["metadata"]["resourceVersion"]}
            self.cluster.apply({**wanted, "metadata": {**wanted["metadata"], **version}})
        else:
            return
        memory.limits_written_at = now
        before = () if observed.facts.record is None else observed.facts.record.decisions
        counted = {entry.id: entry.count for entry in before}
        for entry in reversed(decision.record.decisions):
            more = entry.count - counted.get(entry.id, 0)
            if more > 0:
                self.metrics.decisions.labels(model.namespace, model.name, entry.reason).inc(more)
                key = f"{model.namespace}/{model.name}"
                _LOG.info("%s: %s %s (%s): %s", key, entry.reason, entry.id, entry.outcome, entry.message)

    def _keep(self, wanted: Manifest, live: Manifest | None) -> None:
        """Apply an object if the live one lacks or contradicts anything that is wanted."""
        where = "absent" if live is None else difference(live, wanted)
        if where is not None:
            metadata = wanted["metadata"]
            _LOG.info(
                "%s/%s: applying %s: %s", metadata["namespace"], metadata["name"], wanted["kind"], where
            )
            self.cluster.apply(wanted)

    def _nudge(self, model: HybridModel, facts: Facts, decision: Decision) -> None:
        """Touch the pods whose server lacks the limits yet: their kubelet refreshes the mount at once.

        Without the right to do so, or with the pod gone, the kubelet's own refresh has to do.
        """
        generation = decision.limits.generation
        for pod in facts.pods:
            if isinstance(pod.sample, ServerSample):
                behind = pod.sample.limits_generation != generation
            else:
                behind = pod.restarts > 0  # it is about to come back, and should find the limits that hold
            if not behind or pod.nudged_generation == str(generation):
                continue
            try:
                annotations = {GENERATION_ANNOTATION: str(generation)}
                self.cluster.annotate("Pod", model.namespace, pod.name, annotations)
            except NotFoundError:
                continue
            except ClusterError as error:
                if error.status not in _REFUSED:
                    raise
                _LOG.debug("%s/%s: not nudged: %s", model.namespace, pod.name, error)

    def _tell_decisions(
        self, model: HybridModel, body: Mapping[str, Any], decision: Decision, now: datetime
    ) -> None:
        """Post the Events of decisions that the status does not list yet, the oldest first."""
        told = {entry.get("id") for entry in (body.get("status") or {}).get("decisions", [])}
        for entry in reversed(decision.record.decisions):
            if entry.id in told or now - datetime.fromisoformat(entry.time) > _EVENT_AGE:
                continue
            try:
                self.cluster.create(decision_event(model, entry))
            except ConflictError:
                continue  # told before an interruption

    def _write_status(self, body: Manifest, status: Manifest, memory: _Memory, now: datetime) -> None:
        """Write the status when people would see a difference; mere figures once in a while."""
        live = body.get("status") or {}
        age_seconds = (now - memory.status_written_at).total_seconds()
        figures_due = age_seconds >= self.settings.figures_interval_seconds
        if what_people_see(status) != what_people_see(live) or (figures_due and status != live):
            self.cluster.apply_status(status_object(body, status))
            memory.status_written_at = now

    def _tell_unusable(self, body: Manifest, conditions: tuple[Condition, ...], now: datetime) -> bool:
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        configmap = self.cluster.get("ConfigMap", key[0], limits_name(key[1]))
        owners = [] if configmap is None else configmap["metadata"].get("ownerReferences", [])
        ours = any(owner["uid"] == body["metadata"]["uid"] for owner in owners)
        _, record, _ = read_limits(configmap if ours else None)
        status = unusable_status(body, conditions, record, now=_text(now))
        self._write_status(body, status, self._memory_of(key), now)
        self.metrics.show_conditions(key, conditions)
        return True

    def _count_scrape_errors(self, key: ModelKey, facts: Facts) -> None:
        """Count failed scrapes of servers that take requests; one that loads need not answer yet."""
        for pod in facts.ready_pods:
            if isinstance(pod.sample, ScrapeFailure):
                self.metrics.scrape_errors.labels(*key, pod.sample.reason).inc()

    def _memory_of(self, key: ModelKey) -> _Memory:
        if key not in self._memories:
            self._memories[key] = _Memory(Observation(self.settings.ttft_window_seconds))
            self.metrics.begin_model(key)
        return self._memories[key]


def _require_ours(model: HybridModel, observed: Observed) -> None:
    """Refuse to touch an object of the wanted name that another owner controls, or that nobody gave us.

    Raises:
        OwnershipError: names the object and what to do.
    """
    for live in (observed.configmap, observed.service, observed.deployment, observed.disruption_budget):
        if live is None:
            continue
        owners = live["metadata"].get("ownerReferences", [])
        if not any(owner["uid"] == model.uid and owner.get("controller") for owner in owners):
            kind, name = live.get("kind", "object"), live["metadata"]["name"]
            raise OwnershipError(
                409,
                "NameTaken",
                f"{kind} {name} is not this model's; rename the model, or remove that object",
            )
    claim = observed.cache_claim
    if claim is not None and claim["metadata"].get("labels", {}).get(MODEL_LABEL) != model.name:
        name = claim["metadata"]["name"]
        raise OwnershipError(
            409,
            "NameTaken",
            f"PersistentVolumeClaim {name} is not of a model of this name; rename the model or that claim",
        )


def _acknowledged(facts: Facts, decision: Decision) -> bool:
    samples = [pod.sample for pod in facts.pods if isinstance(pod.sample, ServerSample)]
    return all(sample.limits_generation == decision.limits.generation for sample in samples)


def _text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
