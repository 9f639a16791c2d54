"""What every pod of a model holds to, whatever its spec."""

from typing import Any

import pytest

from llamapool.api import parse_model
from llamapool.manifests.deployment import deployment
from tests.unit.builders import model_body
from tests.unit.manifests.test_golden import CASES, IMAGES


def made(**spec: Any) -> dict[str, Any]:
    return deployment(parse_model(model_body(**spec)), IMAGES)


def pod_spec(**spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = made(**spec)["spec"]["template"]["spec"]
    return found


def container(**spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod_spec(**spec)["containers"][0]
    return found


def argument(name: str, **spec: Any) -> str:
    args = container(**spec)["args"]
    value: str = args[args.index(name) + 1]
    return value


every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_a_rollout_never_surges(name: str) -> None:
    assert made(**CASES[name])["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


@every_case
def test_loading_may_take_half_an_hour_and_the_rollout_waits_for_it(name: str) -> None:
    probe = container(**CASES[name])["startupProbe"]
    startup_seconds = probe["periodSeconds"] * probe["failureThreshold"]
    assert startup_seconds >= 1800
    assert made(**CASES[name])["spec"]["progressDeadlineSeconds"] > startup_seconds


@every_case
def test_a_silent_server_is_never_killed_for_it(name: str) -> None:
    assert "livenessProbe" not in container(**CASES[name])


@every_case
def test_a_pod_meets_the_restricted_standard(name: str) -> None:
    pod, server = pod_spec(**CASES[name]), container(**CASES[name])
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False


@every_case
def test_the_limits_are_mounted_as_a_directory_that_is_refreshed(name: str) -> None:
    mount = next(mount for mount in container(**CASES[name])["volumeMounts"] if mount["name"] == "limits")
    volume = next(volume for volume in pod_spec(**CASES[name])["volumes"] if volume["name"] == "limits")
    assert mount == {"name": "limits", "mountPath": "/etc/llamapool", "readOnly": True}
    assert volume["configMap"]["items"] == [{"key": "limits.json", "path": "limits.json"}]


@every_case
def test_no_limit_of_the_pool_is_in_the_pod_template(name: str) -> None:
    assert "CAP" not in str(container(**CASES[name])["env"])
    assert "annotations" not in made()["spec"]["template"]["metadata"]


def test_the_image_of_the_model_overrides_the_default() -> None:
    assert container()["image"] == IMAGES.server
    assert container(server={"image": "mine:1"})["image"] == "mine:1"


def test_the_prompt_cache_has_the_size_that_the_user_gave() -> None:
    assert argument("--cache-ram", server={"cacheRAM": "1536Mi"}) == "1536"
    assert argument("--cache-ram", server={"cacheRAM": 0}) == "0"


def test_the_state_budget_alone_bounds_an_omitted_prompt_cache() -> None:
    assert argument("--cache-ram", resources={"limits": {"memory": "4Gi"}}) == "4096"


def test_without_a_limit_an_omitted_prompt_cache_is_left_to_upstreams_default() -> None:
    assert "--cache-ram" not in container(resources={})["args"]


@pytest.mark.parametrize("flag", ["--embedding", "--embeddings", "--rerank", "--reranking"])
def test_a_model_that_only_embeds_or_reranks_caches_no_prompt(flag: str) -> None:
    assert argument("--cache-ram", server={"extraArgs": [flag]}) == "0"


def test_the_deployment_has_the_replicas_of_the_model() -> None:
    assert made()["spec"]["replicas"] == 1
    assert made(replicas=0)["spec"]["replicas"] == 0


def test_a_model_on_a_claim_is_mounted_read_only() -> None:
    volume = next(volume for volume in pod_spec()["volumes"] if volume["name"] == "model")
    assert volume["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    assert argument("--model") == "/models/tiny.gguf"


def test_tolerations_reach_the_pods() -> None:
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    assert pod_spec(podTemplate={"spec": {"tolerations": tolerations}})["tolerations"] == tolerations


def test_extended_resources_are_passed_on() -> None:
    limits = {"memory": "2Gi", "nvidia.com/gpu": 1}
    assert container(resources={"limits": limits})["resources"] == {"limits": limits}


def test_an_object_of_a_model_goes_away_with_it_without_blocking_its_deletion() -> None:
    (owner,) = made()["metadata"]["ownerReferences"]
    assert owner["uid"] == "uid-of-tiny"
    assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, False)


def test_a_field_that_is_no_longer_asked_for_changes_the_digest() -> None:
    overlaid = made(podTemplate={"spec": {"nodeSelector": {"gpu": "true"}}})
    digests = [each["metadata"]["annotations"]["llamapool.dev/desired-digest"] for each in (made(), overlaid)]
    assert digests[0] != digests[1]
