"""What the operator may change by itself while a model is served (`spec.tuning`)."""

from dataclasses import dataclass, field

from llamapool.domain.conditions import TuningMode


@dataclass(frozen=True, kw_only=True)
class TrialPolicy:
    """How the pool is tried on and off.

    Attributes:
        legs: stretches of time in all; fewer than 7 prove nothing.
        leg_seconds: length of one.
        min_requests: least requests in one.
    """

    legs: int = 7
    leg_seconds: int = 120
    min_requests: int = 30


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Which troubles are acted on.

    Attributes:
        memory: after memory trouble.
        ttft: after a slow time to first token.
        cooldown_seconds: least time between two changes.
        target_p90_seconds: what 90 % of requests should stay under; None: the model's own baseline counts.
        regression_percent: how far above its baseline the time to first token counts as worse.
        trial: how the pool is tried.
    """

    memory: TuningMode = TuningMode.AUTO
    ttft: TuningMode = TuningMode.RECOMMEND
    cooldown_seconds: int = 300
    target_p90_seconds: float | None = None
    regression_percent: float = 20.0
    trial: TrialPolicy = field(default_factory=TrialPolicy)
