"""The memory plan of a pod: what a limit leaves for state, and the pool's cap within it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamapool.domain.conditions import PoolMode
from llamapool.domain.memory import (
    PoolPolicy,
    fit_of,
    headroom_bytes,
    make_plan,
    mapped_bytes,
    tolerance_bytes,
)

MIB = 1 << 20
GIB = 1 << 30
CHECKPOINT = int(149.626 * MIB)
SIZES = st.integers(1, 64 * GIB)


def policy(
    mode: PoolMode = PoolMode.AUTO, cap: int | None = None, percent: float = 6.25, slots: int = 4
) -> PoolPolicy:
    return PoolPolicy(mode=mode, cap_bytes=cap, limit_percent=Fraction(str(percent)), slots=slots)


def cap(
    *,
    limit: int | None,
    base: int | None = None,
    checkpoint: int | None = None,
    asked: PoolPolicy | None = None,
) -> int | None:
    plan = make_plan(
        policy=asked or policy(), limit_bytes=limit, base_bytes=base, checkpoint_bytes=checkpoint
    )
    return plan.pool_cap_bytes


def test_before_a_checkpoint_was_seen_the_cap_is_the_share_of_the_limit() -> None:
    assert cap(limit=2 * GIB) == 128 * MIB


def test_the_cap_is_one_buffer_a_slot_where_the_share_is_less() -> None:
    assert cap(limit=2 * GIB, checkpoint=CHECKPOINT) == 4 * 150 * MIB


def test_the_cap_is_the_share_in_whole_buffers_where_that_is_more() -> None:
    assert cap(limit=64 * GIB, checkpoint=CHECKPOINT) == 4096 // 150 * 150 * MIB


def test_the_cap_never_exceeds_what_base_and_headroom_leave() -> None:
    assert cap(limit=2 * GIB, base=GIB + 400 * MIB, checkpoint=CHECKPOINT) == 2 * 150 * MIB


def test_the_cap_is_0_where_not_one_buffer_fits() -> None:
    assert cap(limit=GIB, base=700 * MIB, checkpoint=CHECKPOINT) == 0


def test_without_a_limit_there_is_no_cap_but_the_servers_own() -> None:
    assert cap(limit=None, checkpoint=CHECKPOINT) is None


def test_a_fixed_cap_is_the_users_whatever_the_limit() -> None:
    assert cap(limit=GIB, checkpoint=CHECKPOINT, asked=policy(PoolMode.FIXED, cap=7 * GIB)) == 7 * GIB


def test_a_pool_that_is_off_keeps_nothing() -> None:
    assert cap(limit=GIB, asked=policy(PoolMode.OFF)) == 0


def test_a_4_gib_pod_is_sized_from_its_limit_whatever_the_host_has() -> None:
    assert cap(limit=4 * GIB) == 256 * MIB


@given(
    limit=SIZES,
    base=st.none() | SIZES,
    checkpoint=st.none() | st.integers(1, 2 * GIB),
    percent=st.integers(1, 100),
    slots=st.integers(1, 64),
)
def test_an_automatic_cap_is_whole_buffers_within_limit_headroom_and_base(
    limit: int, base: int | None, checkpoint: int | None, percent: int, slots: int
) -> None:
    plan = make_plan(
        policy=policy(percent=percent, slots=slots),
        limit_bytes=limit,
        base_bytes=base,
        checkpoint_bytes=checkpoint,
    )
    assert plan.pool_cap_bytes is not None
    assert 0 <= plan.pool_cap_bytes <= max(0, limit - headroom_bytes(limit) - (base or 0))
    if plan.state_budget_bytes is not None:
        assert plan.pool_cap_bytes <= plan.state_budget_bytes
    if plan.buffer_bytes is not None:
        assert plan.pool_cap_bytes % plan.buffer_bytes == 0


@given(limit=SIZES, base=SIZES, checkpoint=st.integers(1, GIB), slots=st.integers(1, 64))
def test_a_larger_limit_never_lowers_the_cap(limit: int, base: int, checkpoint: int, slots: int) -> None:
    asked = policy(slots=slots)
    lower = cap(limit=limit, base=base, checkpoint=checkpoint, asked=asked)
    higher = cap(limit=limit + GIB, base=base, checkpoint=checkpoint, asked=asked)
    assert lower is not None
    assert higher is not None
    assert higher >= lower


@given(st.integers(0, 2**40))
def test_a_mapped_buffer_is_the_next_whole_number_of_huge_pages(data: int) -> None:
    assert mapped_bytes(data) % (2 * MIB) == 0
    assert 0 <= mapped_bytes(data) - data < 2 * MIB


@pytest.mark.parametrize(
    ("limit", "headroom"),
    [(GIB, 256 * MIB), (5120 * MIB, 256 * MIB), (100 * GIB, 5 * GIB), (101 * 10**9 + 1, 5050000001)],
)
def test_the_headroom_is_256_mib_or_5_percent_rounded_up(limit: int, headroom: int) -> None:
    assert headroom_bytes(limit) == headroom


@pytest.mark.parametrize(
    ("predicted", "tolerance"), [(0, 32 * MIB), (640 * MIB, 32 * MIB), (GIB, GIB * 5 // 100 + 1)]
)
def test_the_tolerance_of_a_prediction_is_32_mib_or_5_percent_rounded_up(
    predicted: int, tolerance: int
) -> None:
    assert tolerance_bytes(predicted) == tolerance


@given(limit=SIZES, predicted=SIZES, off_percent=st.integers(-100, 100), checkpoint=st.integers(1, GIB))
def test_what_fits_by_a_prediction_fits_by_every_base_that_its_tolerance_allows(
    limit: int, predicted: int, off_percent: int, checkpoint: int
) -> None:
    measured = max(0, predicted + tolerance_bytes(predicted) * off_percent // 100)
    before, after = (
        make_plan(policy=policy(), limit_bytes=limit, checkpoint_bytes=checkpoint, **base)
        for base in (
            {"base_bytes": None, "predicted_base_bytes": predicted},
            {"base_bytes": measured, "predicted_base_bytes": predicted},
        )
    )
    first, then = fit_of(before, 4), fit_of(after, 4)
    assert first is not None
    assert then is not None
    assert then.fits or not first.fits
    assert then.least_limit_bytes <= first.least_limit_bytes
    assert (before.base_measured, after.base_measured) == (False, True)


def test_a_measured_base_is_planned_with_as_it_is() -> None:
    plan = make_plan(
        policy=policy(), limit_bytes=4 * GIB, base_bytes=GIB, checkpoint_bytes=1, predicted_base_bytes=2 * GIB
    )
    assert (plan.base_bytes, plan.tolerance_bytes, plan.base_error_bytes) == (GIB, 0, GIB)


def test_without_a_known_base_nobody_can_say_whether_it_fits() -> None:
    plan = make_plan(policy=policy(), limit_bytes=2 * GIB, base_bytes=None, checkpoint_bytes=CHECKPOINT)
    assert fit_of(plan, 4) is None


@given(limit=SIZES, base=SIZES, checkpoint=st.integers(1, GIB), slots=st.integers(1, 64))
def test_the_smallest_limit_that_fits_fits_and_a_byte_less_does_not(
    limit: int, base: int, checkpoint: int, slots: int
) -> None:
    def fits(limit_bytes: int) -> bool:
        plan = make_plan(
            policy=policy(slots=slots), limit_bytes=limit_bytes, base_bytes=base, checkpoint_bytes=checkpoint
        )
        fit = fit_of(plan, slots)
        assert fit is not None
        return fit.fits

    plan = make_plan(
        policy=policy(slots=slots), limit_bytes=limit, base_bytes=base, checkpoint_bytes=checkpoint
    )
    fit = fit_of(plan, slots)
    assert fit is not None
    assert fits(fit.least_limit_bytes)
    assert not fits(fit.least_limit_bytes - 1)
    assert fit.fits == (limit >= fit.least_limit_bytes)


@given(limit=SIZES, base=SIZES, checkpoint=st.integers(1, GIB), slots=st.integers(1, 64))
def test_it_fits_exactly_where_the_budget_holds_a_buffer_a_slot(
    limit: int, base: int, checkpoint: int, slots: int
) -> None:
    plan = make_plan(
        policy=policy(slots=slots), limit_bytes=limit, base_bytes=base, checkpoint_bytes=checkpoint
    )
    fit = fit_of(plan, slots)
    assert fit is not None
    assert plan.state_budget_bytes is not None
    assert fit.fits == (plan.state_budget_bytes >= slots * mapped_bytes(checkpoint))
    assert fit.most_slots is not None
    assert fit.fits == (fit.most_slots >= slots)
    need = base + slots * mapped_bytes(checkpoint) + headroom_bytes(limit)
    assert fit.shortfall_bytes == max(0, need - limit)
