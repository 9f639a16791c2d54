"""What the chart renders. ``--regenerate-chart-golden`` writes the golden files anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.chart import CHART, PROMETHEUS_OPERATOR, objects, render
from tests.contract.crd import crd
from tests.support.kubectl import CommandError, run

GOLDEN = Path(__file__).parent / "golden"

# CRD, dashboards and rules are left out of them: their one copy is in crds/ and in the chart's own folders.
VARIANTS: dict[str, tuple[str, ...]] = {
    "default": (),
    "prometheus-operator": PROMETHEUS_OPERATOR,
    "namespaced": ("--set", "watchNamespaces={models,research}"),
    "no-nudge": ("--set", "limitsNudge.enabled=false"),
    "every-value": ("--values", str(GOLDEN / "every-value.values.yaml"), *PROMETHEUS_OPERATOR),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_chart_renders_as_its_golden_file_says(variant: str, request: pytest.FixtureRequest) -> None:
    left_out = "crd.install=false,dashboards.enabled=false,prometheusRule.enabled=false"
    rendered = render(*VARIANTS[variant], "--set", left_out)
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


def test_the_dashboards_are_delivered_whole_to_grafana_s_sidecar() -> None:
    values = ("--values", str(GOLDEN / "every-value.values.yaml"))
    found = [one for one in objects(*values) if "-dashboard-" in one["metadata"]["name"]]
    files = {f"llamapool-{path.name}": path.read_text() for path in (CHART / "dashboards").glob("*.json")}
    assert {name: text + "\n" for one in found for name, text in one["data"].items()} == files
    assert {one["metadata"]["labels"]["grafana_dashboard"] for one in found} == {"yes"}
    assert {one["metadata"]["annotations"]["grafana_folder"] for one in found} == {"llamapool"}


@pytest.mark.parametrize("arguments", [(), PROMETHEUS_OPERATOR])
def test_the_rules_are_delivered_whole_with_prometheus_operator_and_without(
    arguments: tuple[str, ...],
) -> None:
    files = [yaml.safe_load(path.read_text()) for path in sorted((CHART / "rules").glob("*.yaml"))]
    rendered = objects(*arguments)
    if arguments:
        delivered = [one["spec"] for one in rendered if one["kind"] == "PrometheusRule"]
    else:
        (configmap,) = [one for one in rendered if one["metadata"]["name"] == "llamapool-prometheus-rules"]
        delivered = [yaml.safe_load(text) for _, text in sorted(configmap["data"].items())]
    assert delivered == files


def test_kinds_of_prometheus_operator_are_left_out_where_the_cluster_lacks_them() -> None:
    assert not [one for one in objects() if one["apiVersion"].startswith("monitoring.coreos.com")]


def annotation_and_variable(*arguments: str) -> tuple[str | None, str | None]:
    (operator,) = [one for one in objects(*arguments) if one["kind"] == "Deployment"]
    template = operator["spec"]["template"]
    environment = {each["name"]: each.get("value") for each in template["spec"]["containers"][0]["env"]}
    annotations = template["metadata"].get("annotations", {})
    return annotations.get("prometheus.io/scrape"), environment["LLAMAPOOL_SCRAPE_ANNOTATIONS"]


def test_nothing_is_scraped_twice() -> None:
    assert annotation_and_variable() == ("true", "true")
    assert annotation_and_variable(*PROMETHEUS_OPERATOR) == (None, "false")
    assert annotation_and_variable(*PROMETHEUS_OPERATOR, "--set", "podMonitor.enabled=false") == (
        "true",
        "true",
    )
    assert annotation_and_variable("--set", "scrapeAnnotations=false") == (None, "false")


def test_a_network_policy_lets_probes_and_metrics_in_and_nothing_else() -> None:
    (policy,) = [
        one for one in objects("--set", "networkPolicy.enabled=true") if one["kind"] == "NetworkPolicy"
    ]
    (operator,) = [one for one in objects() if one["kind"] == "Deployment"]
    selector = policy["spec"]["podSelector"]["matchLabels"]
    assert selector.items() <= operator["spec"]["template"]["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    ports = {port["name"] for port in operator["spec"]["template"]["spec"]["containers"][0]["ports"]}
    allowed = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
    assert set(allowed) <= ports
    assert sorted(allowed) == ["health", "metrics"]


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
        ("image.digest=latest", "image/digest"),
        ("podMonitor.interval=often", "podMonitor/interval"),
        ("extraEnv={A=b}", "extraEnv/0"),
        ("dashboards.labels.a=1", "dashboards/labels/a"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(value: str, named: str) -> None:
    with pytest.raises(CommandError, match=named):
        render("--set", value)


def test_several_replicas_are_spread_over_nodes_where_that_can_be() -> None:
    def spread(*arguments: str) -> Any:
        (deployment,) = [found for found in objects(*arguments) if found["kind"] == "Deployment"]
        return deployment["spec"]["template"]["spec"].get("topologySpreadConstraints")

    assert spread() is None
    (constraint,) = spread("--set", "replicas=2")
    assert (constraint["topologyKey"], constraint["whenUnsatisfiable"]) == (
        "kubernetes.io/hostname",
        "ScheduleAnyway",
    )
