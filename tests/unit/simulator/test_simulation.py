"""Faults by script and by chance: what must hold at every step does, and all converges once they end."""

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from llamapool.domain.ladder import Pool
from llamapool.domain.tuning import Tuning
from tests.simulator.faults import calm_down, storm
from tests.simulator.server import GIB, MIB
from tests.simulator.simulation import Simulation


@given(st.integers(0, 1 << 32), st.sampled_from([1, 3, 20]), st.sampled_from([0, 60, 300]))
@example(4573175, 1, 0)  # a ceiling from before the limit was lowered, under which the pool fills all room
@example(1736404157, 1, 60)  # a base that leaves no memory for more than half of the pool
@settings(deadline=None, max_examples=15)
def test_a_storm_breaks_no_invariant_and_all_is_given_again_after_it(
    seed: int, every: int, cooldown: int
) -> None:
    draw = random.Random(seed)  # noqa: S311 - a simulation
    simulation = Simulation(tuning=Tuning(cooldown_seconds=cooldown))
    simulation.look()
    storm(simulation, draw, steps=120, every=every)
    calm_down(simulation)
    assert simulation.written is not None
    assert simulation.written.state_budget_bytes is None


def test_bursts_of_one_size_end_once_the_pool_has_made_room_for_them() -> None:
    simulation = Simulation()
    simulation.server.wanted_buffers = 4
    simulation.look()
    kills = []
    for _ in range(20):
        before = simulation.kills
        simulation.kill(2700 * MIB)
        kills.append(simulation.kills - before)
        for _ in range(80):
            simulation.look()
    assert sum(kills[:3]) >= 1
    assert sum(kills[5:]) == 0
    assert simulation.record is not None
    assert simulation.record.ladder.pool in (Pool.HALF, Pool.OFF)


def test_bursts_that_no_step_can_answer_leave_the_model_degraded_and_the_limits_alone() -> None:
    simulation = Simulation()
    simulation.look()
    for _ in range(40):
        simulation.kill(4 * GIB)
        for _ in range(61):
            simulation.look()
    written = simulation.written
    for _ in range(10):
        simulation.kill(4 * GIB)
        simulation.look(after=400)
    assert simulation.written == written
    assert simulation.record is not None
    assert simulation.record.ladder.trouble is not None
