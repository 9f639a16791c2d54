"""What the chart renders. ``--regenerate-chart-golden`` writes the golden files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.chart import CHART, objects, render
from tests.contract.crd import crd
from tests.support.kubectl import CommandError, run

GOLDEN = Path(__file__).parent / "golden"

# The CRD is left out of them: its one copy is in crds/.
VARIANTS: dict[str, tuple[str, ...]] = {
    "default": (),
    "namespaced": ("--set", "watchNamespaces={models,research}"),
    "no-nudge": ("--set", "limitsNudge.enabled=false"),
    "every-value": ("--values", str(GOLDEN / "every-value.values.yaml")),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_chart_renders_as_its_golden_file_says(variant: str, request: pytest.FixtureRequest) -> None:
    rendered = render("--set", "crd.install=false", *VARIANTS[variant])
    golden = GOLDEN / f"{variant}.yaml"
    if request.config.getoption("--regenerate-chart-golden"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()


def test_helm_lint_finds_nothing() -> None:
    report = run("helm", "lint", "--strict", str(CHART))
    assert "0 chart(s) failed" in report
    assert "[WARNING]" not in report


def test_the_chart_installs_the_one_crd_file() -> None:
    rendered = [found for found in objects() if found["kind"] == "CustomResourceDefinition"]
    assert rendered == [crd()]


def test_the_crd_is_kept_on_uninstall() -> None:
    assert crd()["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_a_packaged_chart_holds_the_crd_itself(tmp_path: Path) -> None:
    run("helm", "package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.glob("llamapool-*.tgz")
    rendered = run("helm", "template", "llamapool", str(package), "--kube-version", "1.35.0")
    assert "name: hybridmodels.llamapool.dev" in rendered


def test_without_the_nudge_there_is_neither_the_right_to_patch_pods_nor_the_policy() -> None:
    found = objects("--set", "limitsNudge.enabled=false")
    assert not [one for one in found if one["kind"].startswith("ValidatingAdmissionPolicy")]
    (role,) = [one for one in found if one["kind"] == "ClusterRole"]
    (pods,) = [rule for rule in role["rules"] if rule["resources"] == ["pods"]]
    assert pods["verbs"] == ["get", "list", "watch"]


def test_a_namespaced_installation_has_no_cluster_wide_rights() -> None:
    found = objects("--set", "watchNamespaces={models,research}")
    assert not [one for one in found if one["kind"].startswith("ClusterRole")]
    roles = [one["metadata"]["namespace"] for one in found if one["kind"] == "Role"]
    # The first is for the Lease, where the operator runs.
    assert roles == ["llamapool-system", "models", "research"]


def test_an_older_cluster_is_refused() -> None:
    with pytest.raises(CommandError, match=r"requires kubeVersion: >=1\.33"):
        run("helm", "template", "llamapool", str(CHART), "--kube-version", "1.32.9")


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("logging.format=xml", "logging/format"),
        ("image.tga=1", "tga"),
        ("watchNamespaces=models", "watchNamespaces"),
        ("watchNamespaces={Models}", "watchNamespaces/0"),
        ("imagePullSecrets={registry}", "imagePullSecrets/0"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(value: str, named: str) -> None:
    with pytest.raises(CommandError, match=named):
        render("--set", value)
