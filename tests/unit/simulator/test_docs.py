"""The pictures of docs/tuning.md are those of the table and of the simulated day."""

from tests.simulator.day import PAGE, generated, simulate


def test_the_diagram_and_the_days_decisions_are_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == generated(text, simulate()), "run python -m tests.simulator.day"
