"""HybridModels as the apiserver takes or refuses them."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubernetes.client import ApiException

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP, VERSION, PLURAL = "llamapool.dev", "v1alpha1", "hybridmodels"

MINIMAL: Mapping[str, Any] = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "HybridModel",
    "metadata": {"name": "tiny"},
    "spec": {"model": {"source": {"pvc": {"claimName": "models", "path": "tiny.gguf"}}}},
}


def merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """``target`` with a JSON merge patch (RFC 7386) applied: ``None`` removes, mappings merge."""
    result = deepcopy(dict(target))
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merged(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result


class Refused(Exception):  # noqa: N818 - an answer of the apiserver, not a fault
    """A HybridModel was refused; ``causes`` are (field, message), ``text`` is what a person sees."""

    def __init__(self, text: str, causes: list[tuple[str, str]]) -> None:
        super().__init__(text)
        self.text = text
        self.causes = causes


@dataclass(frozen=True)
class HybridModels:
    """The API of HybridModels in one namespace."""

    api: Any
    namespace: str

    def create(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """The object as stored.

        Raises:
            Refused: the apiserver refused it.
        """
        options = {"dry_run": "All"} if dry_run else {}
        try:
            stored: dict[str, Any] = self.api.create_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, manifest, field_validation="Strict", **options
            )
        except ApiException as error:
            status = json.loads(error.body)
            causes = [
                (cause["field"], cause["message"])
                for cause in status.get("details", {}).get("causes", [])
                if cause["field"] != "<nil>"  # only says that CEL rules were not reached
            ]
            raise Refused(status["message"], causes) from error
        return stored

    def would_store(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The object as it would be stored: validated and defaulted, not kept.

        Raises:
            Refused: the apiserver refused it.
        """
        return self.create(manifest, dry_run=True)
