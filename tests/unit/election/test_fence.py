"""A replica that does not lead writes nothing, even in the middle of a look."""

import pytest

from llamapool.adapters.fence import FencedCluster
from llamapool.errors import NotLeadingError
from tests.unit.reconcile.world import FakeCluster, World

OBJECT = {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "status": {}}


def test_a_replica_that_stands_by_may_read() -> None:
    cluster = FakeCluster(objects={("ConfigMap", "n", "a"): OBJECT})
    fenced = FencedCluster(cluster, lambda: False)
    assert fenced.get("ConfigMap", "n", "a") == OBJECT
    assert fenced.list("ConfigMap", "n") == [OBJECT]


def test_a_replica_that_stands_by_may_not_write() -> None:
    cluster = FakeCluster()
    fenced = FencedCluster(cluster, lambda: False)
    for write in (
        lambda: fenced.create(OBJECT),
        lambda: fenced.apply(OBJECT),
        lambda: fenced.apply_status(OBJECT),
        lambda: fenced.annotate("Pod", "n", "p", {}),
    ):
        with pytest.raises(NotLeadingError):
            write()
    assert cluster.writes == []


def test_a_leader_writes() -> None:
    cluster = FakeCluster()
    FencedCluster(cluster, lambda: True).create(OBJECT)
    assert cluster.writes == ["create ConfigMap"]


def test_a_replica_that_loses_its_lease_in_the_middle_of_a_look_leaves_the_rest_to_the_next(
    world: World,
) -> None:
    fenced = FencedCluster(world.cluster, lambda: len(world.cluster.writes) < 2)
    world.reconciler.cluster = fenced
    with pytest.raises(NotLeadingError):
        world.look()
    assert world.cluster.writes == ["create ConfigMap", "apply Service"]
    world.reconciler = world.operator()
    world.look()
    assert world.cluster.writes[2:] == [
        "apply Deployment",
        "apply PodDisruptionBudget",
        "status HybridModel",
    ]
