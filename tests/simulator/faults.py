"""Faults by chance: everything that befalls a model, with traffic and limits that change under it."""

import random
from collections.abc import Callable
from dataclasses import replace

from llamapool.domain.ladder import Ladder
from llamapool.domain.memory import headroom_bytes
from tests.simulator.server import BUFFER, GIB, MIB
from tests.simulator.simulation import Simulation


def befall(simulation: Simulation, draw: random.Random) -> None:
    """One fault, or one change of the world, by chance."""
    draw.choices([happen for happen, _ in _HAPPENINGS], [weight for _, weight in _HAPPENINGS])[0](
        simulation, draw
    )


def _burst(simulation: Simulation, draw: random.Random) -> None:
    simulation.kill(draw.choice((64, 256, 700, 1500, 3000)) * MIB)


def _leak(simulation: Simulation, draw: random.Random) -> None:
    simulation.server.outside = draw.choice((0, 100, 400, 1000)) * MIB


def _traffic(simulation: Simulation, draw: random.Random) -> None:
    simulation.server.wanted_buffers = draw.randrange(30)


def _base(simulation: Simulation, draw: random.Random) -> None:
    simulation.server.base += draw.choice((0, 10, 80)) * MIB


def _resize(simulation: Simulation, draw: random.Random) -> None:
    simulation.server.limit = draw.choice((2, 4, 4, 8)) * GIB


def _crash(simulation: Simulation, _: random.Random) -> None:
    simulation.end(139, "Error")


def _probe(simulation: Simulation, _: random.Random) -> None:
    simulation.end(137, "Error", liveness=True)


def _child(simulation: Simulation, _: random.Random) -> None:
    simulation.kill_child()


def _replaced(simulation: Simulation, _: random.Random) -> None:
    simulation.replace_pod()


def _flags(simulation: Simulation, draw: random.Random) -> None:
    simulation.shape = f"shape-{draw.randrange(3)}"
    simulation.server.base = 400 * MIB


def _cooldown(simulation: Simulation, draw: random.Random) -> None:
    simulation.tuning = replace(simulation.tuning, cooldown_seconds=draw.choice((0, 60, 300)))


_MOST_STEPS_UP = 200
_HAPPENINGS: tuple[tuple[Callable[[Simulation, random.Random], None], int], ...] = (
    (_burst, 40),
    (_leak, 10),
    (_traffic, 20),
    (_base, 4),
    (_resize, 3),
    (_crash, 3),
    (_probe, 2),
    (_child, 3),
    (_replaced, 2),
    (_flags, 1),
    (_cooldown, 1),
)
"""What happens, and how often beside the others."""


def storm(simulation: Simulation, draw: random.Random, *, steps: int, every: int) -> None:
    """Look so many times, with something befalling it every few looks on average.

    Raises:
        InvariantBrokenError: a decision broke what must always hold.
    """
    for _ in range(steps):
        if draw.randrange(every) == 0:
            befall(simulation, draw)
        simulation.look(after=draw.choice((1.0, 5.0, 5.0, 30.0)))


def calm_down(simulation: Simulation) -> int:
    """Let faults end, and look until everything that was taken back is given again; how many looks it took.

    A base that grew may leave no memory for a larger pool, and nothing else than the pool's rung may wait for
    that; what the base took is then given back too.

    Raises:
        AssertionError: it did not converge.
    """
    server = simulation.server
    server.outside, server.wanted_buffers = 0, 4
    looks, ladder = _climb(simulation)
    if ladder.pristine:
        return looks
    spare = server.limit - headroom_bytes(server.limit) - server.unreclaimable
    if ladder.ceilings or ladder.trouble is not None or spare >= BUFFER:
        raise AssertionError(f"not converged with {spare} bytes to spare: {ladder}")
    server.base = 400 * MIB
    more, ladder = _climb(simulation)
    if not ladder.pristine:
        raise AssertionError(f"not converged with a base of {server.base} bytes: {ladder}")
    return looks + more


def _climb(simulation: Simulation) -> tuple[int, Ladder]:
    """Look after quiet times until nothing is taken back, or for long enough; the looks, and what is left."""
    for looks in range(_MOST_STEPS_UP):
        ladder = Ladder() if simulation.record is None else simulation.record.ladder
        if simulation.record is not None and ladder.pristine:
            return looks, ladder
        simulation.look(after=ladder.quiet_seconds)
        simulation.server.misses += 50  # traffic that would use a larger pool
        simulation.look()
    return _MOST_STEPS_UP, ladder
