"""Whole trials in simulated time, in which the pool makes no difference."""

import math
import random

from llamapool.domain.trial import Measured, Result, Trial, advance
from llamapool.domain.tuning import TrialPolicy
from tests.unit.ttft.observed import seconds, tokens

POLICY = TrialPolicy(legs=7, leg_seconds=60, min_requests=20)
_REQUESTS = 30
_START = 1_764_590_400.0


def null_trial(draw: random.Random) -> Result | None:
    """The result of one trial under drift and noise, and without an effect of the pool.

    The level drifts from leg to leg (5 %), each leg has a level of its own beside that (20 %), and single
    checkpoints and first tokens scatter.
    """
    trial = Trial(id="null", why="simulated", started_at=_START, setting="same", policy=POLICY)
    drift = 0.0
    while trial.running:
        drift += draw.gauss(0, 0.05)
        level = 0.05 * math.exp(drift + draw.gauss(0, 0.2))
        made = [level * draw.lognormvariate(0, 0.5) for _ in range(_REQUESTS)]
        ttft = [0.5 + draw.lognormvariate(0, 0.4) + value for value in made]
        seen = Measured(
            trial=trial.id,
            leg=len(trial.legs),
            seconds=POLICY.leg_seconds,
            time_to_first_token=seconds(*ttft),
            prompt_tokens=tokens(*[40] * _REQUESTS),
            checkpoint_time=seconds(*made),
        )
        trial = advance(trial, seen, setting="same", killed=False, now=_START + 60)
    return trial.result
