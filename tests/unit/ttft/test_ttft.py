"""Whether the time to first token is as it should be, by target or baseline, and what is not known."""

import json
from dataclasses import replace

import pytest

from llamapool.domain.conditions import ConditionStatus, Reason
from llamapool.domain.ttft import Baseline, Traffic, assess, learn, same_mix
from llamapool.domain.tuning import Tuning
from tests.unit.ttft.observed import seconds, tokens

SHORT, LONG = tokens(*[40] * 100), tokens(*[4000] * 100)
USUAL = Baseline(p90_seconds=1.0, prompts=SHORT, at=0.0)
TARGET = Tuning(target_p90_seconds=1.5)


def traffic(ttft: float, *, requests: int = 100, checkpoint: float = 0.01, long: bool = False) -> Traffic:
    return Traffic(
        time_to_first_token=seconds(*[ttft] * requests),
        prompt_tokens=tokens(*[4000 if long else 40] * requests),
        checkpoint_time=seconds(*[checkpoint] * requests),
    )


@pytest.mark.parametrize(
    ("seen", "tuning", "baselines", "expected"),
    [
        pytest.param(traffic(1.0), TARGET, (), ("True", "WithinTarget"), id="under the target"),
        pytest.param(traffic(2.0), TARGET, (), ("False", "AboveTarget"), id="over the target"),
        pytest.param(traffic(1.0), Tuning(), (USUAL,), ("True", "WithinBaseline"), id="as usual"),
        pytest.param(traffic(1.6), Tuning(), (USUAL,), ("False", "AboveBaseline"), id="worse than usual"),
        pytest.param(traffic(1.0), Tuning(), (), ("Unknown", "BaselineNotMeasured"), id="no baseline"),
        pytest.param(
            traffic(9.0, long=True), Tuning(), (USUAL,), ("Unknown", "BaselineNotMeasured"), id="another mix"
        ),
        pytest.param(traffic(9.0, requests=5), Tuning(), (USUAL,), ("Unknown", "NoTraffic"), id="too few"),
        pytest.param(Traffic(), Tuning(), (USUAL,), ("Unknown", "NoTraffic"), id="idle"),
        pytest.param(None, Tuning(), (USUAL,), ("Unknown", "MetricsUnavailable"), id="no metrics"),
    ],
)
def test_it_is_held_against_the_target_or_else_the_baseline_of_the_same_mix(
    seen: Traffic | None, tuning: Tuning, baselines: tuple[Baseline, ...], expected: tuple[str, str]
) -> None:
    found = assess(seen, baselines, tuning)
    assert (found.status.value, found.reason.value) == expected


def test_a_top_bucket_that_holds_too_much_is_a_breach_and_said_to_be_a_lower_bound() -> None:
    found = assess(traffic(1e9), (), TARGET)
    assert found.status is ConditionStatus.FALSE
    assert "≥" in found.message


def test_twenty_times_slower_with_the_same_checkpoints_is_not_the_pools_doing() -> None:
    found = assess(traffic(20.0, checkpoint=0.05), (USUAL,), Tuning())
    assert found.breached
    assert not found.checkpoints_matter
    assert "checkpoints are 0% of it" in found.message


def test_checkpoints_that_take_much_of_it_matter() -> None:
    assert assess(traffic(2.0, checkpoint=0.9), (USUAL,), Tuning()).checkpoints_matter


def test_a_breach_is_over_only_well_below_the_bound() -> None:
    bound = 1.5
    assert not assess(traffic(0.97 * bound), (), TARGET).cleared
    assert assess(traffic(0.6 * bound), (), TARGET).cleared


def test_the_first_window_of_a_mix_is_its_baseline_and_later_ones_move_it_slowly() -> None:
    first = learn((), traffic(1.0), Tuning(), breached=False, now=0.0)
    later = learn(first, traffic(2.0), Tuning(), breached=False, now=300.0)
    assert later[0].p90_seconds == pytest.approx(
        first[0].p90_seconds
        + 0.1 * (assess(traffic(2.0), (), TARGET).p90_seconds or 0)
        - 0.1 * first[0].p90_seconds
    )


@pytest.mark.parametrize(
    ("seen", "breached", "now"),
    [
        pytest.param(traffic(1.0), False, 299.0, id="too soon"),
        pytest.param(traffic(9.0), True, 300.0, id="a breach is nothing to get used to"),
        pytest.param(traffic(1e9), False, 300.0, id="beyond the top bucket"),
        pytest.param(traffic(1.0, requests=9), False, 300.0, id="too few"),
        pytest.param(Traffic(), False, 300.0, id="idle"),
        pytest.param(None, False, 300.0, id="unknown"),
    ],
)
def test_a_baseline_stays_where_a_window_says_nothing(
    seen: Traffic | None,
    breached: bool,  # noqa: FBT001 - a parameter of the test
    now: float,
) -> None:
    assert learn((USUAL,), seen, Tuning(), breached=breached, now=now) == (USUAL,)


def test_each_mix_has_a_baseline_of_its_own_and_the_oldest_of_five_goes() -> None:
    baselines: tuple[Baseline, ...] = ()
    for number, length in enumerate((16, 128, 1024, 8192, 65536)):
        seen = replace(traffic(1.0 + number), prompt_tokens=tokens(*[length] * 100))
        baselines = learn(baselines, seen, Tuning(), breached=False, now=number * 300.0)
    assert [round(one.p90_seconds) for one in baselines] == [
        6,
        5,
        3,
        2,
    ]  # 5, 4, 3 and 2, as buckets have them


def test_a_baseline_is_read_back_as_it_was_written() -> None:
    read = Baseline.from_dict(json.loads(json.dumps(USUAL.to_dict())))
    assert (read.p90_seconds, read.prompts.cumulative_counts) == (1.0, SHORT.cumulative_counts)
    assert same_mix(read.prompts, SHORT)


def test_mixes_differ_when_lengths_do_and_not_by_chance() -> None:
    assert same_mix(tokens(*[40] * 50, *[400] * 50), tokens(*[40] * 45, *[400] * 55))
    assert not same_mix(SHORT, LONG)
    assert not same_mix(tokens(*[40] * 90, *[4000] * 10), tokens(*[40] * 10, *[4000] * 90))
    assert not same_mix(SHORT, tokens())


def test_every_reason_of_the_condition_is_one_that_alerts_know() -> None:
    assert assess(None, (), Tuning()).reason in Reason
