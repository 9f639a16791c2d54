"""Whether the API server knows every field of a HybridModel that this operator knows.

Under an older CustomResourceDefinition fields are dropped without a word: what a user asks for, and what the
operator writes to status. An operator that started all the same would decide on half of it.
"""

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import yaml

from llamapool.errors import OutdatedSchemaError


def known_schema() -> Mapping[str, Any]:
    """Return the schema of HybridModels that this operator was built with, as OpenAPI v3."""
    definition = yaml.safe_load(resources.files("llamapool").joinpath("crd.yaml").read_text("utf-8"))
    (version,) = definition["spec"]["versions"]
    schema: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def require_current(served: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Check that nothing is unknown to the API server; what only it knows, of a newer one, does no harm.

    Args:
        served: the schema that the API server publishes.
        known: the operator's own.

    Raises:
        OutdatedSchemaError: names what is lacking, and says what to do.
    """
    # The API server publishes its own schema of metadata.
    parts = {name: schema for name, schema in known["properties"].items() if name in ("spec", "status")}
    lacking = list(_lacking(served, {"properties": parts}, ""))
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise OutdatedSchemaError(
            "the CustomResourceDefinition hybridmodels.llamapool.dev of this cluster is older than this"
            f" operator: it lacks {lacking[0]}{more}. Upgrade it: helm upgrade with crd.install=true (the"
            " default), or kubectl apply --server-side --force-conflicts --filename"
            " crds/llamapool.dev_hybridmodels.yaml of this operator's release"
        )


def _lacking(served: Mapping[str, Any], known: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the path of every field, and every value of an enumeration, that only ``known`` has."""
    for value in known.get("enum", ()):
        if value not in served.get("enum", (value,)):
            yield f"{path}={value}"
    theirs = served.get("properties", {})
    for name, schema in known.get("properties", {}).items():
        field = f"{path}.{name}".lstrip(".")
        if name in theirs:
            yield from _lacking(theirs[name], schema, field)
        elif not served.get("x-kubernetes-preserve-unknown-fields"):
            yield field
    for inner, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(known.get(inner), Mapping):
            yield from _lacking(served.get(inner) or {}, known[inner], f"{path}{mark}")
