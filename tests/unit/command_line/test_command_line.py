"""The command line, as a person meets it."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.builders import model_body

KINDS = ["ConfigMap", "Service", "Deployment", "PodDisruptionBudget"]


def llamapool(*arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-W", "error", "-m", "llamapool", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump(model_body()))
    return path


def kinds(objects: list[Any]) -> list[str]:
    return [made["kind"] for made in objects]


def test_version_is_that_of_the_package() -> None:
    assert llamapool("version").stdout.strip() == version("llamapool")


def test_render_prints_what_would_be_created_in_order(manifest: Path) -> None:
    shown = llamapool("render", str(manifest))
    assert kinds(list(yaml.safe_load_all(shown.stdout))) == KINDS


def test_render_prints_json_as_one_list(manifest: Path) -> None:
    shown = llamapool("render", str(manifest), "-o", "json")
    assert kinds(json.loads(shown.stdout)["items"]) == KINDS


def test_render_reads_standard_input_and_several_documents() -> None:
    text = yaml.safe_dump_all([model_body("a"), model_body("b")])
    names = [
        made["metadata"]["name"] for made in yaml.safe_load_all(llamapool("render", "-", given=text).stdout)
    ]
    assert names == ["a-limits", "a", "a", "a", "b-limits", "b", "b", "b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            yaml.safe_dump(model_body(server={"slots": 0})),
            "spec.server.slots: 0 must be a whole number, 1 or more",
        ),
        ("kind: Pod\n", "kind: 'Pod' must be HybridModel"),
        ("just text", "must be HybridModel"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_one_line_on_standard_error(text: str, said: str) -> None:
    shown = llamapool("render", "-", given=text)
    assert shown.returncode == 1
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""


def test_the_operator_says_which_setting_it_lacks() -> None:
    shown = llamapool("operator")
    assert shown.returncode == 1
    assert "LLAMAPOOL_SERVER_IMAGE" in shown.stderr
    assert "Traceback" not in shown.stderr
