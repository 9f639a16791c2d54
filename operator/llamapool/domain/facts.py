"""What is known about a model when its limits are decided: values from the cluster and from its servers."""

from dataclasses import dataclass

from llamapool.domain.histogram import Histogram
from llamapool.domain.limits import Limits, Record
from llamapool.domain.memory import PoolPolicy


@dataclass(frozen=True, kw_only=True)
class ServerSample:
    """One scrape of a server's metrics. None: the server does not report the figure (or reports NaN).

    Attributes:
        limits_generation: generation of the limits.json that it applies.
        pool_cap_bytes: cap that is in effect.
        pool_held_bytes: bytes mapped by pooled buffers.
        pool_held_buffers: number of pooled buffers.
        pool_hits, pool_misses: since its start.
        checkpoint_bytes: size of the data of one checkpoint.
        state_bytes: bytes mapped by all sequence state.
        state_budget_bytes: its own bound on that.
        base_bytes: what it needs beside state.
        cgroup_limit_bytes: its effective memory limit as it sees it.
        cgroup_unreclaimable_bytes: memory that the kernel cannot take back.
        time_to_first_token: seconds, cumulative since its start.
    """

    limits_generation: int | None = None
    pool_cap_bytes: int | None = None
    pool_held_bytes: int | None = None
    pool_held_buffers: int | None = None
    pool_hits: int | None = None
    pool_misses: int | None = None
    checkpoint_bytes: int | None = None
    state_bytes: int | None = None
    state_budget_bytes: int | None = None
    base_bytes: int | None = None
    cgroup_limit_bytes: int | None = None
    cgroup_unreclaimable_bytes: int | None = None
    time_to_first_token: Histogram | None = None


@dataclass(frozen=True, kw_only=True)
class ScrapeFailure:
    """Why a server's metrics are not known.

    Attributes:
        reason: one CamelCase word, such as Timeout.
        message: what happened, for people.
    """

    reason: str
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
    """

    model_uid: str
    shape: str
    policy: PoolPolicy
    written: Limits | None
    record: Record | None
    workload: Workload | None
    pods: tuple[Pod, ...]

    @property
    def ready_pods(self) -> tuple[Pod, ...]:
        """The pods that take requests."""
        return tuple(pod for pod in self.pods if pod.ready)

    @property
    def sized_pods(self) -> tuple[Pod, ...]:
        """The pods that limits are taken from: the ready ones, or all running ones while none is ready."""
        return self.ready_pods or tuple(pod for pod in self.pods if pod.running)
