"""A trial: the pool on and off in alternating legs under the traffic that comes, and what that shows.

Legs lie in time, and machines drift: two legs differ by chance. Of seven alternating legs, all four of one
arm lie beyond all three of the other by chance once in thirty-five times, for a given direction. So a trial
needs seven legs or more, a clean separation, a minimum effect, and the same mix of prompts in every leg.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from llamapool.domain import values as read
from llamapool.domain.histogram import Histogram
from llamapool.domain.ttft import mix_from_dict, mix_to_dict, same_mix
from llamapool.domain.tuning import TrialPolicy
from llamapool.errors import LimitsFileError

LEAST_EFFECT = 1.1
"""Ratio of the medians of both arms' checkpoint times from which on a difference is worth acting on."""
_HARM = 2.0
"""A leg whose time to first token is so many times the first leg's ends the trial at once."""
_LONGEST_FACTOR = 3
_LONGEST_SETTLING_SECONDS = 600


class Result(StrEnum):
    """How a trial ended."""

    POOL_HELPS = "PoolHelps"
    POOL_HARMS = "PoolHarms"
    INCONCLUSIVE = "Inconclusive"
    ABORTED = "Aborted"


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One stretch of a trial.

    Attributes:
        pool_on: the pool was at its cap, not at 0.
        requests: that got a first token in it.
        p90_seconds: time to first token; at the top bucket's bound where beyond it.
        checkpoint_seconds: mean time to make a checkpoint; None: none was made.
        prompts: tokens per prompt.
    """

    pool_on: bool
    requests: int
    p90_seconds: float
    checkpoint_seconds: float | None
    prompts: Histogram

    def to_dict(self) -> dict[str, Any]:
        """Write it as in record.json."""
        return {
            "poolOn": self.pool_on,
            "requests": self.requests,
            "p90Seconds": self.p90_seconds,
            "checkpointSeconds": self.checkpoint_seconds,
            "prompts": mix_to_dict(self.prompts),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read it back; LimitsFileError if a field is missing or of another kind."""
        return cls(
            pool_on=values.get("poolOn") is True,
            requests=read.whole(values, "requests"),
            p90_seconds=read.number(values, "p90Seconds"),
            checkpoint_seconds=read.optional_number(values, "checkpointSeconds"),
            prompts=mix_from_dict(read.mapping(values, "prompts")),
        )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was observed in the leg that runs, since its limits were acknowledged everywhere.

    Attributes:
        trial, leg: id of the trial, number of the leg from 0.
        seconds: how long that is.
        time_to_first_token, prompt_tokens, checkpoint_time: of that time; None: nothing.
    """

    trial: str
    leg: int
    seconds: float
    time_to_first_token: Histogram | None
    prompt_tokens: Histogram | None
    checkpoint_time: Histogram | None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A trial that runs, or the last one.

    Attributes:
        id: of the decision that started it.
        why: what it was started on.
        started_at: Unix seconds.
        setting: identifies pods, their restarts, model, flags and plan; a trial ends when it changes.
        policy: how it is run.
        legs: those that are over.
        result: how it ended; None: it runs.
        message: what it showed, or why it ended.
        ended_at: Unix seconds; None: it runs.
    """

    id: str
    why: str
    started_at: float
    setting: str
    policy: TrialPolicy
    legs: tuple[Leg, ...] = ()
    result: Result | None = None
    message: str = ""
    ended_at: float | None = None

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.result is None

    @property
    def pool_on(self) -> bool:
        """Whether the pool is on in the leg that runs; the first leg and every second one after it."""
        return len(self.legs) % 2 == 0

    def ended(self, result: Result, message: str, *, now: float) -> "Trial":
        """Return it after its end."""
        return replace(self, result=result, message=message, ended_at=now)

    def to_dict(self) -> dict[str, Any]:
        """Write it as in record.json."""
        return {
            "id": self.id,
            "why": self.why,
            "startedAt": read.time_text(self.started_at),
            "setting": self.setting,
            "legsWanted": self.policy.legs,
            "legSeconds": self.policy.leg_seconds,
            "minRequests": self.policy.min_requests,
            "legs": [leg.to_dict() for leg in self.legs],
            "result": None if self.result is None else self.result.value,
            "message": self.message,
            "endedAt": None if self.ended_at is None else read.time_text(self.ended_at),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self | None:
        """Read it back; None if there is none.

        Raises:
            LimitsFileError: a field is missing or of another kind.
        """
        if not values:
            return None
        result = read.optional_text(values, "result")
        try:
            known = None if result is None else Result(result)
        except ValueError as error:
            raise LimitsFileError(f"result: {result!r} must be one of {', '.join(Result)}") from error
        return cls(
            id=read.text(values, "id"),
            why=read.text(values, "why"),
            started_at=read.time_seconds(read.text(values, "startedAt")),
            setting=read.text(values, "setting"),
            policy=TrialPolicy(
                legs=read.whole(values, "legsWanted"),
                leg_seconds=read.whole(values, "legSeconds"),
                min_requests=read.whole(values, "minRequests"),
            ),
            legs=tuple(Leg.from_dict(leg) for leg in read.items(values, "legs")),
            result=known,
            message=read.text(values, "message"),
            ended_at=read.optional_time(values, "endedAt"),
        )


def advance(trial: Trial, measured: Measured | None, *, setting: str, killed: bool, now: float) -> Trial:
    """Return a running trial after one more look: as it was, one leg further, or ended.

    Args:
        trial: it runs.
        measured: of the leg that runs; None: its limits are not acknowledged everywhere yet.
        setting: pods, restarts, model, flags and plan as they are now.
        killed: a container ended since the last look.
        now: Unix seconds.
    """
    longest = _LONGEST_FACTOR * trial.policy.legs * trial.policy.leg_seconds + _LONGEST_SETTLING_SECONDS
    if killed or setting != trial.setting:
        what = "a server ended" if killed else "pods, limits, model or flags changed"
        return trial.ended(Result.ABORTED, f"{what} while it ran", now=now)
    if now - trial.started_at > longest:
        return trial.ended(Result.ABORTED, f"not done within {longest} s: servers were not reached", now=now)
    if measured is None or (measured.trial, measured.leg) != (trial.id, len(trial.legs)):
        return trial
    harm = _harm(trial, measured)
    if harm is not None:
        # Longer prompts take longer, whatever the pool does.
        other = _other_mix(trial, measured.prompt_tokens)
        return trial.ended(*(other or (Result.ABORTED, harm)), now=now)
    if measured.seconds < trial.policy.leg_seconds:
        return trial
    return _finish_leg(trial, measured, now=now)


def judge_legs(legs: tuple[Leg, ...]) -> tuple[Result, str]:
    """Return what the legs of a whole trial show: checkpoint times first, time to first token second."""
    on = [leg.checkpoint_seconds for leg in legs if leg.pool_on and leg.checkpoint_seconds is not None]
    off = [leg.checkpoint_seconds for leg in legs if not leg.pool_on and leg.checkpoint_seconds is not None]
    if len(on) + len(off) < len(legs):
        return Result.INCONCLUSIVE, "there was a leg in which no checkpoint was made"
    checkpoint_on, checkpoint_off = statistics.median(on), statistics.median(off)
    ttft_on, ttft_off = (
        statistics.median(leg.p90_seconds for leg in legs if leg.pool_on is arm) for arm in (True, False)
    )
    figures = (
        f"a checkpoint takes {_milliseconds(checkpoint_on)} with the pool and {_milliseconds(checkpoint_off)}"
        f" without; time to first token p90 {ttft_on:.3g}s and {ttft_off:.3g}s"
    )
    if min(on) > max(off) and checkpoint_on >= LEAST_EFFECT * checkpoint_off and ttft_on >= ttft_off:
        return Result.POOL_HARMS, f"the pool harms: {figures}"
    if max(on) < min(off) and checkpoint_off >= LEAST_EFFECT * checkpoint_on and ttft_on <= ttft_off:
        return Result.POOL_HELPS, f"the pool helps: {figures}"
    return Result.INCONCLUSIVE, f"unclaimed, the legs do not separate: {figures}"


def _harm(trial: Trial, measured: Measured) -> str | None:
    ttft = measured.time_to_first_token
    if not trial.legs or ttft is None or 2 * ttft.count < trial.policy.min_requests:
        return None
    quantile, first = ttft.quantile(0.9), trial.legs[0].p90_seconds
    if quantile is None or quantile.seconds <= _HARM * first:
        return None
    return f"time to first token p90 went from {first:.3g}s to {quantile}"


def _other_mix(trial: Trial, prompts: Histogram | None) -> tuple[Result, str] | None:
    """Return that the leg that runs has prompts of other lengths than the first; None: it has not."""
    if not trial.legs or prompts is None or same_mix(trial.legs[0].prompts, prompts):
        return None
    told = f"prompts in leg {len(trial.legs) + 1} were of other lengths than in the first"
    return Result.INCONCLUSIVE, told


def _finish_leg(trial: Trial, measured: Measured, *, now: float) -> Trial:
    ttft, made = measured.time_to_first_token, measured.checkpoint_time
    requests = 0 if ttft is None else int(ttft.count)
    if ttft is None or measured.prompt_tokens is None or requests < trial.policy.min_requests:
        least = trial.policy.min_requests
        few = f"{requests} requests in leg {len(trial.legs) + 1}, it takes {least}"
        return trial.ended(Result.INCONCLUSIVE, few, now=now)
    quantile = ttft.quantile(0.9)
    leg = Leg(
        pool_on=trial.pool_on,
        requests=requests,
        p90_seconds=0.0 if quantile is None else quantile.seconds,
        checkpoint_seconds=None if made is None else made.mean,
        prompts=measured.prompt_tokens,
    )
    other = _other_mix(trial, leg.prompts)
    further = replace(trial, legs=(*trial.legs, leg))
    if other is not None:
        return further.ended(*other, now=now)
    if len(further.legs) < further.policy.legs:
        return further
    return further.ended(*judge_legs(further.legs), now=now)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"
