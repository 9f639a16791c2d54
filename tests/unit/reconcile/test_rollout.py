"""An operator of another version replaces no pods by itself; who asks for it gets it."""

import dataclasses
from typing import Any

import pytest

from llamapool.api import parse_model
from llamapool.manifests.common import Images
from llamapool.manifests.deployment import deployment
from llamapool.manifests.rollout import roll
from tests.unit.builders import model_body
from tests.unit.reconcile.world import World

OLD, NEW = "server:1", "server:2"


def images(server: str) -> Images:
    return Images(server=server, operator="operator:1")


def live_deployment(world: World) -> dict[str, Any]:
    return world.cluster.objects["Deployment", "models", "tiny"]


def image(world: World) -> str:
    (container,) = live_deployment(world)["spec"]["template"]["spec"]["containers"]
    found: str = container["image"]
    return found


def resources_of_the_server(world: World) -> dict[str, Any]:
    (container,) = live_deployment(world)["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = container["resources"]
    return found


def upgrade(world: World, server_image: str = NEW) -> None:
    world.reconciler = dataclasses.replace(world.reconciler, images=images(server_image))
    world.settle()


def forget_notes(world: World) -> None:
    """Make the Deployment one of release 0.1.0, which noted less."""
    annotations = live_deployment(world)["metadata"]["annotations"]
    del annotations["llamapool.dev/asked"], annotations["llamapool.dev/template"]
    made = deployment(parse_model(world.model), world.reconciler.images)
    annotations["llamapool.dev/desired-digest"] = made["metadata"]["annotations"][
        "llamapool.dev/desired-digest"
    ]


def test_an_upgrade_leaves_the_pods_and_says_that_an_update_is_pending(world: World) -> None:
    world.start_pod_and_settle()
    assert world.status["updatePending"] is False
    upgrade(world)
    assert image(world) == OLD
    assert world.status["updatePending"] is True


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param({"requests": {"memory": "8Gi"}}, id="request only"),
        pytest.param({"limits": {"memory": "8Gi"}}, id="limit only"),
        pytest.param({"requests": {"memory": "4Gi"}, "limits": {"memory": "8Gi"}}, id="request below limit"),
    ],
)
def test_resources_stay_as_they_were_written_over_an_upgrade_and_over_the_update_after_it(
    world: World, resources: dict[str, Any]
) -> None:
    world.set_model(resources=resources)
    world.start_pod_and_settle()
    forget_notes(world)
    upgrade(world)
    assert (image(world), resources_of_the_server(world)) == (OLD, resources)
    world.model["metadata"]["annotations"] = {"llamapool.dev/update": "now"}
    world.settle()
    assert (image(world), resources_of_the_server(world)) == (NEW, resources)


def test_an_upgrade_from_a_release_that_noted_less_leaves_the_pods_too(world: World) -> None:
    world.start_pod_and_settle()
    forget_notes(world)
    upgrade(world)
    assert image(world) == OLD
    assert world.status["updatePending"] is True
    upgrade(world, OLD)
    upgrade(world)
    assert image(world) == OLD


def test_a_release_that_noted_less_and_built_the_same_pods_leaves_no_update_pending(world: World) -> None:
    world.start_pod_and_settle()
    forget_notes(world)
    world.settle()
    assert world.status["updatePending"] is False


def test_a_spec_changed_while_no_operator_ran_is_acted_on_by_the_new_one(world: World) -> None:
    world.start_pod_and_settle()
    forget_notes(world)
    world.set_model(server={"slots": 2})
    upgrade(world)
    assert image(world) == NEW


@pytest.mark.parametrize(
    "change",
    [
        {"server": {"slots": 2}},
        {"resources": {"limits": {"memory": "3Gi"}}},
        {"podTemplate": {"spec": {"nodeSelector": {"gpu": "true"}}}},
        {"pool": {"idleTrimSeconds": 5}},
    ],
)
def test_a_change_of_what_makes_the_pods_brings_the_new_ones(world: World, change: dict[str, Any]) -> None:
    world.start_pod_and_settle()
    upgrade(world)
    world.set_model(**change)
    world.settle()
    assert image(world) == NEW
    assert world.status["updatePending"] is False


@pytest.mark.parametrize(
    "change",
    [{"replicas": 3}, {"pool": {"mode": "Off"}}, {"tuning": {"memory": "Off", "cooldownSeconds": 5}}],
)
def test_a_change_of_anything_else_leaves_the_pods(world: World, change: dict[str, Any]) -> None:
    world.start_pod_and_settle()
    upgrade(world)
    world.set_model(**change)
    world.settle()
    assert image(world) == OLD
    assert live_deployment(world)["spec"]["replicas"] == change.get("replicas", 1)


def test_an_update_that_is_asked_for_by_annotation_is_carried_out_once(world: World) -> None:
    world.start_pod_and_settle()
    upgrade(world)
    world.model["metadata"]["annotations"] = {"llamapool.dev/update": "0.2.0"}
    world.settle()
    assert image(world) == NEW
    upgrade(world, "server:3")
    assert image(world) == NEW


def test_a_default_that_a_newer_crd_adds_is_no_change_of_the_spec(world: World) -> None:
    world.start_pod_and_settle()
    world.model["spec"]["server"] = {"slots": 8}  # read with its new default, in the same generation
    upgrade(world)
    assert image(world) == OLD
    world.set_model(server={"slots": 8}, pool={"mode": "Off"})
    world.settle()
    assert image(world) == OLD


def edit_template(world: World) -> None:
    live_deployment(world)["spec"]["template"]["spec"]["containers"][0]["image"] = "other:1"


def test_a_template_that_someone_else_has_changed_is_put_right_again(world: World) -> None:
    world.start_pod_and_settle()
    edit_template(world)
    world.settle()
    assert image(world) == OLD


def test_a_template_that_someone_else_has_changed_is_put_right_while_an_update_is_pending(
    world: World,
) -> None:
    world.start_pod_and_settle()
    upgrade(world)
    edit_template(world)
    world.settle()
    assert image(world) == OLD
    assert world.status["updatePending"] is True


def test_what_others_add_to_a_template_is_left_to_them_while_an_update_is_pending(world: World) -> None:
    world.start_pod_and_settle()
    upgrade(world)
    # As `kubectl rollout restart` does.
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-12-01T12:00:00Z"}
    live_deployment(world)["spec"]["template"]["metadata"]["annotations"] = restarted
    writes = len(world.cluster.writes)
    world.settle()
    assert len(world.cluster.writes) == writes
    assert live_deployment(world)["spec"]["template"]["metadata"]["annotations"] == restarted


def test_a_note_of_the_template_that_someone_has_spoilt_replaces_no_pods(world: World) -> None:
    world.start_pod_and_settle()
    live_deployment(world)["metadata"]["annotations"]["llamapool.dev/template"] = "{"
    upgrade(world)
    assert image(world) == OLD
    assert world.status["updatePending"] is True


# Whatever else of the spec reaches the pod template would be held back without a word.
@pytest.mark.parametrize(
    "without_effect",
    [
        {"replicas": 3},
        {"pool": {"mode": "Off"}},
        {"pool": {"mode": "Fixed", "cap": "1Gi"}},
        {"pool": {"limitPercent": 50}},
        {
            "tuning": {
                "memory": "Off",
                "ttft": "Auto",
                "cooldownSeconds": 1,
                "targetP90Seconds": 1,
                "regressionPercent": 1,
                "trial": {"legs": 9, "legSeconds": 10, "minRequests": 1},
            }
        },
    ],
)
def test_what_does_not_ask_for_new_pods_does_not_reach_the_pod_template(
    without_effect: dict[str, Any],
) -> None:
    built = [
        deployment(parse_model(body), images(OLD))["spec"]["template"]
        for body in (model_body(), model_body(**without_effect))
    ]
    assert built[0] == built[1]


def test_the_same_facts_give_the_same_deployment() -> None:
    body = model_body()
    wanted = deployment(parse_model(body), images(OLD))
    made, pending = roll(wanted, None, body)
    assert roll(wanted, made, body) == (made, pending)
