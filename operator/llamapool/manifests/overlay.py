"""Laying a user's pod template over the operator's."""

from collections.abc import Mapping
from typing import Any

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "env": "name",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "resourceClaims": "name",
}
"""Lists whose items have an identity, by the patch merge keys of k8s.io/api/core/v1."""


def lay_over(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `overlay` over it, neither of them changed.

    Objects are merged field by field; items of a list with an identity are merged by it, new ones come
    behind; every other list and every plain value of the overlay replaces the base's.
    """
    merged = dict(base)
    for name, value in overlay.items():
        before = merged.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[name] = lay_over(before, value)
        elif isinstance(before, list) and isinstance(value, list) and name in _MERGE_KEYS:
            merged[name] = _lay_items_over(before, value, _MERGE_KEYS[name])
        elif value is not None:
            merged[name] = value
    return merged


def _lay_items_over(base: list[Any], overlay: list[Any], key: str) -> list[Any]:
    merged = {item[key]: item for item in base}
    for item in overlay:
        merged[item[key]] = lay_over(merged.get(item[key], {}), item)
    return list(merged.values())
