"""Which arms are compared, on which rounds, and when they suffice."""

import random

import pytest

from tests.bench import comparisons, record
from tests.bench.client import tokens_out
from tests.bench.loads import LOADS, Load
from tests.bench.measurements import TTFT_P50, joined
from tests.bench.paired import Plan
from tests.bench.rounds import groups
from tests.unit.bench.rounds import a_round, batch

PLAN = Plan(least=3, step=1, most=3, seed=1)


def test_each_arm_is_compared_with_upstream_and_ours_with_each_other_arm() -> None:
    assert comparisons.pairs(["upstream", "published", "ours"]) == [
        ("published", "upstream"),
        ("ours", "upstream"),
        ("ours", "published"),
    ]


def test_only_rounds_with_both_arms_count() -> None:
    rounds = [
        a_round({"upstream": batch([2]), "ours": batch([1])}),
        a_round({"upstream": batch([2]), "cap0": batch([1])}),
    ]
    found = comparisons.compare(rounds, TTFT_P50, "ours", "upstream", confidence=0.95, seed=1)
    assert found is not None
    assert (found.value, found.rounds) == (0.5, 1)


def test_a_metric_that_no_batch_has_is_not_compared() -> None:
    rounds = [a_round({"upstream": batch([2]), "ours": batch([1])})]
    entries = comparisons.record(rounds, ["upstream", "ours"], PLAN, load="steady-8", slots=8, neutral=False)
    metrics = {entry["metric"] for entry in entries}
    assert metrics == {"ttft_p50_seconds", "ttft_p90_seconds", "requests_per_second"}


def test_rounds_do_not_suffice_while_one_pair_is_open() -> None:
    clear = [
        a_round({"upstream": batch([2]), "ours": batch([1]), "cap0": batch([2 + difference])})
        for difference in (-1, 0, 1, -1, 0, 1)
    ]
    assert not comparisons.decided(clear, ["upstream", "ours", "cap0"], PLAN, neutral=False)
    assert comparisons.decided(clear, ["upstream", "ours"], PLAN, neutral=False)


def test_a_control_is_decided_by_equality_and_a_load_is_not() -> None:
    same = [a_round({"upstream": batch([2]), "ours": batch([2])})] * 6
    assert comparisons.decided(same, ["upstream", "ours"], PLAN, neutral=True)
    assert not comparisons.decided(same, ["upstream", "ours"], PLAN, neutral=False)


def test_the_allowed_ratio_takes_from_the_wall_time_what_exceeds_one_memcpy() -> None:
    busy = batch([0.5], checkpoint_seconds=[0.11, 0.005], save_seconds=[0.21])
    # 100 ms and 200 ms beyond the 10 ms of a memcpy; the checkpoint that beat it gives nothing back.
    assert a_round({"upstream": busy}).allowed_ratio("upstream") == pytest.approx(0.7)


def test_the_shares_say_what_was_reached_of_what_was_possible() -> None:
    upstream = batch([1.0], checkpoint_seconds=[0.11, 0.11])
    ours = batch([0.85], checkpoint_seconds=[0.015, 0.015])
    shares = comparisons.shares([a_round({"upstream": upstream, "ours": ours})], PLAN)
    assert shares["checkpoint_time_avoided"]["value"] == pytest.approx(0.95)
    assert shares["allowed_ttft_ratio"] == pytest.approx(0.8)
    assert shares["gain_reached"]["value"] == pytest.approx(0.75)


def test_two_passes_of_a_batch_are_one_batch_of_all_their_requests() -> None:
    first = batch([1, 2], checkpoint_seconds=[0.1], save_seconds=[0.2], page_faults=30, turns=2)
    last = batch([3, 4], checkpoint_seconds=[0.3], page_faults=10, wall_seconds=2, turns=2)
    both = joined([first, last])
    assert both.ttft_seconds == (1, 2, 3, 4)
    assert (both.wall_seconds, both.page_faults, both.turns) == (3, 40, 2)
    assert (len(both.checkpoints), len(both.saves)) == (2, 1)


def test_without_checkpoints_there_are_no_shares() -> None:
    assert comparisons.shares([a_round({"upstream": batch([1]), "ours": batch([1])})], PLAN) == {}


def test_groups_hold_every_arm_and_each_has_upstream_and_ours() -> None:
    arms = ["upstream", "a", "b", "c", "ours"]
    assert groups(arms, 4) == [["upstream", "ours", "a", "c"], ["upstream", "ours", "b"]]
    assert groups(arms, 5) == [["upstream", "ours", "a", "b", "c"]]


def test_a_group_without_room_beside_upstream_and_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="size is 2, want at least 3"):
        groups(["upstream", "ours", "a"], 2)


def test_an_arms_figures_are_over_all_of_its_batches() -> None:
    figures = record.of_arm(
        [
            batch([1, 2], checkpoint_seconds=[0.1], page_faults=30),
            batch([3, 4], checkpoint_seconds=[0.3], page_faults=10, wall_seconds=2),
        ]
    )
    assert figures["requests"] == 4
    assert figures["ttft_seconds"]["p50"] == 2.5
    assert figures["checkpoint_seconds"]["p50"] == pytest.approx(0.2)
    assert figures["page_faults_per_checkpoint"] == 20
    assert figures["requests_per_second"] == 1.5
    assert figures["save_seconds"] == {"p50": None, "p99": None}


def test_turns_are_told_apart_across_conversations() -> None:
    figures = record.of_arm([batch([1, 10, 3, 30], turns=2)])
    assert figures["ttft_p50_seconds_by_turn"] == [2, 20]


def test_prompts_of_a_batch_have_the_shape_of_their_load() -> None:
    load = LOADS["conversations-2"]
    (prompts,) = load.slices_of_prompts(random.Random(1))  # noqa: S311 - no secrets
    assert [len(each) for each in prompts] == [load.turns] * load.conversations
    assert {len(message) for each in prompts for message in each} == {load.message_bytes}


def test_servers_whose_memory_no_longer_grows_have_held_other_conversations_of_the_same_shape() -> None:
    growing, settled = LOADS["conversations-2"], LOADS["conversations-2-settled"]
    seed = random.Random(1)  # noqa: S311 - no secrets
    before, (measured,) = settled.warm_up_prompts(seed), settled.slices_of_prompts(seed)
    assert growing.warm_up_prompts(seed) == []
    assert [[len(message) for message in each] for each in before] == [
        [len(message) for message in each] for each in measured
    ]
    assert before != measured


@pytest.mark.parametrize("load", LOADS.values(), ids=lambda load: load.name)
def test_slices_have_all_prompts_of_a_batch_in_equal_parts(load: Load) -> None:
    slices = load.slices_of_prompts(random.Random(1))  # noqa: S311 - no secrets
    assert [len(each) for each in slices] == [load.conversations // load.slices] * load.slices


def test_prompts_ask_for_different_numbers_of_tokens_the_same_of_every_server() -> None:
    (prompts,) = LOADS["cold-8"].slices_of_prompts(random.Random(1))  # noqa: S311 - no secrets
    asked = [tokens_out(prompt) for (prompt,) in prompts]
    assert asked == [tokens_out(prompt) for (prompt,) in prompts]
    assert len(set(asked)) > 1
