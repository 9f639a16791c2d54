"""A fresh world for every test."""

from collections.abc import Iterator

import pytest

from tests.unit.reconcile.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.executor.shutdown()
