"""What is known about a model when its limits are decided: values from the cluster and from its servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from llamapool.domain.black_box import BlackBox
from llamapool.domain.histogram import Histogram
from llamapool.domain.limits import Limits, Record
from llamapool.domain.memory import PoolPolicy
from llamapool.domain.oom import Termination
from llamapool.domain.policy import Calm, Rise
from llamapool.domain.sizing import Asked, Need
from llamapool.domain.trial import Measured
from llamapool.domain.ttft import Traffic
from llamapool.domain.tuning import Tuning


@dataclass(frozen=True, kw_only=True)
class ServerSample:
    """One scrape of a server's metrics. None: the server does not report the figure (or reports NaN).

    Attributes:
        limits_generation: generation of the limits.json that it applies.
        pool_cap_bytes: cap that is in effect.
        pool_held_bytes: bytes mapped by pooled buffers.
        pool_held_buffers: number of pooled buffers.
        pool_hits, pool_misses, pool_declines: since its start.
        checkpoint_bytes: size of the data of one checkpoint.
        state_bytes: bytes mapped by all sequence state.
        state_budget_bytes: its own bound on that.
        base_bytes: what it needs beside state.
        cgroup_limit_bytes: its effective memory limit as it sees it.
        cgroup_unreclaimable_bytes: memory that the kernel cannot take back.
        cgroup_oom_kills: processes of its cgroup killed for memory.
        time_to_first_token: seconds, cumulative since its start.
        checkpoint_time: seconds to make a checkpoint, cumulative since its start.
        prompt_tokens: tokens per prompt, cumulative since its start.
    """

    limits_generation: int | None = None
    pool_cap_bytes: int | None = None
    pool_held_bytes: int | None = None
    pool_held_buffers: int | None = None
    pool_hits: int | None = None
    pool_misses: int | None = None
    pool_declines: int | None = None
    checkpoint_bytes: int | None = None
    state_bytes: int | None = None
    state_budget_bytes: int | None = None
    base_bytes: int | None = None
    cgroup_limit_bytes: int | None = None
    cgroup_unreclaimable_bytes: int | None = None
    cgroup_oom_kills: int | None = None
    time_to_first_token: Histogram | None = None
    checkpoint_time: Histogram | None = None
    prompt_tokens: Histogram | None = None

    def accounting(self, *, at_seconds: float) -> BlackBox:
        """Return the same figures as the server's black box has them, for decisions while it lives."""
        return BlackBox(
            at_seconds=int(at_seconds),
            phase="ready",
            limit_bytes=self.cgroup_limit_bytes,
            unreclaimable_bytes=self.cgroup_unreclaimable_bytes,
            base_bytes=self.base_bytes,
            state_bytes=self.state_bytes or 0,
            budget_bytes=self.state_budget_bytes,
            pool_held_bytes=self.pool_held_bytes or 0,
            cap_bytes=self.pool_cap_bytes,
            generation=self.limits_generation,
            oom_kills=self.cgroup_oom_kills,
        )


@dataclass(frozen=True, kw_only=True)
class ScrapeFailure:
    """Why a server's metrics are not known.

    Attributes:
        reason: one CamelCase word, such as Timeout.
        message: what happened, for people.
    """

    reason: str
    message: str


class FetchPhase(StrEnum):
    """How far the init container that brings a model's files into its pod has come."""

    RUNNING = "running"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """What the init container of a pod reports.

    Attributes:
        phase: how far it has come.
        spec: digest of what it was asked for; None: it has not said.
        facts: of the model, in the form that status keeps them; None: none yet, or none that fit.
        error: why it failed; None: it did not.
    """

    phase: FetchPhase
    spec: str | None = None
    facts: Mapping[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Resize:
    """A change of the memory limit in place that was asked for and is not in effect.

    Attributes:
        limit_bytes: the limit asked for; None: none.
        refused: the kubelet will not do it.
        message: its words; empty while it says nothing.
    """

    limit_bytes: int | None
    refused: bool
    message: str


@dataclass(frozen=True, kw_only=True)
class Pod:
    """One pod of a model that is not being deleted.

    Attributes:
        name, uid: of the pod.
        running: its server's container runs.
        ready: it takes requests.
        limit_reported: status says which resources the container really has.
        limit_bytes: memory limit by that status; None: none (or not reported).
        restarts: of the server's container.
        nudged_generation: the pod's annotation `llamapool.dev/limits-generation`.
        trouble: why it does not run, as the kubelet or the scheduler puts it.
        sample: its server's metrics, or why there are none; None: not asked, since it does not run.
        container_id: of the running server's container; empty where none runs.
        resize: a resize in place that the kubelet has not carried out.
        fetch: its init container; None: there is none, or it was not started yet.
    """

    name: str
    uid: str
    running: bool
    ready: bool
    limit_reported: bool
    limit_bytes: int | None
    restarts: int
    nudged_generation: str | None
    trouble: str | None
    sample: ServerSample | ScrapeFailure | None
    container_id: str = ""
    resize: Resize | None = None
    fetch: Fetch | None = None

    @property
    def planned_limit_bytes(self) -> int | None:
        """The limit to plan with: what the kubelet has set, or the smaller one that it is about to set.

        A shrink is trimmed for first, or the kubelet would refuse it; a larger limit counts once it is there.
        """
        if self.resize is None or self.resize.refused or self.resize.limit_bytes is None:
            return self.limit_bytes
        return min(self.resize.limit_bytes, self.limit_bytes or self.resize.limit_bytes)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The Deployment as its controller reports it.

    Attributes:
        wanted_replicas: `spec.replicas`.
        replicas: pods that exist.
        failure: message of a rollout that passed its deadline, or of pods that could not be created.
    """

    wanted_replicas: int
    replicas: int
    failure: str | None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that a decision is made on.

    Attributes:
        model_uid: uid of the HybridModel.
        shape: identifies model and flags; figures learned of another shape do not count.
        policy: what the user asked of the pool.
        written: limits.json as it is in the cluster; None: absent or unreadable.
        record: record.json as it is in the cluster; None: absent or unreadable.
        workload: the Deployment; None: not made yet.
        pods: in the order of their names.
        ends: containers that ended, of all pods, those that are being deleted included.
        tuning: what may be changed.
        rises: how the memory of pods moves, where enough was seen of it.
        calm: how much memory is to spare; None: not known of every ready pod.
        traffic: what was observed of requests lately; None: no server's metrics are known.
        measured: what was observed in the leg of a trial that runs; None: nothing yet.
        trial_request: what asks for a trial, any text; empty: nothing does.
        model: facts of the files that the spec names, as status keeps them (facts_message.from_status reads
            them); None: not known.
        need: what a server is predicted to need.
        asked: what the user set for state.
        declared_limit_bytes: memory limit that pods are started with, defaults of their namespace included;
            None: none, or there is no pod and the spec has none.
        request_bytes: memory that pods are guaranteed; None: none, or not known.
        cache_is_shared: the claim that files are kept on can be on several nodes; None: there is no claim.
    """

    model_uid: str
    shape: str
    policy: PoolPolicy
    written: Limits | None
    record: Record | None
    workload: Workload | None
    pods: tuple[Pod, ...]
    ends: tuple[Termination, ...] = ()
    tuning: Tuning = field(default_factory=Tuning)
    rises: tuple[Rise, ...] = ()
    calm: Calm | None = None
    traffic: Traffic | None = None
    measured: Measured | None = None
    trial_request: str = ""
    model: Mapping[str, Any] | None = None
    cache_is_shared: bool | None = None
    need: Need = field(default_factory=Need)
    asked: Asked = field(default_factory=Asked)
    declared_limit_bytes: int | None = None
    request_bytes: int | None = None

    @property
    def shrinking(self) -> bool:
        """Whether a smaller limit is asked for and not in effect yet: the state has to give way first."""
        return any(
            pod.planned_limit_bytes is not None
            and (pod.limit_bytes is None or pod.planned_limit_bytes < pod.limit_bytes)
            for pod in self.sized_pods
            if pod.limit_reported
        )

    def acknowledged(self, generation: int) -> bool:
        """Whether every ready pod, and there is one, reports to apply that generation."""
        samples = [pod.sample for pod in self.ready_pods]
        return bool(samples) and all(
            isinstance(sample, ServerSample) and sample.limits_generation == generation for sample in samples
        )

    @property
    def ready_pods(self) -> tuple[Pod, ...]:
        """The pods that take requests."""
        return tuple(pod for pod in self.pods if pod.ready)

    @property
    def sized_pods(self) -> tuple[Pod, ...]:
        """The pods that limits are taken from: the ready ones, or all running ones while none is ready."""
        return self.ready_pods or tuple(pod for pod in self.pods if pod.running)
