"""What is read of the init container that fetches a model's files, as a kubelet reports it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llamapool.domain.facts import Fetch, FetchPhase
from llamapool.gather import read_fetch

FACTS = {"v": 1, "spec": "abc", "sha256": "0" * 64, "architecture": "mamba2"}


def read(**status: Any) -> Fetch | None:
    return read_fetch({"status": {"initContainerStatuses": [{"name": "fetch", **status}]}})


def ended(code: int, message: str, **others: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, **others}}


def test_a_pod_without_it_or_not_started_says_nothing() -> None:
    assert read_fetch({"status": {}}) is None
    assert read(state={"waiting": {"reason": "PodInitializing"}}) is None


def test_while_it_runs_the_files_are_fetched() -> None:
    assert read(state={"running": {}}) == Fetch(phase=FetchPhase.RUNNING)


def test_its_message_has_the_facts() -> None:
    done = read(state=ended(0, json.dumps(FACTS)))
    assert done is not None
    assert (done.phase, done.spec, done.facts) == (
        FetchPhase.DONE,
        "abc",
        {name: value for name, value in FACTS.items() if name != "v"},
    )


@pytest.mark.parametrize("message", ["", "not JSON", "[1]", '"text"'])
def test_a_message_that_is_none_of_ours_has_no_facts(message: str) -> None:
    assert read(state=ended(0, message)) == Fetch(phase=FetchPhase.DONE)


def test_why_it_failed_is_said_while_it_waits_to_be_tried_again() -> None:
    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    failed = read(state=back_off, lastState=ended(1, json.dumps({"v": 1, "error": "no such file"})))
    assert failed == Fetch(phase=FetchPhase.FAILED, error="no such file")


def test_why_it_failed_is_said_while_it_is_tried_again() -> None:
    failed = read(state={"running": {}}, lastState=ended(1, json.dumps({"v": 1, "error": "no such file"})))
    assert failed == Fetch(phase=FetchPhase.FAILED, error="no such file; it is tried again now")


def test_one_that_was_killed_without_a_word_says_how() -> None:
    assert read(state=ended(137, "", reason="OOMKilled")) == Fetch(phase=FetchPhase.FAILED, error="OOMKilled")


def test_an_image_that_cannot_be_pulled_is_a_failure() -> None:
    failed = read(state={"waiting": {"reason": "ImagePullBackOff", "message": "not found"}})
    assert failed == Fetch(phase=FetchPhase.FAILED, error="ImagePullBackOff: not found")
