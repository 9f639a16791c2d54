"""A watch that has silently died is noticed, and one that is merely late is not taken for dead."""

from llamapool.watch import WatchCheck

A = ("models", "a")


def stale_after(*checks: tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]) -> bool:
    check = WatchCheck()
    for indexed, served in checks:
        check.compare(indexed, served)
    return check.stale


def test_an_index_that_follows_is_not_stale() -> None:
    assert not stale_after(({A: "1"}, {A: "1"}), ({A: "2"}, {A: "2"}))


def test_an_index_that_is_behind_in_one_check_only_is_late_and_not_dead() -> None:
    assert not stale_after(({A: "1"}, {A: "2"}))
    assert not stale_after(({A: "1"}, {A: "2"}), ({A: "2"}, {A: "3"}))


def test_an_index_that_stays_where_it_was_while_the_api_server_moved_is_stale() -> None:
    assert stale_after(({A: "1"}, {A: "2"}), ({A: "1"}, {A: "2"}))


def test_a_new_model_that_never_arrives_is_noticed() -> None:
    assert stale_after(({}, {A: "1"}), ({}, {A: "1"}))


def test_a_deletion_that_never_arrives_is_noticed() -> None:
    assert stale_after(({A: "1"}, {}), ({A: "1"}, {}))


def test_a_watch_that_recovers_is_no_longer_stale() -> None:
    assert not stale_after(({A: "1"}, {A: "2"}), ({A: "1"}, {A: "2"}), ({A: "2"}, {A: "2"}))
