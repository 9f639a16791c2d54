"""Storms that no run before had: what breaks here is pinned in tests/unit/simulator."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from llamapool.domain.tuning import Tuning
from tests.simulator.faults import calm_down, storm
from tests.simulator.simulation import Simulation


@given(st.integers(0, 1 << 32), st.sampled_from([1, 3, 20]), st.sampled_from([0, 60, 300]))
@settings(deadline=None, max_examples=1000, derandomize=False)
def test_a_new_storm_breaks_no_invariant_and_all_is_given_again_after_it(
    seed: int, every: int, cooldown: int
) -> None:
    draw = random.Random(seed)  # noqa: S311 - a simulation
    simulation = Simulation(tuning=Tuning(cooldown_seconds=cooldown))
    simulation.look()
    storm(simulation, draw, steps=120, every=every)
    calm_down(simulation)
