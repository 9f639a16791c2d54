"""Time to first token: whether it is as it should be, by a target or by the model's own baseline.

A baseline belongs to a mix of prompt lengths: longer prompts take longer, and that is no regression.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from llamapool.domain import values as read
from llamapool.domain.conditions import ConditionStatus, Reason
from llamapool.domain.histogram import Histogram
from llamapool.domain.tuning import Tuning
from llamapool.errors import LimitsFileError

MATERIAL_SHARE = 0.1
"""Share of the time to first token from which on making checkpoints is worth a trial."""
_BASELINES = 4
_BASELINE_EVERY_SECONDS = 300.0
_WEIGHT = 0.1
"""How much of a new window a baseline takes on: slow drift is accepted, a jump stands out."""
_CLEARED = 0.9
_LEAST_DISTANCE = 0.15
_KS_FACTOR = 1.95
"""Of the two-sample Kolmogorov-Smirnov test, for a chance of 0.1 % to see a difference that is none."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What was observed over a window, summed over replicas. None: nothing.

    Attributes:
        time_to_first_token: seconds, of all requests of the window.
        prompt_tokens: tokens per prompt.
        checkpoint_time: seconds to make a checkpoint.
    """

    time_to_first_token: Histogram | None = None
    prompt_tokens: Histogram | None = None
    checkpoint_time: Histogram | None = None

    @property
    def requests(self) -> int:
        """Requests that got a first token."""
        return 0 if self.time_to_first_token is None else int(self.time_to_first_token.count)

    @property
    def checkpoint_share(self) -> float | None:
        """Share of all time to first token that went into checkpoints; None: not known."""
        ttft, made = self.time_to_first_token, self.checkpoint_time
        if ttft is None or made is None or not ttft.total or made.total is None:
            return None
        return min(1.0, made.total / ttft.total)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What is usual for one mix of prompts.

    Attributes:
        p90_seconds: time to first token.
        prompts: the mix.
        at: last updated, Unix seconds.
    """

    p90_seconds: float
    prompts: Histogram
    at: float

    def to_dict(self) -> dict[str, Any]:
        """Write it as in record.json."""
        prompts = mix_to_dict(self.prompts)
        return {"p90Seconds": self.p90_seconds, "prompts": prompts, "at": read.time_text(self.at)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read it back.

        Raises:
            LimitsFileError: a field is missing or of another kind.
        """
        return cls(
            p90_seconds=read.number(values, "p90Seconds"),
            prompts=mix_from_dict(read.mapping(values, "prompts")),
            at=read.time_seconds(read.text(values, "at")),
        )


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Whether the time to first token is as it should be.

    Attributes:
        status: whether it is; Unknown where nothing is known.
        reason: one word.
        message: the figures, for people.
        p90_seconds: the figure; None: not known.
        bound_seconds: what it is held against; None: nothing yet.
        checkpoint_share: share of it that went into checkpoints; None: not known.
    """

    status: ConditionStatus
    reason: Reason
    message: str
    p90_seconds: float | None = None
    bound_seconds: float | None = None
    checkpoint_share: float | None = None

    @property
    def breached(self) -> bool:
        """Whether it is worse than it should be."""
        return self.status is ConditionStatus.FALSE

    @property
    def cleared(self) -> bool:
        """Whether it is well below the bound again, so that a breach is over."""
        if self.p90_seconds is None or self.bound_seconds is None:
            return False
        return self.p90_seconds < _CLEARED * self.bound_seconds

    @property
    def checkpoints_matter(self) -> bool:
        """Whether checkpoints are a material share of it; only then can the pool be the reason."""
        return self.checkpoint_share is not None and self.checkpoint_share >= MATERIAL_SHARE


def assess(traffic: Traffic | None, baselines: tuple[Baseline, ...], tuning: Tuning) -> Assessment:
    """Judge the time to first token of the window.

    Args:
        traffic: what was observed; None: no server's metrics are known.
        baselines: what is usual.
        tuning: target, regression, and how many requests make a figure.
    """
    if traffic is None:
        return _unknown(Reason.METRICS_UNAVAILABLE, "no server's metrics are known")
    quantile = None if traffic.time_to_first_token is None else traffic.time_to_first_token.quantile(0.9)
    if quantile is None:
        return _unknown(Reason.NO_TRAFFIC, "no request was served lately")
    usual = _usual(traffic, baselines)
    if tuning.target_p90_seconds is not None:
        bound, words = tuning.target_p90_seconds, f"the target of {tuning.target_p90_seconds:g}s"
        good, bad = Reason.WITHIN_TARGET, Reason.ABOVE_TARGET
    elif traffic.requests < tuning.trial.min_requests:
        few = f"{traffic.requests} requests lately, {tuning.trial.min_requests} make a figure"
        return _unknown(Reason.NO_TRAFFIC, few)
    elif usual is None:
        return _unknown(Reason.BASELINE_NOT_MEASURED, f"p90 {quantile}; nothing to compare with for this mix")
    else:
        bound = usual.p90_seconds * (1 + tuning.regression_percent / 100)
        words = f"the baseline of {usual.p90_seconds:.3g}s by {tuning.regression_percent:g} %"
        good, bad = Reason.WITHIN_BASELINE, Reason.ABOVE_BASELINE
    above = quantile.seconds > bound
    share = traffic.checkpoint_share
    part = "" if share is None else f"; checkpoints are {share:.0%} of it"
    side = "above" if above else "not above"
    return Assessment(
        status=ConditionStatus.FALSE if above else ConditionStatus.TRUE,
        reason=bad if above else good,
        message=f"p90 {quantile} over {traffic.requests} requests is {side} {words}{part}",
        p90_seconds=quantile.seconds,
        bound_seconds=bound,
        checkpoint_share=share,
    )


def learn(
    baselines: tuple[Baseline, ...], traffic: Traffic | None, tuning: Tuning, *, breached: bool, now: float
) -> tuple[Baseline, ...]:
    """Return the baselines after a window: a usual one drifts slowly, a new mix gets its own.

    Args:
        baselines: as they were, the last updated one first.
        traffic: of the window.
        tuning: how many requests make a figure.
        breached: the window is worse than it should be, and nothing to get used to.
        now: Unix seconds.
    """
    ttft = None if traffic is None else traffic.time_to_first_token
    if traffic is None or ttft is None or traffic.prompt_tokens is None:
        return baselines
    quantile = ttft.quantile(0.9)
    due = not baselines or now - baselines[0].at >= _BASELINE_EVERY_SECONDS
    if quantile is None or quantile.at_least or breached or not due:
        return baselines
    if traffic.requests < tuning.trial.min_requests:
        return baselines
    usual = _usual(traffic, baselines)
    if usual is None:
        new = Baseline(p90_seconds=quantile.seconds, prompts=traffic.prompt_tokens, at=now)
        return (new, *baselines)[:_BASELINES]
    drifted = usual.p90_seconds + _WEIGHT * (quantile.seconds - usual.p90_seconds)
    updated = replace(usual, p90_seconds=drifted, at=now)
    return (updated, *(one for one in baselines if one is not usual))


def same_mix(one: Histogram, other: Histogram) -> bool:
    """Return whether two sets of prompts are of the same lengths: neither surely nor much different.

    The largest distance of their distributions is compared with what chance gives (two-sample
    Kolmogorov-Smirnov); less than 0.15 never counts.
    """
    if one.upper_bounds != other.upper_bounds or not one.count or not other.count:
        return False
    distance = max(
        abs(mine / one.count - its / other.count)
        for mine, its in zip(one.cumulative_counts, other.cumulative_counts, strict=True)
    )
    chance = _KS_FACTOR * math.sqrt((one.count + other.count) / (one.count * other.count))
    return distance <= max(_LEAST_DISTANCE, chance)


def mix_to_dict(prompts: Histogram) -> dict[str, float]:
    """Write a histogram as its cumulative counts by upper bound."""
    pairs = zip(prompts.upper_bounds, prompts.cumulative_counts, strict=True)
    return {"+Inf" if bound == math.inf else str(bound): count for bound, count in pairs}


def mix_from_dict(values: Mapping[str, Any]) -> Histogram:
    """Read it back.

    Raises:
        LimitsFileError: a bound or a count is no number.
    """
    try:
        pairs = sorted((float(bound), read.number(values, bound)) for bound in values)
    except ValueError as error:
        raise LimitsFileError(f"prompts: {error}") from error
    return Histogram(tuple(bound for bound, _ in pairs), tuple(count for _, count in pairs))


def _usual(traffic: Traffic, baselines: tuple[Baseline, ...]) -> Baseline | None:
    prompts = traffic.prompt_tokens
    if prompts is None:
        return None
    return next((one for one in baselines if same_mix(one.prompts, prompts)), None)


def _unknown(reason: Reason, message: str) -> Assessment:
    return Assessment(status=ConditionStatus.UNKNOWN, reason=reason, message=message)
