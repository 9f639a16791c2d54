"""Writes docs/hybridmodel.md from the schema of the HybridModel: python tools/hybridmodel_reference.py."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CRD = ROOT / "crds" / "llamapool.dev_hybridmodels.yaml"
REFERENCE = ROOT / "docs" / "hybridmodel.md"
_SECTIONS = {
    "spec.model": "What is served",
    "spec.server": "How llama-server runs",
    "spec.resources": "Resources",
    "spec.podTemplate": "What is laid over the pods",
    "spec.replicas": "Replicas",
    "spec.pool": "The pool",
    "spec.tuning": "What the operator may change by itself",
    "status": "Status",
}
_HEAD = """# The HybridModel, field by field

Generated from [its schema](../crds/llamapool.dev_hybridmodels.yaml) by `make docs`; do not edit.
`kubectl explain hybridmodel.spec --recursive` shows the same in a cluster.

`llamapool.dev/v1alpha1`, kind `HybridModel`, short name `hm`, namespaced; status and scale subresources.

| annotation | value | effect |
|---|---|---|
| `llamapool.dev/paused` | `"true"` or `"false"` | the operator looks and tells, and changes nothing |
| `llamapool.dev/trial` | `now` | asks for a trial of the pool |
| `llamapool.dev/update` | any new value | asks for pods as the operator of today builds them |
"""


def reference(crd: Mapping[str, Any]) -> str:
    """Return the text of the reference for a CustomResourceDefinition."""
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    parts = [_HEAD]
    for path, title in _SECTIONS.items():
        node: Any = {"properties": schema}
        for name in path.split("."):
            node = node["properties"][name]
        parts.append(f"\n## {title}: `{path}`\n\n{_described(node)}\n")
        rows = list(_rows(node, path))
        if rows:
            parts.append("\n| field | type | what it is |\n|---|---|---|\n")
            parts += [f"| `{field}` | {kind} | {text} |\n" for field, kind, text in rows]
    missing = set(schema["spec"]["properties"]) - {path.split(".")[-1] for path in _SECTIONS}
    if missing:
        raise SystemExit(f"spec.{', spec.'.join(sorted(missing))}: has no section in {Path(__file__).name}")
    return "".join(parts)


def _rows(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, type and description of every field below a node, in the order of the schema."""
    for name, field in node.get("properties", {}).items():
        below = f"{path}.{name}"
        required = ", required" if name in node.get("required", ()) else ""
        yield below, _type(field) + required, _described(field)
        inner = field.get("items", field)
        yield from _rows(inner, f"{below}[]" if "items" in field else below)


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "number or text"
    kind = {"array": "list", "object": "object", "string": "text"}.get(
        field.get("type", ""), field.get("type", "any")
    )
    if "enum" in field:
        kind = " \\| ".join(f"`{value}`" for value in field["enum"])
    if kind == "list":
        return f"list of {_type(field['items'])}"
    bounds = [
        f"{words} {field[key]}"
        for key, words in (("minimum", "at least"), ("maximum", "at most"))
        if key in field
    ]
    return ", ".join([kind, *bounds])


def _described(field: Mapping[str, Any]) -> str:
    """Return the description on one line; where it names no default, the schema's is added."""
    text = " ".join(str(field.get("description", "")).split()).replace("|", "\\|")
    default = field.get("default")
    if default not in (None, {}) and "Default" not in text:
        text = f"{text} Default: {default}.".strip()
    return text


def main() -> None:
    """Write the file."""
    REFERENCE.write_text(reference(yaml.safe_load(CRD.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"{REFERENCE.relative_to(ROOT)} is written")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
