"""Time to first token in one look: is it as it should be, what is usual, and does a trial run or begin."""

import hashlib
from dataclasses import replace

from llamapool.domain.conditions import DecisionReason, Outcome, PoolMode, TuningMode
from llamapool.domain.course import Course
from llamapool.domain.limits import Figure
from llamapool.domain.policy import answer_harm
from llamapool.domain.trial import Result, Trial, advance
from llamapool.domain.ttft import Assessment, assess, learn

_REASON_OF_RESULT = {
    Result.POOL_HELPS: DecisionReason.TRIAL_POOL_HELPS,
    Result.POOL_HARMS: DecisionReason.TRIAL_POOL_HARMS,
    Result.INCONCLUSIVE: DecisionReason.TRIAL_INCONCLUSIVE,
    Result.ABORTED: DecisionReason.TRIAL_ABORTED,
}


def watch_ttft(course: Course, *, killed: bool) -> Assessment:
    """Judge the time to first token, learn what is usual, and run a trial where one is called for.

    Args:
        course: the look; its record and limits are taken further.
        killed: a container ended since the last look.
    """
    tuning, traffic = course.facts.tuning, course.facts.traffic
    assessed = assess(traffic, course.record.baselines, tuning)
    if course.record.running_trial is not None:
        _run(course, course.record.running_trial, killed=killed)
    if course.record.running_trial is None:
        _begin(course, assessed)
    if course.record.running_trial is None:
        learned = learn(
            course.record.baselines, traffic, tuning, breached=assessed.breached, now=course.seconds
        )
        course.record = replace(course.record, baselines=learned)
    return assessed


def abandon_trial(course: Course, why: str) -> None:
    """End the trial that runs, if one does; the pool is on again."""
    trial = course.record.running_trial
    if trial is not None:
        ended = trial.ended(Result.ABORTED, why, now=course.seconds)
        course.record = replace(course.record, trial=ended)
        _end(course, ended, Result.ABORTED)


def _run(course: Course, trial: Trial, *, killed: bool) -> None:
    further = advance(
        trial, course.facts.measured, setting=_setting(course), killed=killed, now=course.seconds
    )
    if further == trial:
        return
    course.record = replace(course.record, trial=further)
    if further.result is not None:
        _end(course, further, further.result)
        return
    after = course.limits_on(course.record.ladder)
    if not course.same(after):
        # A trial is one decision, not one a leg.
        course.limits = replace(after, decision=trial.id)


def _end(course: Course, trial: Trial, result: Result) -> None:
    """Say what a trial has shown, and act on it where tuning has it so; the pool is on again otherwise."""
    answer = answer_harm(trial.message, course.situation()) if result is Result.POOL_HARMS else None
    ladder, outcome, message = course.record.ladder, Outcome.NOTHING_CHANGED, trial.message
    if answer is not None and course.facts.tuning.ttft is TuningMode.AUTO:
        ladder, outcome, message = answer.ladder, Outcome.APPLIED, f"{message}; the pool is turned off"
    elif result is Result.POOL_HARMS:
        outcome = Outcome.RECOMMENDED
        message = f"{message}. Set spec.pool.mode to Off, or spec.tuning.ttft to Auto"
    after = course.limits_on(ladder)
    identity = course.adopt(
        reason=_REASON_OF_RESULT[result],
        after=after,
        evidence=_evidence(trial),
        message=message,
        outcome=outcome,
        ladder=ladder,
    )
    if not course.same(after):
        course.limits = replace(after, decision=identity)


def _begin(course: Course, assessed: Assessment) -> None:
    """Begin a trial that was asked for, or that a breach calls for; tell of a breach once."""
    request, tuning = course.facts.trial_request, course.facts.tuning
    asked = bool(request) and request != course.record.trial_request
    newly = assessed.breached and not course.record.breached
    still = assessed.breached or (course.record.breached and not assessed.cleared)
    course.record = replace(course.record, trial_request=request, breached=still)
    if asked:
        _try_to_begin(course, f"asked for ({request})")
    elif newly and tuning.ttft is TuningMode.AUTO and assessed.checkpoints_matter:
        _try_to_begin(course, assessed.message)
    elif newly and tuning.ttft is not TuningMode.OFF:
        _tell_breach(course, assessed)


def _try_to_begin(course: Course, why: str) -> None:
    refusal, policy = _refusal(course), course.facts.tuning.trial
    plan = f"{policy.legs} legs of {policy.leg_seconds} s, the pool on and off in alternation"
    identity = course.adopt(
        reason=DecisionReason.TRIAL_REFUSED if refusal else DecisionReason.TRIAL_STARTED,
        after=course.limits,
        evidence={},
        message=f"{why}; no trial: {refusal}" if refusal else f"{why}; {plan}",
        outcome=Outcome.NOTHING_CHANGED,
    )
    if refusal is None:
        trial = Trial(
            id=identity, why=why, started_at=course.seconds, setting=_setting(course), policy=policy
        )
        course.record = replace(course.record, trial=trial)


def _refusal(course: Course) -> str | None:
    """Return why no trial can be run now; None: one can."""
    if course.facts.tuning.ttft is TuningMode.OFF:
        return "spec.tuning.ttft is Off"
    if course.facts.policy.mode is PoolMode.OFF:
        return "spec.pool.mode is Off"
    if course.limits_on(course.record.ladder).pool_cap_bytes == 0:
        return "the pool's cap is 0 already"
    return None if course.facts.ready_pods else "no pod answers requests"


def _tell_breach(course: Course, assessed: Assessment) -> None:
    advice = "checkpoints are no material part of it: the pool is not to blame"
    if assessed.checkpoints_matter:
        advice = "ask for a trial of the pool: kubectl annotate hybridmodel NAME llamapool.dev/trial=now"
    course.adopt(
        reason=DecisionReason.TTFT_BREACHED,
        after=course.limits,
        evidence={},
        message=f"{assessed.message}; {advice}",
        outcome=Outcome.RECOMMENDED if assessed.checkpoints_matter else Outcome.NOTHING_CHANGED,
    )


def _setting(course: Course) -> str:
    """Identify what must not change while a trial runs: pods, restarts, limits, model, flags, plan."""
    facts = course.facts
    pods = sorted((pod.uid, pod.restarts, pod.limit_bytes) for pod in facts.pods)
    parts = (facts.shape, pods, course.plan.pool_cap_bytes, course.record.ladder.pool)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _evidence(trial: Trial) -> dict[str, Figure]:
    """Return the figures of every leg, in order."""
    figures: dict[str, Figure] = {"trial": trial.id, "legs": len(trial.legs)}
    for number, leg in enumerate(trial.legs, start=1):
        made = "none" if leg.checkpoint_seconds is None else f"{leg.checkpoint_seconds:.3g}s"
        arm = "on" if leg.pool_on else "off"
        figures[f"leg{number}"] = (
            f"pool {arm}: {leg.requests} requests, p90 {leg.p90_seconds:.3g}s, checkpoint {made}"
        )
    return figures
