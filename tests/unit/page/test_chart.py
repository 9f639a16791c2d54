"""The pictures of the status page: nothing is drawn that is not known, and nothing outside of its frame."""

from hypothesis import given
from hypothesis import strategies as st

from llamapool.page.chart import HEIGHT, WIDTH, budget_segments, ttft_lines
from llamapool.page.history import Point, TtftHistory

A, B = ("models", "a"), ("models", "b")
NOW = 1_800_000_000.0
SIZES = st.none() | st.integers(0, 1 << 45)


@given(st.integers(1, 1 << 45), SIZES, SIZES, SIZES)
def test_the_parts_of_the_bar_lie_side_by_side_within_the_limit(
    limit: int, base: int | None, state: int | None, headroom: int | None
) -> None:
    memory = {"limitBytes": limit, "baseBytes": base, "stateBudgetBytes": state, "headroomBytes": headroom}
    end = 0.0
    for part in budget_segments(memory):
        assert part.start == end
        assert part.share >= 0
        end = part.start + part.share
    assert end <= 100.0001


def test_without_a_limit_there_is_no_bar() -> None:
    assert budget_segments({"baseBytes": 1}) == ()


@given(st.lists(st.tuples(st.floats(0, 3600), st.none() | st.floats(0.001, 1000)), max_size=70))
def test_every_line_stays_in_its_frame(measured: list[tuple[float, float | None]]) -> None:
    points = [
        Point(at=NOW - ago, p50=value, p90=value)
        for ago, value in sorted(measured, key=lambda each: -each[0])
    ]
    lines = ttft_lines(points, now=NOW)
    if lines is None:
        assert all(point.p90 is None for point in points)
        return
    for stretch in (*lines.p50, *lines.p90):
        for pair in stretch.split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT


def test_minutes_without_requests_leave_a_gap() -> None:
    values = [1.0, 1.0, None, None, 2.0, 2.0]
    points = [Point(at=NOW - 60 * (6 - n), p50=None, p90=value) for n, value in enumerate(values)]
    lines = ttft_lines(points, now=NOW)
    assert lines is not None
    assert len(lines.p90) == 2
    assert lines.p50 == ()


def test_an_hour_is_kept_and_models_that_are_gone_are_not() -> None:
    history = TtftHistory()
    for minute in range(90):
        history.sample({A: {"ttft": {"p50": "0.1s", "p90": "≥600s"}}, B: {}}, now=NOW + 60 * minute)
    assert len(history.of(A)) == 61
    assert (history.of(A)[-1].p90, history.of(B)[-1].p90) == (600, None)
    history.sample({B: {}}, now=NOW + 60 * 90)
    assert history.of(A) == ()
