"""`llamapool plan`: what a model needs and what fits, from the header of its file alone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from llamapool.adapters.gguf_header import read_local_header, read_model_facts, read_remote_header
from llamapool.api import DEFAULT_LIMIT_PERCENT, DEFAULT_SLOTS, GROUP, KIND, VERSION
from llamapool.domain.conditions import PoolMode
from llamapool.domain.context import ContextFlags
from llamapool.domain.facts_message import FetchedModel
from llamapool.domain.memory import Fit, MemoryPlan, PoolPolicy, fit_of, make_plan
from llamapool.domain.model_facts import ModelFacts
from llamapool.domain.quantity import parse_size
from llamapool.domain.server_flags import ServerFlags, read_flags
from llamapool.domain.sizing import Asked, Need, predict_need, prices
from llamapool.errors import InvalidFieldError

MOST_SLOTS = 256
_HUB = "https://huggingface.co"
_HF = re.compile(r"hf:(?P<repo>[^/\s]+/[^/\s@]+)(?:@(?P<revision>[^/\s]+))?/(?P<file>\S+\.gguf)")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `llamapool plan` was asked.

    Attributes:
        location: of the model's file: a path, an address, or `hf:owner/repo[@revision]/file`.
        draft, projector: likewise; None: there is none.
        flags: of the server.
        arguments: the same, as words for `spec.server.extraArgs`, where no field of the spec says it.
        gpu_layers: of `--gpu-layers` as given; None: not given.
        limit: memory limit as given; None: none.
        limit_bytes: the same in bytes.
        asked: what was set for state.
        policy: of the pool.
    """

    location: str
    draft: str | None
    projector: str | None
    flags: ServerFlags
    arguments: tuple[str, ...]
    gpu_layers: str | None
    limit: str | None
    limit_bytes: int | None
    asked: Asked
    policy: PoolPolicy


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What it found.

    Attributes:
        model: the facts.
        need: what the server needs.
        plan: under the limit.
        fit: None: not known, or no limit.
        most_slots: the largest number that fits, its own base counted; None: not known, or any.
        prices: what explicit values cost.
    """

    model: FetchedModel
    need: Need
    plan: MemoryPlan
    fit: Fit | None
    most_slots: int | None
    prices: tuple[str, ...]


def request_of(
    location: str,
    *,
    limit: str | None = None,
    slots: int = DEFAULT_SLOTS,
    context: int = 0,
    gpu_layers: str | None = None,
    mmap: bool = True,
    cache_types: tuple[str, str] = ("f16", "f16"),
    ubatch_size: int = 512,
    embedding: bool = False,
    cache_ram: str | None = None,
    ctx_checkpoints: int | None = None,
    pool_cap: str | None = None,
    draft: str | None = None,
    projector: str | None = None,
) -> Request:
    """Read the options of `llamapool plan`.

    Raises:
        InvalidFieldError: an option cannot be used; names it, its value and what is right.
    """
    arguments: list[str] = []
    for flag, value, default in (
        ("--load-mode", "mmap" if mmap else "none", "mmap"),
        ("--cache-type-k", cache_types[0], "f16"),
        ("--cache-type-v", cache_types[1], "f16"),
        ("--ubatch-size", str(ubatch_size), "512"),
    ):
        if value != default:
            arguments += [flag, value]
    if embedding:
        arguments.append("--embedding")
    start = ContextFlags(slots=slots, context_tokens=context)
    flags = read_flags(arguments, start=start, field_name="option")
    if gpu_layers is not None:
        flags = read_flags(["--gpu-layers", gpu_layers, *arguments], start=flags.context, field_name="option")
    pool_cap_bytes = _size(pool_cap, "--pool-cap")
    return Request(
        location=location,
        draft=draft,
        projector=projector,
        flags=flags,
        arguments=tuple(arguments),
        gpu_layers=gpu_layers,
        limit=limit,
        limit_bytes=_size(limit, "--limit"),
        asked=Asked(
            cache_ram_bytes=_size(cache_ram, "--cache-ram"),
            ctx_checkpoints=ctx_checkpoints,
            pool_cap_bytes=pool_cap_bytes,
            embedding=embedding,
        ),
        policy=PoolPolicy(
            mode=PoolMode.AUTO if pool_cap_bytes is None else PoolMode.FIXED,
            cap_bytes=pool_cap_bytes,
            limit_percent=Fraction(str(DEFAULT_LIMIT_PERCENT)),
            slots=slots,
        ),
    )


def answer(request: Request, environment: Mapping[str, str]) -> Answer:
    """Read the headers and plan.

    Args:
        request: what is asked.
        environment: may hold HF_TOKEN and HF_ENDPOINT, for `hf:` locations.

    Raises:
        ModelFileError: a file cannot be read.
        GgufError: a file is not GGUF, or lacks a key that its architecture needs.
        InvalidFieldError: a location is not one.
    """
    model = FetchedModel(
        sha256=None,
        facts=_facts(request.location, environment),
        draft=None if request.draft is None else _facts(request.draft, environment),
        projector_bytes=None
        if request.projector is None
        else _projector_bytes(request.projector, environment),
    )
    slots = request.flags.context.slots
    need = predict_need(model, request.flags, ctx_checkpoints=request.asked.ctx_checkpoints)
    plan = _plan(request, need)
    return Answer(
        model=model,
        need=need,
        plan=plan,
        fit=fit_of(plan, slots),
        most_slots=_most_slots(request, model),
        prices=prices(plan, request.asked, slots),
    )


def _plan(request: Request, need: Need) -> MemoryPlan:
    return make_plan(
        policy=replace(request.policy, slots=request.flags.context.slots),
        limit_bytes=request.limit_bytes,
        base_bytes=None,
        checkpoint_bytes=need.checkpoint_bytes,
        predicted_base_bytes=need.base_bytes,
    )


def _most_slots(request: Request, model: FetchedModel) -> int | None:
    """Return the largest number of slots that fits; the context is divided among them."""
    most = None
    low, high = 1, MOST_SLOTS
    while low <= high:
        slots = (low + high) // 2
        flags = replace(request.flags, context=replace(request.flags.context, slots=slots))
        need = predict_need(model, flags, ctx_checkpoints=request.asked.ctx_checkpoints)
        fit = fit_of(_plan(replace(request, flags=flags), need), slots)
        if fit is None:
            return None
        if fit.fits:
            most, low = slots, slots + 1
        else:
            most, high = most or 0, slots - 1
    return most


def locate(location: str, environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return path or address of a location, and the headers to ask for it with.

    Raises:
        InvalidFieldError: it begins with `hf:` and is not OWNER/REPO/FILE.
    """
    if not location.startswith("hf:"):
        return location, {}
    match = _HF.fullmatch(location)
    if match is None:
        raise InvalidFieldError("FILE", location, "must be hf:OWNER/REPO[@REVISION]/FILE.gguf")
    hub = environment.get("HF_ENDPOINT", _HUB).rstrip("/")
    url = f"{hub}/{match['repo']}/resolve/{match['revision'] or 'main'}/{match['file']}"
    token = environment.get("HF_TOKEN")
    return url, {"Authorization": f"Bearer {token}"} if token else {}


def _facts(location: str, environment: Mapping[str, str]) -> ModelFacts:
    where, headers = locate(location, environment)
    return read_model_facts(where, headers=headers)


def _projector_bytes(location: str, environment: Mapping[str, str]) -> int:
    where, headers = locate(location, environment)
    is_remote = where.startswith(("http://", "https://"))
    header = read_remote_header(where, headers=headers) if is_remote else read_local_header(Path(where))
    return sum(tensor.size_bytes for tensor in header.tensors)


def manifest(request: Request, name: str) -> dict[str, Any]:
    """Return a HybridModel that asks for what was planned."""
    context = request.flags.context
    server: dict[str, Any] = {"slots": context.slots}
    if context.context_tokens:
        server["contextSize"] = context.context_tokens
    layers = request.gpu_layers
    given = {
        "gpuLayers": int(layers) if layers is not None and layers.isdecimal() else layers,
        "cacheRAM": request.asked.cache_ram_bytes,
        "ctxCheckpoints": request.asked.ctx_checkpoints,
        "extraArgs": list(request.arguments) or None,
    }
    server |= {field: value for field, value in given.items() if value is not None}
    model: dict[str, Any] = {"source": _source(request.location)}
    for field, location in (("draft", request.draft), ("mmproj", request.projector)):
        if location is not None:
            model[field] = {"source": _source(location)}
    spec: dict[str, Any] = {"model": model, "server": server}
    if request.limit is not None:
        spec["resources"] = {"requests": {"memory": request.limit}, "limits": {"memory": request.limit}}
    if request.asked.pool_cap_bytes is not None:
        spec["pool"] = {"mode": "Fixed", "cap": request.asked.pool_cap_bytes}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": spec,
    }


def default_name(location: str) -> str:
    """Return a name for a model, from its file's: lower case, what Kubernetes does not allow made a dash."""
    stem = re.sub(r"(-\d{5}-of-\d{5})?\.gguf$", "", re.split(r"[?#]", location)[0].rsplit("/", 1)[-1])
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:50].strip("-") or "model"


def _source(location: str) -> dict[str, Any]:
    if match := _HF.fullmatch(location):
        revision = {"revision": match["revision"]} if match["revision"] else {}
        return {"huggingFace": {"repo": match["repo"], "files": [match["file"]], **revision}}
    if location.startswith(("http://", "https://")):
        return {"http": {"urls": [location]}}
    return {"pvc": {"claimName": "models", "path": Path(location).name}}


def _size(value: str | None, option: str) -> int | None:
    return None if value is None else parse_size(value, field=option)
