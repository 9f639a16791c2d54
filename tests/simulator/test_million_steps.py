"""A million steps of the operator's decisions under faults by chance: the invariants hold at each."""

import random

from llamapool.domain.tuning import Tuning
from tests.simulator.faults import calm_down, storm
from tests.simulator.simulation import Simulation

STEPS = 1_000_000
STEPS_A_STORM = 10_000


def test_a_million_steps_break_no_invariant_and_every_storm_converges_after_its_end() -> None:
    steps = 0
    for seed in range(STEPS // STEPS_A_STORM):
        draw = random.Random(seed)  # noqa: S311 - a simulation
        simulation = Simulation(tuning=Tuning(cooldown_seconds=(0, 60, 300)[seed % 3]))
        simulation.look()
        storm(simulation, draw, steps=STEPS_A_STORM, every=(2, 10, 50)[seed % 3])
        calm_down(simulation)
        steps += simulation.steps
    assert steps >= STEPS
