"""What the operator's service account may do, asked of the apiserver in its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.contract.chart import objects
from tests.support.kubectl import CommandError, Kubectl, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.chart import Release

RIGHTS = Path(__file__).parent / "rights.yaml"
ANNOTATION = "llamapool.dev/limits-generation"


def rules(kubectl: Kubectl, user: str) -> dict[str, set[str]]:
    """Verbs by resource that ``user`` has in the namespace, all resources by any name."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": kubectl.namespace},
    }
    answer = kubectl(
        "create", "--as", user, "--validate=false", "--filename", "-", "--output", "json",
        stdin=json.dumps(review),
    )  # fmt: skip
    found: dict[str, set[str]] = {}
    for rule in json.loads(answer)["status"]["resourceRules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault(f"{group}/{resource}".lstrip("/"), set()).update(rule["verbs"])
    return found


def model_pod(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """A pod that waits for a node that there is none of."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": {"example.org/owner": "search"}},
        "spec": {
            "nodeSelector": {"llamapool.dev/none": "true"},
            "containers": [{"name": "server", "image": "llamapool/llama-server:0.1.0"}],
        },
    }


@pytest.fixture(scope="module")
def pods(release: Release, namespace: Kubectl) -> Iterator[Kubectl]:
    """A model pod ``served`` and a pod ``foreign``, once the policy is in force."""
    namespace.apply(
        model_pod("served", {"llamapool.dev/model": "tiny"}), model_pod("foreign", {"app": "other"})
    )

    def in_force() -> bool:
        try:
            patch(
                namespace,
                release,
                "foreign",
                {"metadata": {"annotations": {ANNOTATION: "0"}}},
                "--dry-run=server",
            )
        except CommandError as refusal:
            return "denied" in str(refusal)
        return False

    until("the policy is in force", in_force, timeout_seconds=60)
    yield namespace
    namespace("delete", "pod", "served", "foreign", "--grace-period", "0", "--force")


def patch(kubectl: Kubectl, release: Release, pod: str, change: dict[str, Any], *options: str) -> None:
    kubectl("patch", "pod", pod, "--as", release.user, "--patch", json.dumps(change), *options)


def test_the_rights_of_the_operator_are_those_of_the_committed_file(
    release: Release, namespace: Kubectl
) -> None:
    everyone = rules(namespace, f"system:serviceaccount:{namespace.namespace}:default")
    own = {
        resource: sorted(verbs - everyone.get(resource, set()))
        for resource, verbs in rules(namespace, release.user).items()
    }
    assert {resource: verbs for resource, verbs in own.items() if verbs} == yaml.safe_load(RIGHTS.read_text())


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "update", "patch", "delete"])
def test_the_operator_may_do_nothing_with_secrets(release: Release, namespace: Kubectl, verb: str) -> None:
    with pytest.raises(CommandError, match=r"exit 1\nno"):
        namespace("auth", "can-i", verb, "secrets", "--as", release.user)


def test_the_operator_is_denied_a_secret(release: Release, namespace: Kubectl) -> None:
    namespace("create", "secret", "generic", "token", "--from-literal", "token=hunter2")
    with pytest.raises(CommandError, match=r"cannot get resource \"secrets\""):
        namespace("get", "secret", "token", "--as", release.user)


def test_the_operator_may_nudge_a_model_pod(release: Release, pods: Kubectl) -> None:
    patch(pods, release, "served", {"metadata": {"annotations": {ANNOTATION: "7"}}})
    annotations = pods.get("pod", "served")["metadata"]["annotations"]
    assert annotations[ANNOTATION] == "7"


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("spec", {"spec": {"containers": [{"name": "server", "image": "example.org/other:1"}]}}),
        ("labels", {"metadata": {"labels": {"llamapool.dev/model": "other"}}}),
        ("labels", {"metadata": {"labels": {"llamapool.dev/model": None}}}),
        ("finalizers", {"metadata": {"finalizers": ["example.org/hold"]}}),
        ("annotation", {"metadata": {"annotations": {"example.org/owner": "other"}}}),
        ("annotation", {"metadata": {"annotations": {"example.org/owner": None}}}),
        ("annotation", {"metadata": {"annotations": {"example.org/new": "1"}}}),
    ],
)  # fmt: skip
def test_the_operator_may_change_nothing_else_of_a_model_pod(
    release: Release, pods: Kubectl, what: str, change: dict[str, Any]
) -> None:
    with pytest.raises(CommandError, match=rf"the llamapool operator .*\b{what}\b.* of .*served"):
        patch(pods, release, "served", change)


def test_the_operator_may_give_a_model_pod_no_other_owner(release: Release, pods: Kubectl) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
    # Where OwnerReferencesPermissionEnforcement is on, that refuses it before the policy does.
    with pytest.raises(CommandError, match=r"changes no labels, owners or finalizers|cannot set an ownerRef"):
        patch(pods, release, "served", {"metadata": {"ownerReferences": [owner]}})


def test_the_operator_may_not_nudge_a_pod_that_is_not_a_model_s(release: Release, pods: Kubectl) -> None:
    with pytest.raises(CommandError, match=r"foreign has no label llamapool\.dev/model"):
        patch(pods, release, "foreign", {"metadata": {"annotations": {ANNOTATION: "7"}}})


def test_the_policy_binds_nobody_else(pods: Kubectl) -> None:
    pods("label", "pod", "foreign", "touched-by=a-person")
    assert pods.get("pod", "foreign")["metadata"]["labels"] == {"app": "other", "touched-by": "a-person"}


def test_the_operator_s_pod_is_admitted_where_pod_security_is_restricted(namespace: Kubectl) -> None:
    restricted = Kubectl(f"{namespace.namespace}-restricted")
    restricted.ensure_namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    (deployment,) = [found for found in objects() if found["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"] | {"serviceAccountName": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": spec}
    insecure = pod | {"spec": spec | {"securityContext": {}}}

    def admitted() -> bool:
        # The namespace's service account is made a moment after the namespace.
        manifest = json.dumps(pod)
        return "created" in restricted("create", "--dry-run=server", "--filename", "-", stdin=manifest)

    try:
        until("the pod is admitted", admitted, timeout_seconds=10)
        with pytest.raises(CommandError, match="violates PodSecurity"):
            restricted("create", "--dry-run=server", "--filename", "-", stdin=json.dumps(insecure))
    finally:
        restricted("delete", "namespace", restricted.namespace, "--wait=false")
