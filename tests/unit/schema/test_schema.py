"""A CustomResourceDefinition older than the operator is refused, with what it lacks and what to do."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from llamapool.errors import OutdatedSchemaError
from llamapool.schema import known_schema, require_current

KNOWN = known_schema()


def published() -> dict[str, Any]:
    """The schema as an API server publishes it: with its own of metadata."""
    schema: dict[str, Any] = json.loads(json.dumps(KNOWN))  # no two parts of it are one object
    schema["properties"]["metadata"] = {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}]}
    return schema


def fields(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys on the way to every field of a schema that is dropped where it is not known."""
    for name, child in schema.get("properties", {}).items():
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield (*path, "properties", name)
        yield from fields(child, (*path, "properties", name))
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner], (*path, inner))


def name_of(path: tuple[str, ...]) -> str:
    """A field as people write it."""
    words = {"properties": "", "items": "[]", "additionalProperties": ".*"}
    return "".join(words.get(word, f".{word}") for word in path).lstrip(".")


def test_the_schema_of_the_operator_s_own_release_is_current() -> None:
    require_current(published(), KNOWN)


def test_the_schema_of_a_later_release_does_no_harm() -> None:
    later = published()
    later["properties"]["spec"]["properties"]["later"] = {"type": "string"}
    later["properties"]["spec"]["properties"]["tuning"]["properties"]["memory"]["enum"].append("Later")
    require_current(later, KNOWN)


def test_a_schema_that_lacks_any_one_field_is_refused_by_its_name() -> None:
    paths = [path for path in fields(KNOWN) if path[1] in ("spec", "status")]
    assert len(paths) > 100
    for path in paths:
        older = published()
        parent: Any = older
        for key in path[:-1]:
            parent = parent[key]
        del parent[path[-1]]
        with pytest.raises(OutdatedSchemaError) as refused:
            require_current(older, KNOWN)
        assert f"it lacks {name_of(path)}. Upgrade it:" in str(refused.value)


def test_a_field_that_the_api_server_keeps_without_knowing_it_is_not_lacking() -> None:
    older = published()
    del older["properties"]["status"]["properties"]["memory"]["properties"]
    require_current(older, KNOWN)


def test_a_value_that_an_older_schema_does_not_know_is_named() -> None:
    older = published()
    older["properties"]["spec"]["properties"]["pool"]["properties"]["mode"]["enum"].remove("Off")
    with pytest.raises(
        OutdatedSchemaError, match=r"older than this operator: it lacks spec\.pool\.mode=Off\."
    ):
        require_current(older, KNOWN)


def test_of_many_things_that_are_lacking_the_first_is_named_and_the_others_counted() -> None:
    older = published()
    del older["properties"]["spec"]["properties"]["tuning"]
    del older["properties"]["status"]["properties"]["trial"]
    with pytest.raises(OutdatedSchemaError, match=r"it lacks spec\.tuning and 1 more\. .*helm upgrade"):
        require_current(older, KNOWN)
