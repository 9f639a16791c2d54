"""The HybridModel resource as typed values, parsed once at the boundary; every error names the field."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from llamapool.domain.conditions import PoolMode, TuningMode
from llamapool.domain.memory import PoolPolicy
from llamapool.domain.owned import refusal_of_argument, refusal_of_environment
from llamapool.domain.quantity import parse_size
from llamapool.domain.tuning import TrialPolicy, Tuning
from llamapool.errors import InvalidFieldError
from llamapool.fields import Fields
from llamapool.sources import Artifacts, SecretKey, parse_artifacts

GROUP = "llamapool.dev"
VERSION = "v1alpha1"
KIND = "HybridModel"
PLURAL = "hybridmodels"
TRIAL_ANNOTATION = f"{GROUP}/trial"
PAUSED_ANNOTATION = f"{GROUP}/paused"

DEFAULT_SLOTS = 4
DEFAULT_LIMIT_PERCENT = 6.25
DEFAULT_IDLE_TRIM_SECONDS = 60
_ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany")
_OWNED_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component")
_OWNED_FETCH_FIELDS = ("image", "args", "command")
_OWNED_CONTAINER_FIELDS = {
    "image": "spec.server.image",
    "args": "spec.server.extraArgs",
    "command": "spec.server.extraArgs",
    "env": "spec.server.env",
    "resources": "spec.resources",
}


@dataclass(frozen=True, kw_only=True)
class CacheSpec:
    """The claim that downloaded files are kept on (`spec.model.cache`).

    Attributes:
        size: what to claim, as a quantity.
        storage_class_name: None: the cluster's default.
        access_mode: ReadWriteOnce, or ReadWriteMany for replicas on several nodes.
        retain: the claim outlives the model.
    """

    size: str
    storage_class_name: str | None
    access_mode: str
    retain: bool


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """How llama-server runs (`spec.server`); None: upstream's or the operator's default."""

    image: str | None
    pull_policy: str
    image_pull_secrets: tuple[str, ...]
    context_size: int | None
    slots: int
    ctx_checkpoints: int | None
    cache_ram_bytes: int | None
    gpu_layers: str | None
    idle_sleep_seconds: int | None
    api_key: SecretKey | None
    extra_args: tuple[str, ...]
    env: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class HybridModel:
    """One HybridModel.

    Attributes:
        name, namespace, uid, generation: from its metadata; uid is empty for a manifest not yet applied.
        files: what the server loads: model, projector, draft model.
        cache: the claim that downloaded files are kept on; None: they are kept as long as their pod.
        alias: the model's name in the API.
        server: how llama-server runs.
        resources: `spec.resources` as given, every quantity checked.
        pod_metadata, pod_spec: the overlay (`spec.podTemplate`) as given.
        replicas: pods that serve it.
        paused: the operator looks and tells, and changes nothing (annotation `llamapool.dev/paused: "true"`).
        trial_request: asks for a trial, any text (annotation `llamapool.dev/trial`); empty: nothing does.
        pool: what is asked of the pool.
        idle_trim_seconds: idle time after which the pool is given back; 0: never.
        tuning: what may be changed while it is served.
        shape: identifies model and flags, for figures that are learned of them.
    """

    name: str
    namespace: str
    uid: str
    generation: int
    files: Artifacts
    cache: CacheSpec | None
    alias: str
    server: ServerSpec
    resources: Mapping[str, Any]
    pod_metadata: Mapping[str, Any]
    pod_spec: Mapping[str, Any]
    replicas: int
    paused: bool
    trial_request: str
    pool: PoolPolicy
    idle_trim_seconds: int
    tuning: Tuning
    shape: str


def parse_model(body: Mapping[str, Any]) -> HybridModel:
    """Read a HybridModel as the API server gives it, or as a manifest has it.

    Raises:
        InvalidFieldError: a field cannot be used; names it, its value and what would be right.
        UnsupportedFieldError: a valid field that this release does not act on.
    """
    root = Fields(body, "")
    metadata, spec = root.child("metadata"), root.child("spec")
    model, server, pool = spec.child("model"), spec.child("server"), spec.child("pool")
    name = metadata.text("name")
    slots = server.optional_whole("slots", least=1) or DEFAULT_SLOTS
    _require_free_overlay(spec.child("podTemplate"))
    _require_quantities(spec.child("resources"))
    idle_trim_seconds = pool.optional_whole("idleTrimSeconds", least=0)
    return HybridModel(
        name=name,
        namespace=metadata.optional_text("namespace") or "default",
        uid=metadata.optional_text("uid") or "",
        generation=metadata.optional_whole("generation", least=0) or 0,
        files=parse_artifacts(model),
        cache=_cache(model.child("cache")),
        alias=model.optional_text("alias") or name,
        server=_server(server, slots),
        resources=spec.child("resources").values,
        pod_metadata=spec.child("podTemplate").child("metadata").values,
        pod_spec=spec.child("podTemplate").child("spec").values,
        replicas=spec.whole("replicas", least=0, default=1),
        paused=_paused(metadata.child("annotations")),
        trial_request=str(metadata.child("annotations").raw(TRIAL_ANNOTATION) or ""),
        pool=_pool_policy(pool, slots),
        idle_trim_seconds=DEFAULT_IDLE_TRIM_SECONDS if idle_trim_seconds is None else idle_trim_seconds,
        tuning=_tuning(spec.child("tuning")),
        shape=_digest(
            [{name: value for name, value in model.values.items() if name != "cache"}, server.values]
        ),
    )


def _paused(annotations: Fields) -> bool:
    """Read the annotation; a value that is neither is refused, since either guess could do harm."""
    if not annotations.has(PAUSED_ANNOTATION):
        return False
    value = annotations.raw(PAUSED_ANNOTATION)
    if value not in ("true", "false"):
        raise InvalidFieldError(annotations.at(PAUSED_ANNOTATION), value, 'must be "true" or "false"')
    return bool(value == "true")


def _cache(cache: Fields) -> CacheSpec | None:
    if not cache.values:
        return None
    size = cache.raw("size")
    if size is None:
        raise InvalidFieldError(cache.at("size"), None, "must be set, such as 40Gi: the size of the claim")
    parse_size(size, field=cache.at("size"))
    retain = cache.raw("retain")
    if retain not in (None, True, False):
        raise InvalidFieldError(cache.at("retain"), retain, "must be true or false")
    return CacheSpec(
        size=str(size),
        storage_class_name=_storage_class_name(cache),
        access_mode=cache.choice("accessMode", _ACCESS_MODES, default=_ACCESS_MODES[0]),
        retain=retain is not False,
    )


def _storage_class_name(cache: Fields) -> str | None:
    """Read the name; an empty one asks for a volume that a person has made."""
    return "" if cache.raw("storageClassName") == "" else cache.optional_text("storageClassName")


def _server(server: Fields, slots: int) -> ServerSpec:
    extra_args = server.texts("extraArgs")
    for index, argument in enumerate(extra_args):
        refusal = refusal_of_argument(argument)
        if refusal is not None:
            raise InvalidFieldError(f"{server.at('extraArgs')}[{index}]", argument, refusal)
    for variable in server.items("env"):
        refusal = refusal_of_environment(variable.text("name"))
        if refusal is not None:
            raise InvalidFieldError(variable.at("name"), variable.raw("name"), refusal)
    api_key = server.child("apiKeySecretRef")
    return ServerSpec(
        image=server.optional_text("image"),
        pull_policy=server.choice("pullPolicy", ("Always", "IfNotPresent", "Never"), default="IfNotPresent"),
        image_pull_secrets=tuple(secret.text("name") for secret in server.items("imagePullSecrets")),
        context_size=server.optional_whole("contextSize", least=0),
        slots=slots,
        ctx_checkpoints=server.optional_whole("ctxCheckpoints", least=0),
        cache_ram_bytes=_optional_size(server, "cacheRAM"),
        gpu_layers=_gpu_layers(server),
        idle_sleep_seconds=server.optional_whole("idleSleepSeconds", least=1),
        api_key=SecretKey(name=api_key.text("name"), key=api_key.text("key")) if api_key.values else None,
        extra_args=extra_args,
        env=tuple(variable.values for variable in server.items("env")),
    )


def _gpu_layers(server: Fields) -> str | None:
    layers = server.raw("gpuLayers")
    if layers is None:
        return None
    if layers in ("auto", "all"):
        return str(layers)
    if isinstance(layers, bool) or not isinstance(layers, int) or layers < 0:
        raise InvalidFieldError(server.at("gpuLayers"), layers, "must be a number of layers, auto or all")
    return str(layers)


def _pool_policy(pool: Fields, slots: int) -> PoolPolicy:
    mode = PoolMode(pool.choice("mode", tuple(PoolMode), default=PoolMode.AUTO))
    cap_bytes = _optional_size(pool, "cap")
    if mode is PoolMode.FIXED and cap_bytes is None:
        raise InvalidFieldError(pool.at("cap"), None, "must be set in mode Fixed, such as 512Mi")
    if mode is not PoolMode.FIXED and cap_bytes is not None:
        raise InvalidFieldError(
            pool.at("cap"), pool.raw("cap"), f"is used in mode Fixed only, and mode is {mode}; remove it"
        )
    percent = pool.raw("limitPercent")
    if percent is None:
        percent = DEFAULT_LIMIT_PERCENT
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 < percent <= 100:  # noqa: PLR2004 - percent
        raise InvalidFieldError(pool.at("limitPercent"), percent, "must be above 0 and at most 100")
    return PoolPolicy(mode=mode, cap_bytes=cap_bytes, limit_percent=Fraction(str(percent)), slots=slots)


def _tuning(tuning: Fields) -> Tuning:
    modes = tuple(TuningMode)
    trial, default = tuning.child("trial"), Tuning()
    regression_percent = _positive(tuning, "regressionPercent")
    return Tuning(
        memory=TuningMode(tuning.choice("memory", modes, default=default.memory)),
        ttft=TuningMode(tuning.choice("ttft", modes, default=default.ttft)),
        cooldown_seconds=tuning.whole("cooldownSeconds", least=0, default=default.cooldown_seconds),
        target_p90_seconds=_positive(tuning, "targetP90Seconds"),
        regression_percent=default.regression_percent if regression_percent is None else regression_percent,
        trial=TrialPolicy(
            legs=trial.whole("legs", least=7, default=default.trial.legs),
            leg_seconds=trial.whole("legSeconds", least=10, default=default.trial.leg_seconds),
            min_requests=trial.whole("minRequests", least=1, default=default.trial.min_requests),
        ),
    )


def _positive(fields: Fields, name: str) -> float | None:
    value = fields.raw(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InvalidFieldError(fields.at(name), value, "must be a number above 0")
    return float(value)


def _optional_size(fields: Fields, name: str) -> int | None:
    return parse_size(fields.raw(name), field=fields.at(name)) if fields.has(name) else None


def _require_quantities(resources: Fields) -> None:
    for kind in ("requests", "limits"):
        for name, value in resources.child(kind).values.items():
            parse_size(value, field=f"{resources.at(kind)}.{name}")


def _require_free_overlay(template: Fields) -> None:
    """Refuse an overlay that would change what the operator plans with."""
    labels = template.child("metadata").child("labels")
    for name in labels.values:
        if name in _OWNED_LABELS or name.startswith(f"{GROUP}/"):
            raise InvalidFieldError(labels.at(name), labels.raw(name), "is set by the operator; remove it")
    for container in template.child("spec").items("initContainers"):
        for name in _OWNED_FETCH_FIELDS:
            if container.raw("name") == "fetch" and container.has(name):
                raise InvalidFieldError(
                    container.at(name), container.raw(name), "is set by the operator; remove it"
                )
    for container in template.child("spec").items("containers"):
        if container.raw("name") != "server":
            continue
        for name, instead in _OWNED_CONTAINER_FIELDS.items():
            if container.has(name):
                raise InvalidFieldError(
                    container.at(name), container.raw(name), f"is set by the operator; use {instead} instead"
                )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=dict).encode()).hexdigest()[:16]
