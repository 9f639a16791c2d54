"""Which arms are compared, when the rounds suffice, and what is recorded of it. Pure."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from tests.bench.arms import OURS, UPSTREAM
from tests.bench.measurements import METRICS, TTFT_P50, seconds
from tests.bench.paired import Estimate, Verdict, avoided_share, ratio, reached_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.measurements import Round
    from tests.bench.paired import Plan


def pairs(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Each arm against upstream, and ours against each other arm."""
    to_upstream = [(arm, UPSTREAM) for arm in arms if arm != UPSTREAM] if UPSTREAM in arms else []
    of_ours = [(OURS, arm) for arm in arms if arm not in (OURS, UPSTREAM)] if OURS in arms else []
    return to_upstream + of_ours


def ttft_ratio(rounds: Sequence[Round], arm: str, against: str, *, confidence: float, seed: int) -> Estimate:
    """The ratio of the median time to first token over the rounds that have both arms.

    Raises:
        ValueError: no round has both.
    """
    estimate = compare(rounds, TTFT_P50, arm, against, confidence=confidence, seed=seed)
    if estimate is None:
        raise ValueError(f"no round has both {arm} and {against}")
    return estimate


def compare(
    rounds: Sequence[Round], metric: str, arm: str, against: str, *, confidence: float, seed: int
) -> Estimate | None:
    """The ratio of a metric over the rounds in which both arms have it; None where no round has both."""
    of = METRICS[metric]
    both = [(of(each.batches[arm]), of(each.batches[against])) for each in _with(rounds, arm, against)]
    figures = [(mine, its) for mine, its in both if mine is not None and its is not None]
    if not figures:
        return None
    mine, its = zip(*figures, strict=True)
    return ratio(mine, its, confidence=confidence, seed=seed)


def decided(rounds: Sequence[Round], arms: Sequence[str], plan: Plan, *, neutral: bool) -> bool:
    """Whether every interval of the median time to first token says something.

    That is, it excludes 1 or, of a control, lies inside ±5 % or wholly outside of it.
    """
    estimates = [
        ttft_ratio(rounds, arm, against, confidence=plan.confidence, seed=plan.seed)
        for arm, against in pairs(arms)
    ]
    return all(
        each.settles_neutrality if neutral else each.verdict is Verdict.SEPARATES for each in estimates
    )


def record(
    rounds: Sequence[Round], arms: Sequence[str], plan: Plan, *, load: str, slots: int, neutral: bool
) -> list[dict[str, Any]]:
    """The entries of `comparisons` of one load."""
    entries = []
    for arm, against in pairs(arms):
        for metric in METRICS:
            found = compare(rounds, metric, arm, against, confidence=plan.confidence, seed=plan.seed)
            if found is None:
                continue
            entry = {
                "load": load,
                "arm": arm,
                "against": against,
                "slots": slots,
                "metric": metric,
                "ratio": found.value,
                "interval": [found.low, found.high],
                "rounds": found.rounds,
                "verdict": str(found.verdict),
            }
            if neutral:
                entry["neutral"] = found.neutral
            entries.append(entry)
    return entries


def shares(rounds: Sequence[Round], plan: Plan) -> dict[str, Any]:
    """What ours reaches of what can be reached against upstream; empty where no checkpoint was made.

    `checkpoint_time_avoided` is (upstream − ours) / (upstream − memcpy) of the median checkpoint.
    `allowed_ttft_ratio` is the ratio that upstream's wall time would allow if each of its checkpoints and
    saves took one memcpy; `gain_reached` is (1 − ratio) / (1 − that).
    """
    both = [(each, each.batches[OURS], each.batches[UPSTREAM]) for each in _with(rounds, OURS, UPSTREAM)]
    both = [
        (each, ours, upstream) for each, ours, upstream in both if ours.checkpoints and upstream.checkpoints
    ]
    if not both:
        return {}
    allowed = [each.allowed_ratio(UPSTREAM) for each, _, _ in both]
    avoided = avoided_share(
        [median(seconds(ours.checkpoints)) for _, ours, _ in both],
        [median(seconds(upstream.checkpoints)) for _, _, upstream in both],
        [each.memcpy_seconds(upstream.checkpoints) for each, _, upstream in both],
        confidence=plan.confidence,
        seed=plan.seed,
    )
    reached = reached_share(
        [median(ours.ttft_seconds) for _, ours, _ in both],
        [median(upstream.ttft_seconds) for _, _, upstream in both],
        allowed,
        confidence=plan.confidence,
        seed=plan.seed,
    )
    return {
        "checkpoint_time_avoided": {"value": avoided.value, "interval": [avoided.low, avoided.high]},
        "allowed_ttft_ratio": median(allowed),
        "gain_reached": {"value": reached.value, "interval": [reached.low, reached.high]},
    }


def _with(rounds: Sequence[Round], *arms: str) -> list[Round]:
    return [each for each in rounds if all(arm in each.batches for arm in arms)]
