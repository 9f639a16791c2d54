"""Reading what is there: a model's objects, its pods and one scrape of each server."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from llamapool.adapters.cluster import Cluster, Manifest
from llamapool.adapters.scrape import Scraper
from llamapool.api import HybridModel
from llamapool.domain.black_box import parse_black_box
from llamapool.domain.facts import Facts, Fetch, FetchPhase, Pod, ScrapeFailure, ServerSample, Workload
from llamapool.domain.limits import Limits, Record
from llamapool.errors import LimitsFileError, ScrapeError
from llamapool.foresight import asked_of, declared_memory, need_of
from llamapool.manifests.common import (
    FETCH_CONTAINER,
    GENERATION_ANNOTATION,
    LIMITS_FILE,
    METRICS_PORT,
    MODEL_LABEL,
    RECORD_FILE,
    SERVER_CONTAINER,
    cache_name,
    limits_name,
)
from llamapool.terminations import ends_of, memory_limit, resize_of


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A model's objects as the API server has them, and the facts read from them.

    Attributes:
        configmap, service, deployment, disruption_budget, cache_claim: None where there is none.
        facts: what a decision is made on.
        unreadable: why limits.json or record.json could not be read back, for the log.
    """

    configmap: Manifest | None
    service: Manifest | None
    deployment: Manifest | None
    disruption_budget: Manifest | None
    cache_claim: Manifest | None
    facts: Facts
    unreadable: tuple[str, ...]


def gather(
    model: HybridModel,
    cluster: Cluster,
    scraper: Scraper,
    executor: Executor,
    *,
    known: Mapping[str, Any] | None = None,
) -> Observed:
    """Read everything about a model.

    Args:
        model: the model.
        known: `status.model` as last written.
        cluster: where its objects are.
        scraper: the way to its servers' metrics.
        executor: runs the scrapes of several pods at once.

    Raises:
        ClusterError: the API server did not answer as hoped.
    """
    configmap = cluster.get("ConfigMap", model.namespace, limits_name(model.name))
    service = cluster.get("Service", model.namespace, model.name)
    deployment = cluster.get("Deployment", model.namespace, model.name)
    disruption_budget = cluster.get("PodDisruptionBudget", model.namespace, model.name)
    pods = cluster.list("Pod", model.namespace, f"{MODEL_LABEL}={model.name}")
    living = sorted(
        (pod for pod in pods if "deletionTimestamp" not in pod["metadata"]),
        key=lambda pod: str(pod["metadata"]["name"]),
    )
    cache_claim = None
    if model.cache is not None and model.files.downloaded:
        cache_claim = cluster.get("PersistentVolumeClaim", model.namespace, cache_name(model.name))
    samples = executor.map(lambda pod: _scrape(pod, scraper), living)
    written, record, unreadable = read_limits(configmap)
    seen = tuple(read_pod(pod, sample) for pod, sample in zip(living, samples, strict=True))
    facts_of_files = _model_facts(model, seen, known)
    return Observed(
        configmap=configmap,
        cache_claim=cache_claim,
        service=service,
        deployment=deployment,
        disruption_budget=disruption_budget,
        facts=Facts(
            model_uid=model.uid,
            shape=model.shape,
            policy=model.pool,
            written=written,
            record=record,
            workload=None if deployment is None else read_workload(deployment),
            ends=tuple(end for pod in pods for end in ends_of(pod)),
            tuning=model.tuning,
            trial_request=model.trial_request,
            pods=seen,
            model=facts_of_files,
            need=need_of(model, facts_of_files),
            asked=asked_of(model),
            declared_limit_bytes=declared_memory(model, living, "limits"),
            request_bytes=declared_memory(model, living, "requests"),
            cache_is_shared=None if cache_claim is None else _is_shared(cache_claim),
        ),
        unreadable=unreadable,
    )


def read_limits(configmap: Manifest | None) -> tuple[Limits | None, Record | None, tuple[str, ...]]:
    """Return limits and record of a ConfigMap, None where absent or unreadable, and why unreadable."""
    data: Mapping[str, str] = {} if configmap is None else configmap.get("data") or {}
    limits, record, unreadable = None, None, []
    try:
        limits = Limits.from_json(data[LIMITS_FILE]) if LIMITS_FILE in data else None
    except LimitsFileError as error:
        unreadable.append(str(error))
    try:
        record = Record.from_json(data[RECORD_FILE]) if RECORD_FILE in data else None
    except LimitsFileError as error:
        unreadable.append(str(error))
    return limits, record, tuple(unreadable)


def read_workload(deployment: Manifest) -> Workload:
    """Return what the Deployment's controller reports."""
    status = deployment.get("status", {})
    failures = [
        str(condition.get("message") or condition.get("reason") or condition["type"])
        for condition in status.get("conditions", [])
        if (condition["type"], condition["status"]) in (("Progressing", "False"), ("ReplicaFailure", "True"))
    ]
    return Workload(
        wanted_replicas=deployment["spec"].get("replicas", 1),
        replicas=status.get("replicas", 0),
        failure="; ".join(failures) or None,
    )


def read_pod(pod: Manifest, sample: ServerSample | ScrapeFailure | None) -> Pod:
    """Return the facts of one pod.

    The limit is the one in its status, which the kubelet has really set: a refused resize leaves the spec
    apart from it.
    """
    container = _server_status(pod)
    resources = container.get("resources")
    return Pod(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        running=_runs(container),
        ready=_runs(container) and bool(container.get("ready")),
        limit_reported=_runs(container) and resources is not None,
        limit_bytes=memory_limit(resources or {}),
        restarts=container.get("restartCount", 0),
        nudged_generation=(pod["metadata"].get("annotations") or {}).get(GENERATION_ANNOTATION),
        trouble=_trouble(pod, container),
        sample=sample,
        container_id=str(container.get("containerID") or "") if _runs(container) else "",
        resize=resize_of(pod),
        fetch=read_fetch(pod),
    )


def read_fetch(pod: Manifest) -> Fetch | None:
    """Return what a pod's init container reports; None before it was started, and where there is none.

    What it said last counts until it says something else: while it waits to be started again after a failure,
    and while it tries again.
    """
    statuses = pod.get("status", {}).get("initContainerStatuses") or []
    status = next((each for each in statuses if each["name"] == FETCH_CONTAINER), None)
    if status is None:
        return None
    state = status.get("state") or {}
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    if ended is not None:
        return _ended_fetch(ended, running="running" in state)
    waiting = state.get("waiting") or {}
    if "running" not in state and waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
        return Fetch(phase=FetchPhase.FAILED, error=_words(waiting))  # its image cannot be pulled
    return Fetch(phase=FetchPhase.RUNNING) if "running" in state else None


def _ended_fetch(ended: Mapping[str, Any], *, running: bool) -> Fetch:
    message = _message(ended)
    if ended.get("exitCode") == 0:
        facts = {name: value for name, value in message.items() if name != "v"}
        return Fetch(phase=FetchPhase.DONE, spec=message.get("spec"), facts=facts or None)
    error = str(message.get("error") or _words(ended))
    return Fetch(phase=FetchPhase.FAILED, error=f"{error}; it is tried again now" if running else error)


def _message(ended: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a termination message as the object that it is; empty where it is none."""
    try:
        message = json.loads(ended.get("message") or "")
    except json.JSONDecodeError:
        return {}
    return message if isinstance(message, dict) else {}


def _words(state: Mapping[str, Any]) -> str:
    parts = (state.get("reason"), state.get("message"))
    return ": ".join(str(part) for part in parts if part) or f"exit code {state.get('exitCode')}"


def _model_facts(
    model: HybridModel, pods: Sequence[Pod], known: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return the facts of the files that the spec names: a pod of an earlier spec has those of others."""
    reported = [pod.fetch.facts for pod in pods if pod.fetch is not None and pod.fetch.facts is not None]
    of_these = [facts for facts in (*reported, known or {}) if facts.get("spec") == model.files.digest]
    return of_these[0] if of_these else None


def _is_shared(claim: Manifest) -> bool:
    return bool({"ReadWriteMany", "ReadOnlyMany"}.intersection(claim["spec"].get("accessModes", [])))


def _scrape(pod: Manifest, scraper: Scraper) -> ServerSample | ScrapeFailure | None:
    address = pod.get("status", {}).get("podIP")
    if not _runs(_server_status(pod)) or not address:
        return None
    try:
        return scraper.scrape(address, METRICS_PORT)
    except ScrapeError as error:
        return ScrapeFailure(reason=error.reason, message=str(error))


def _server_status(pod: Manifest) -> Mapping[str, Any]:
    """Return the status of the server's container; empty before the kubelet has reported it."""
    statuses: list[Mapping[str, Any]] = pod.get("status", {}).get("containerStatuses") or []
    return next((status for status in statuses if status["name"] == SERVER_CONTAINER), {})


def _runs(container: Mapping[str, Any]) -> bool:
    return "running" in (container.get("state") or {})


def _trouble(pod: Manifest, container: Mapping[str, Any]) -> str | None:
    """Return why a pod does not run, as the kubelet or the scheduler puts it; None where it runs."""
    for state in ("waiting", "terminated"):
        seen = (container.get("state") or {}).get(state)
        if seen is not None:
            # The server's last words are an account of its memory, no sentence.
            message = None if parse_black_box(seen.get("message")) else seen.get("message")
            parts = (seen.get("reason"), message)
            return ": ".join(str(part) for part in parts if part) or state
    for condition in pod.get("status", {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', 'not scheduled')}: {condition.get('message', '')}"
    return None
