"""Whether a live object already has what is asked for, so that the steady state writes nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from llamapool.domain.quantity import parse_quantity
from llamapool.errors import InvalidFieldError

_QUANTITY_PARENTS = ("limits", "requests")
_IDENTITIES = ("name", "mountPath", "containerPort", "uid", "key", "topologyKey")


def difference(live: Any, desired: Any, path: str = "") -> str | None:
    """Return the path of the first desired field that is lacking or contradicted; None if none.

    Fields that only the live object has are not looked at: defaults, other people's fields, status.
    Quantities are compared as numbers: the API server gives `1024Mi` back as `1Gi`. An empty value may be
    absent: the API server leaves it out.

    Args:
        live: an object, or a part of one, as the API server gives it.
        desired: the same part as it should be.
        path: where the part stands in its object.
    """
    if live is None and not desired:
        return None
    if isinstance(desired, Mapping):
        if not isinstance(live, Mapping):
            return path
        found = (
            _quantity_difference(live.get(name), value, f"{path}.{name}")
            if path.rpartition(".")[2] in _QUANTITY_PARENTS
            else difference(live.get(name), value, f"{path}.{name}".lstrip("."))
            for name, value in desired.items()
        )
        return next((where for where in found if where is not None), None)
    if isinstance(desired, list):
        return _list_difference(live, desired, path)
    return None if live == desired else path


def _list_difference(live: Any, desired: Sequence[Any], path: str) -> str | None:
    if not isinstance(live, list):
        return path
    identity = _identity(desired)
    if identity is None:
        if len(live) != len(desired):
            return path
        pairs = list(zip(live, desired, strict=True))
    else:
        by_identity = {item.get(identity): item for item in live if isinstance(item, Mapping)}
        pairs = [(by_identity.get(item[identity]), item) for item in desired]
    found = (difference(mine, its, f"{path}[{index}]") for index, (mine, its) in enumerate(pairs))
    return next((where for where in found if where is not None), None)


def _identity(items: Sequence[Any]) -> str | None:
    """Return the field that tells the items of a list apart; None where order and number count."""
    for name in _IDENTITIES:
        if items and all(isinstance(item, Mapping) and name in item for item in items):
            return name
    return None


def _quantity_difference(live: Any, desired: Any, path: str) -> str | None:
    if live == desired:
        return None
    try:
        same = parse_quantity(live, field=path) == parse_quantity(desired, field=path)
    except InvalidFieldError:
        return path
    return None if same else path
