"""Every word that people and alerts match on: condition types, reasons of conditions and decisions, modes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class PoolMode(StrEnum):
    """Who sets the pool's cap (`spec.pool.mode`)."""

    AUTO = "Auto"
    FIXED = "Fixed"
    OFF = "Off"


class TuningMode(StrEnum):
    """Whether a trouble is acted on (`spec.tuning.memory`, `spec.tuning.ttft`)."""

    AUTO = "Auto"
    RECOMMEND = "Recommend"
    OFF = "Off"


class ConditionType(StrEnum):
    """The conditions of a HybridModel."""

    READY = "Ready"
    MEMORY_FITS = "MemoryFits"
    LIMITS_APPLIED = "LimitsApplied"
    POOL_ACTIVE = "PoolActive"
    TTFT_HEALTHY = "TTFTHealthy"
    DEGRADED = "Degraded"


class ConditionStatus(StrEnum):
    """The three values of a condition, as Kubernetes spells them."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition has its status."""

    # Ready
    SERVING = "Serving"
    STARTING = "Starting"
    SCALED_TO_ZERO = "ScaledToZero"
    ROLLOUT_FAILED = "RolloutFailed"
    SPEC_INVALID = "SpecInvalid"
    FETCHING = "Fetching"
    FETCH_FAILED = "FetchFailed"
    FIELD_UNSUPPORTED = "FieldUnsupported"
    OOM_LOOPING = "OOMLooping"
    NAME_TAKEN = "NameTaken"
    CLUSTER_REFUSED = "ClusterRefused"
    # MemoryFits
    BUDGET_SUFFICIENT = "BudgetSufficient"
    BUDGET_TOO_SMALL = "BudgetTooSmall"
    NO_MEMORY_LIMIT = "NoMemoryLimit"
    LIMIT_NOT_REPORTED = "LimitNotReported"
    CHECKPOINT_NOT_SEEN = "CheckpointNotSeen"
    BASE_NOT_MEASURED = "BaseNotMeasured"
    # LimitsApplied
    ACKNOWLEDGED = "Acknowledged"
    NOT_ACKNOWLEDGED = "NotAcknowledged"
    BOUNDED_BY_SERVER = "BoundedByServer"
    # PoolActive
    POOL_CAPPED = "PoolCapped"
    POOL_OFF = "PoolOff"
    NO_BUFFER_FITS = "NoBufferFits"
    NOTHING_TO_POOL = "NothingToPool"
    TURNED_OFF_AFTER_OOM = "TurnedOffAfterOOM"
    TURNED_OFF_AFTER_TRIAL = "TurnedOffAfterTrial"
    TRIAL_RUNNING = "TrialRunning"
    # TTFTHealthy
    WITHIN_TARGET = "WithinTarget"
    WITHIN_BASELINE = "WithinBaseline"
    ABOVE_TARGET = "AboveTarget"
    ABOVE_BASELINE = "AboveBaseline"
    NO_TRAFFIC = "NoTraffic"
    BASELINE_NOT_MEASURED = "BaselineNotMeasured"
    # Degraded
    SOUND = "Sound"
    NO_STEP_LEFT = "NoStepLeft"
    MEMORY_OUTSIDE_STATE = "MemoryOutsideState"
    RESIZE_REFUSED = "ResizeRefused"
    # several
    NO_PODS = "NoPods"
    METRICS_UNAVAILABLE = "MetricsUnavailable"
    METRIC_MISSING = "MetricMissing"


class DecisionReason(StrEnum):
    """What was decided; also the reasons of Events."""

    # limits changed
    POOL_CAP_CHANGED = "PoolCapChanged"
    STATE_BUDGET_CHANGED = "StateBudgetChanged"
    POOL_HALVED = "PoolHalved"
    POOL_TURNED_OFF = "PoolTurnedOff"
    STATE_BUDGET_LOWERED = "StateBudgetLowered"
    POOL_RETRIED = "PoolRetried"
    POOL_RESTORED = "PoolRestored"
    STATE_BUDGET_RAISED = "StateBudgetRaised"
    TROUBLE_PASSED = "TroublePassed"
    TUNING_RESET = "TuningReset"
    # a kill for memory that changed nothing
    NO_STEP_LEFT = "NoStepLeft"
    MEMORY_OUTSIDE_STATE = "MemoryOutsideState"
    COOLING_DOWN = "CoolingDown"
    UNDER_EARLIER_LIMITS = "UnderEarlierLimits"
    NOT_EXPLAINED = "NotExplained"
    # an end that is none of the pool's or the state's
    LOADING_OOM = "LoadingOOM"
    INIT_OOM = "InitOOM"
    EVICTED = "Evicted"
    NODE_OOM = "NodeOOM"
    PROBE_KILLED = "ProbeKilled"
    DEVICE_OOM = "DeviceOOM"
    KILLED = "Killed"
    CRASHED = "Crashed"
    # time to first token
    TTFT_BREACHED = "TTFTBreached"
    TRIAL_STARTED = "TrialStarted"
    TRIAL_REFUSED = "TrialRefused"
    TRIAL_ABORTED = "TrialAborted"
    TRIAL_INCONCLUSIVE = "TrialInconclusive"
    TRIAL_POOL_HELPS = "TrialPoolHelps"
    TRIAL_POOL_HARMS = "TrialPoolHarms"


class Outcome(StrEnum):
    """What became of a decision."""

    APPLIED = "Applied"
    RECOMMENDED = "Recommended"
    NOTHING_CHANGED = "NothingChanged"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition, without the times and generation that status adds.

    Attributes:
        type: what it is about.
        status: whether it holds.
        reason: one CamelCase word.
        message: what was seen, and what to do about it, for people.
    """

    type: ConditionType
    status: ConditionStatus
    reason: Reason
    message: str


def with_times(
    conditions: Iterable[Condition],
    *,
    previous: Iterable[Mapping[str, Any]],
    observed_generation: int,
    now: str,
) -> list[dict[str, Any]]:
    """Write conditions as in status, the transition time kept where the status did not change.

    Args:
        conditions: what holds now.
        previous: `status.conditions` as last written.
        observed_generation: the CR's `metadata.generation` that they are about.
        now: the time, RFC 3339, UTC.
    """
    before = {entry.get("type"): entry for entry in previous}
    written = []
    for condition in conditions:
        last = before.get(condition.type.value, {})
        unchanged = last.get("status") == condition.status.value
        written.append(
            {
                "type": condition.type.value,
                "status": condition.status.value,
                "reason": condition.reason.value,
                "message": condition.message,
                "observedGeneration": observed_generation,
                "lastTransitionTime": last.get("lastTransitionTime", now) if unchanged else now,
            }
        )
    return written
