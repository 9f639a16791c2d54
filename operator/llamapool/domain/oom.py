"""What ended a container, by pod status, black box and the cgroup's counter; each end counted once.

The kubelet's words are not enough. A child that is killed while the server lives shows in nothing but the
counter, and makes the server's own end, much later and for another reason, an `OOMKilled` of another code;
a probe's kill and a kill for memory share exit code 137.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from llamapool.domain.black_box import BlackBox

SIGKILL_EXIT, SIGTERM_EXIT = 137, 143
_ENDED_FROM_OUTSIDE = (0, SIGKILL_EXIT, SIGTERM_EXIT)
_NEAR_THE_LIMIT = 64 << 20
"""A server whose last word was this close to its limit, and that was then killed, was killed for memory."""
_STARTUP_TOLERANCE = 0.9


class Cause(StrEnum):
    """What ended a container or a process in it."""

    CONTAINER_OOM = "ContainerOOM"
    CHILD_OOM = "ChildOOM"
    NODE_OOM = "NodeOOM"
    EVICTION = "Eviction"
    PROBE_KILL = "ProbeKill"
    DEVICE_OOM = "DeviceOOM"
    KILLED = "Killed"
    CRASH = "Crash"


KILLS_FOR_MEMORY = frozenset({Cause.CONTAINER_OOM, Cause.CHILD_OOM})
"""Kills by the container's own limit; only these can be the pool's or the state's doing."""


class Phase(StrEnum):
    """What the container was doing."""

    INIT = "init"
    LOADING = "loading"
    STEADY = "steady"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Termination:
    """One container that ended, as its pod's status tells.

    Attributes:
        pod_uid, pod_name: of its pod.
        container: its name.
        init: it is an init container.
        container_id: of the runtime.
        exit_code: as the kubelet has it.
        reason: the kubelet's word, such as OOMKilled, Error or Completed.
        finished_at: RFC 3339; empty where the kubelet does not know.
        ran_seconds: from its start to its end; None: not known.
        black_box: its last words; None: it left none.
        limit_bytes: the container's memory limit; None: it has none.
        liveness: it has a liveness probe.
        startup_seconds: what its startup probe allows; None: it has none.
        pod_deleted: its pod is being deleted, so an end was asked for.
        pod_failure: the pod's own reason for having failed, such as Evicted.
        message: the kubelet's words on that, or the container's own.
    """

    pod_uid: str
    pod_name: str
    container: str
    init: bool
    container_id: str
    exit_code: int
    reason: str
    finished_at: str = ""
    ran_seconds: float | None = None
    black_box: BlackBox | None = None
    limit_bytes: int | None = None
    liveness: bool = False
    startup_seconds: int | None = None
    pod_deleted: bool = False
    pod_failure: str | None = None
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One end of a container, or of a process in it, that was not asked for.

    Attributes:
        key: the same for every look at the same kill, and for no other: pod UID, container ID and the value
            of the oom_kill counter that it made (`end` where no counter tells).
        pod_name, container: where.
        cause, phase: what it was.
        exit_code: None where the container lives on.
        finished_at: RFC 3339; empty where not known.
        black_box: the figures of that moment; None: unknown.
        count: kills that this one stands for; a counter may have moved by several between two looks.
        message: the kubelet's words, where they add something.
    """

    key: str
    pod_name: str
    container: str
    cause: Cause
    phase: Phase
    exit_code: int | None
    finished_at: str
    black_box: BlackBox | None
    count: int = 1
    message: str = ""

    @property
    def label(self) -> str:
        """Cause and phase as one word, for counting."""
        return f"{self.cause}/{self.phase}"


def kill_of(end: Termination) -> Kill | None:
    """Classify an end; None: it was asked for, or the container had done its work."""
    cause = _cause(end)
    if cause is None:
        return None
    return Kill(
        key=_key(end, cause),
        pod_name=end.pod_name,
        container=end.container,
        cause=cause,
        phase=phase_of(end.black_box, init=end.init),
        exit_code=end.exit_code,
        finished_at=end.finished_at,
        black_box=end.black_box,
        message=end.message,
    )


def child_kill(
    *,
    pod_uid: str,
    pod_name: str,
    container: str,
    container_id: str,
    now: BlackBox,
    handled: Iterable[str],
) -> Kill | None:
    """Return the kill of a process beside the server, which lives and reports the counter.

    Args:
        pod_uid: of the pod.
        pod_name: of the pod.
        container: its name.
        container_id: of the runtime.
        now: what the server reports now; its figures stand for those of the moment of the kill.
        handled: keys that were decided before.
    """
    if not now.oom_kills:
        return None
    prefix = f"{pod_uid}/{container_id}/"
    counted = [key.removeprefix(prefix) for key in handled if key.startswith(prefix)]
    before = max((int(value) for value in counted if value.isdigit()), default=0)
    if now.oom_kills <= before:
        return None
    return Kill(
        key=f"{prefix}{now.oom_kills}",
        pod_name=pod_name,
        container=container,
        cause=Cause.CHILD_OOM,
        phase=phase_of(now, init=False),
        exit_code=None,
        finished_at="",
        black_box=now,
        count=now.oom_kills - before,
    )


def phase_of(black_box: BlackBox | None, *, init: bool) -> Phase:
    """Return what a container was doing by its last words."""
    if init:
        return Phase.INIT
    if black_box is None:
        return Phase.UNKNOWN
    return Phase.LOADING if black_box.phase == "loading" else Phase.STEADY


def _cause(end: Termination) -> Cause | None:
    if end.pod_failure is not None:
        return Cause.EVICTION
    if end.reason == "OOMKilled":
        return _cause_of_oom_kill(end)
    if end.black_box is not None and end.black_box.device_oom:
        return Cause.DEVICE_OOM
    if end.exit_code not in _ENDED_FROM_OUTSIDE:
        return Cause.CRASH
    return None if end.pod_deleted else _cause_from_outside(end)


def _cause_from_outside(end: Termination) -> Cause | None:
    """Classify the end of a container that stopped when it was told to, or was killed."""
    if end.exit_code == SIGKILL_EXIT and _was_near_the_limit(end.black_box):
        return Cause.CONTAINER_OOM
    if _by_probe(end):
        return Cause.PROBE_KILL
    return None if end.exit_code == 0 else Cause.KILLED


def _cause_of_oom_kill(end: Termination) -> Cause:
    unlimited = end.limit_bytes is None and (end.black_box is None or end.black_box.limit_bytes is None)
    if unlimited and not end.init:
        return Cause.NODE_OOM
    return Cause.CONTAINER_OOM if end.exit_code == SIGKILL_EXIT else Cause.CHILD_OOM


def _by_probe(end: Termination) -> bool:
    """Return whether the kubelet may have ended it after a probe failed."""
    if end.init:
        return False
    if end.liveness:
        return True
    if end.startup_seconds is None or end.ran_seconds is None:
        return False
    loading = end.black_box is None or end.black_box.phase == "loading"
    return loading and end.ran_seconds >= _STARTUP_TOLERANCE * end.startup_seconds


def _was_near_the_limit(black_box: BlackBox | None) -> bool:
    if black_box is None or black_box.limit_bytes is None or black_box.unreclaimable_bytes is None:
        return False
    return black_box.unreclaimable_bytes + black_box.asked_bytes > black_box.limit_bytes - _NEAR_THE_LIMIT


def _key(end: Termination, cause: Cause) -> str:
    if cause is Cause.EVICTION:
        return f"{end.pod_uid}/pod/evicted"  # one for all containers of the pod
    counter = None if end.black_box is None else end.black_box.oom_kills
    if cause is Cause.CONTAINER_OOM and counter is not None:
        # The server died of this one, so its last words were written before it.
        return f"{end.pod_uid}/{end.container_id}/{counter + 1}"
    if cause is Cause.CHILD_OOM:
        # The server ended for another reason, after it had counted this one.
        return f"{end.pod_uid}/{end.container_id}/{max(1, counter or 1)}"
    return f"{end.pod_uid}/{end.container_id}/end"
