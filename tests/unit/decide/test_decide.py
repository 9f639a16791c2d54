"""Which limits are decided, from which facts."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from llamapool.domain.conditions import PoolMode
from llamapool.domain.decide import decide
from llamapool.domain.facts import Facts, Pod, ScrapeFailure, ServerSample
from llamapool.domain.memory import headroom_bytes
from tests.unit.builders import BUFFER, CHECKPOINT, GIB, MIB, NOW, facts, limits, pod, policy, record

LATER = "2026-12-01T12:00:05Z"
SIZES = st.none() | st.integers(1, 16 * GIB)
SAMPLES = (
    st.none()
    | st.just(ScrapeFailure(reason="Timeout", message="none"))
    | st.builds(ServerSample, checkpoint_bytes=st.none() | st.integers(0, GIB), base_bytes=SIZES)
)
PODS = st.builds(
    pod,
    name=st.sampled_from("abc"),
    limit=SIZES,
    ready=st.booleans(),
    running=st.booleans(),
    reported=st.booleans(),
    sample=SAMPLES,
)
POLICIES = st.builds(policy, st.just(PoolMode.AUTO), slots=st.integers(1, 8)) | st.builds(
    policy, st.just(PoolMode.FIXED), cap=st.integers(0, 8 * GIB)
)
FACTS = st.builds(
    lambda pods, asked, written: facts(
        *pods, asked=asked, written=written, record=record() if written else None
    ),
    st.lists(PODS, max_size=3),
    POLICIES,
    st.none() | st.builds(limits, SIZES, generation=st.integers(1, 9)),
)


def after(seen: Facts, *pods: Pod, now: str = NOW) -> Facts:
    """The facts once what was decided on `seen` is written, with other pods."""
    decision = decide(seen, now=now)
    return replace(seen, written=decision.limits, record=decision.record, pods=pods)


def test_before_any_pod_the_server_is_left_its_own_rule() -> None:
    decision = decide(facts(), now=NOW)
    assert (decision.limits.generation, decision.limits.pool_cap_bytes) == (1, None)
    assert decision.changed
    assert decision.record.decisions == ()


def test_a_fixed_cap_is_written_before_any_pod() -> None:
    decision = decide(facts(asked=policy(PoolMode.FIXED, cap=96 * MIB)), now=NOW)
    assert (decision.limits.generation, decision.limits.pool_cap_bytes) == (1, 96 * MIB)
    assert len(decision.record.decisions) == 1


def test_a_reported_limit_moves_the_cap_and_the_decision_tells_why() -> None:
    decision = decide(facts(pod(), written=limits(None), record=record()), now=NOW)
    entry = decision.record.decisions[0]
    assert (decision.limits.generation, decision.limits.pool_cap_bytes) == (2, 128 * MIB)
    assert (entry.id, entry.reason, entry.time) == (decision.limits.decision, "PoolCapChanged", NOW)
    assert (entry.before, entry.after) == ({"poolCapBytes": None}, {"poolCapBytes": 128 * MIB})
    assert entry.evidence["limitBytes"] == 2 * GIB


def test_the_first_checkpoint_that_a_server_reports_raises_the_cap_to_a_buffer_a_slot() -> None:
    sample = ServerSample(checkpoint_bytes=CHECKPOINT)
    decision = decide(facts(pod(sample=sample), written=limits(128 * MIB), record=record()), now=NOW)
    assert decision.limits.pool_cap_bytes == 4 * BUFFER


def test_a_measured_base_bounds_the_cap() -> None:
    sample = ServerSample(checkpoint_bytes=CHECKPOINT, base_bytes=GIB + 400 * MIB)
    decision = decide(facts(pod(sample=sample)), now=NOW)
    assert decision.limits.pool_cap_bytes == 2 * BUFFER


def test_a_checkpoint_of_0_bytes_was_not_seen_yet() -> None:
    decision = decide(facts(pod(sample=ServerSample(checkpoint_bytes=0))), now=NOW)
    assert decision.plan.checkpoint_bytes is None


def test_the_smallest_limit_of_the_ready_pods_counts() -> None:
    seen = facts(
        pod(name="a", limit=4 * GIB), pod(name="b", limit=2 * GIB), pod(name="c", limit=GIB, ready=False)
    )
    assert decide(seen, now=NOW).plan.limit_bytes == 2 * GIB


def test_while_no_pod_is_ready_the_running_ones_count() -> None:
    assert decide(facts(pod(ready=False, limit=GIB)), now=NOW).plan.limit_bytes == GIB


def test_a_pod_without_a_limit_gets_no_cap_from_the_spec_nor_from_the_host() -> None:
    decision = decide(
        facts(pod(limit=None), written=limits(128 * MIB), record=record(limit_bytes=2 * GIB)), now=NOW
    )
    assert decision.limits.pool_cap_bytes is None
    assert decision.limit_reported


def test_a_resize_moves_the_cap_both_ways_with_a_new_generation_each() -> None:
    sample = ServerSample(checkpoint_bytes=CHECKPOINT)
    small = facts(pod(limit=GIB, sample=sample), asked=policy(slots=8))
    grown = after(small, pod(limit=3 * GIB, sample=sample))
    shrunk = after(grown, pod(limit=GIB, sample=sample))
    caps = [decide(seen, now=NOW).limits for seen in (small, grown, shrunk)]
    assert [cap.pool_cap_bytes for cap in caps] == [5 * BUFFER, 8 * BUFFER, 5 * BUFFER]
    assert [cap.generation for cap in caps] == [1, 2, 3]


def test_a_restarting_server_does_not_take_the_cap_back() -> None:
    running = facts(pod(sample=ServerSample(checkpoint_bytes=CHECKPOINT)))
    for restarting in (
        pod(running=False),
        pod(ready=False),
        pod(sample=ScrapeFailure(reason="Timeout", message="")),
    ):
        assert not decide(after(running, restarting), now=LATER).changed


def test_a_base_that_moves_up_and_down_moves_the_cap_down_once() -> None:
    def seen(base: int) -> Pod:
        return pod(sample=ServerSample(checkpoint_bytes=CHECKPOINT, base_bytes=base))

    high = facts(seen(GIB + 350 * MIB))
    low = after(high, seen(GIB + 300 * MIB))
    assert decide(high, now=NOW).limits.pool_cap_bytes == 2 * BUFFER
    assert not decide(low, now=LATER).changed


def test_figures_learned_of_another_model_do_not_count() -> None:
    seen = facts(
        pod(), record=record(checkpoint_bytes=CHECKPOINT), written=limits(600 * MIB), shape="another"
    )
    assert decide(seen, now=NOW).limits.pool_cap_bytes == 128 * MIB


def test_a_lost_record_is_begun_again_without_a_decision() -> None:
    decision = decide(facts(pod(), written=limits(128 * MIB, generation=5), record=None), now=NOW)
    assert decision.changed
    assert decision.limits.generation == 5
    assert decision.record.decisions == ()


def test_two_decisions_have_two_ids_though_the_generation_starts_again() -> None:
    first, second = (decide(facts(pod()), now=now).limits.decision for now in (NOW, LATER))
    assert first != second


@given(FACTS)
def test_the_same_facts_give_the_same_decision(seen: Facts) -> None:
    assert decide(seen, now=NOW) == decide(seen, now=NOW)


@given(FACTS)
def test_once_written_a_decision_changes_nothing_more(seen: Facts) -> None:
    written = after(seen, *seen.pods)
    again = decide(written, now=LATER)
    assert not again.changed
    assert (again.limits, again.record) == (written.written, written.record)


@given(FACTS)
def test_a_decision_counts_up_by_one_where_the_cap_moves_and_only_there(seen: Facts) -> None:
    decision = decide(seen, now=NOW)
    if seen.written is not None:
        moved = decision.limits.pool_cap_bytes != seen.written.pool_cap_bytes
        assert decision.limits.generation == seen.written.generation + moved
        assert len(decision.record.decisions) == moved


@given(FACTS)
def test_an_automatic_cap_stays_under_every_limit_that_counts(seen: Facts) -> None:
    decision = decide(seen, now=NOW)
    cap = decision.limits.pool_cap_bytes
    if seen.policy.mode is PoolMode.AUTO and cap is not None:
        for counted in seen.sized_pods:
            if counted.limit_bytes is not None:
                assert cap <= max(0, counted.limit_bytes - headroom_bytes(counted.limit_bytes))
