"""What a model's servers will need, from its spec and the facts of its files, before any of them runs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from llamapool.adapters.cluster import Manifest
from llamapool.api import HybridModel
from llamapool.domain.conditions import PoolMode
from llamapool.domain.context import ContextFlags
from llamapool.domain.facts_message import from_status
from llamapool.domain.quantity import parse_size
from llamapool.domain.server_flags import ServerFlags, gpu_layers, read_flags
from llamapool.domain.sizing import Asked, Need, predict_need
from llamapool.errors import FactsMessageError, InvalidFieldError
from llamapool.manifests.common import SERVER_CONTAINER

_DEVICE = re.compile(r"gpu|^nvidia\.com/mig-")
"""Extended resources that are devices to offload to, slices of one included."""
_NO_FACTS = "the header of the model's file was not read; what it needs will be measured"


def need_of(model: HybridModel, known: Mapping[str, Any] | None) -> Need:
    """Return what a server of the model will need.

    Args:
        model: its spec.
        known: facts of its files, as status keeps them; None: not known.
    """
    if known is None:
        return Need(unknown=_NO_FACTS)
    try:
        files = from_status(known)
        flags = flags_of(model)
    except (FactsMessageError, InvalidFieldError) as error:
        return Need(unknown=f"{error}; will be measured")
    if files is None:
        return Need(unknown=_NO_FACTS)
    return predict_need(files, flags, ctx_checkpoints=model.server.ctx_checkpoints)


def asked_of(model: HybridModel) -> Asked:
    """Return what the user set for state."""
    words = model.server.extra_args
    return Asked(
        cache_ram_bytes=model.server.cache_ram_bytes,
        ctx_checkpoints=model.server.ctx_checkpoints,
        pool_cap_bytes=model.pool.cap_bytes if model.pool.mode is PoolMode.FIXED else None,
        embedding=any(word in ("--embedding", "--embeddings", "--rerank", "--reranking") for word in words),
    )


def flags_of(model: HybridModel) -> ServerFlags:
    """Return the flags that decide the memory of the model's servers.

    Raises:
        InvalidFieldError: one of `spec.server.extraArgs` has a value that llama-server refuses.
    """
    server = model.server
    start = ContextFlags(
        slots=server.slots,
        context_tokens=server.context_size or 0,
        gpu_layers=gpu_layers(server.gpu_layers, has_gpu=_has_gpu(model)),
    )
    return read_flags(server.extra_args, start=start)


def declared_memory(model: HybridModel, pods: Iterable[Manifest], kind: str) -> int | None:
    """Return the memory that servers are started with, the smallest where they differ.

    Args:
        model: its spec counts where there is no pod.
        pods: of the model; admission has written the defaults of a LimitRange into them.
        kind: `limits` or `requests`.
    """
    containers = [
        container
        for pod in pods
        for container in pod.get("spec", {}).get("containers", [])
        if container["name"] == SERVER_CONTAINER
    ]
    resources = [container.get("resources") or {} for container in containers] or [model.resources]
    given = [(each.get(kind) or {}).get("memory") for each in resources]
    sizes = [parse_size(each, field=f"resources.{kind}.memory") for each in given if each is not None]
    return min(sizes, default=None)


def _has_gpu(model: HybridModel) -> bool:
    limits = model.resources.get("limits") or {}
    return bool(model.resources.get("claims")) or any(map(_DEVICE.search, limits))
