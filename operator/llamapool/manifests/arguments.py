"""The command line and the environment of llama-server."""

from typing import Any

from llamapool.api import HybridModel
from llamapool.domain.quantity import parse_size
from llamapool.domain.server_flags import read_flags
from llamapool.manifests.common import HTTP_PORT, LIMITS_FILE, METRICS_PORT

LIMITS_FOLDER = "/etc/llamapool"
API_KEY_FOLDER = "/etc/llamapool-api-key"
TERMINATION_LOG = "/dev/termination-log"
"""The server keeps its accounting there, so that a kill leaves it in the pod's status."""
_MIB = 1 << 20


def arguments(model: HybridModel) -> list[str]:
    """Return the arguments of llama-server; flags as of upstream release b11434."""
    server = model.server
    given: list[str] = ["--host", "0.0.0.0", "--port", str(HTTP_PORT)]  # noqa: S104 - in the pod's own network
    given += ["--model", model.files.model.path, "--alias", model.alias]
    if model.files.mmproj is not None:
        given += ["--mmproj", model.files.mmproj.path]
    if model.files.draft is not None:
        given += ["--model-draft", model.files.draft.path]
    given += ["--parallel", str(server.slots)]
    for flag, value in (
        ("--cache-ram", _cache_ram_mib(model)),
        ("--ctx-checkpoints", server.ctx_checkpoints),
        ("--ctx-size", server.context_size),
        ("--n-gpu-layers", server.gpu_layers),
        ("--sleep-idle-seconds", server.idle_sleep_seconds),
        ("--api-key-file", f"{API_KEY_FOLDER}/{server.api_key.key}" if server.api_key else None),
    ):
        if value is not None:
            given += [flag, str(value)]
    return [*given, "--metrics", "--no-ui", *server.extra_args]


def _cache_ram_mib(model: HybridModel) -> int | None:
    """Return `--cache-ram`; None: upstream's default, 8 GiB, where no limit is known here.

    Where it is omitted, the state budget, always below the memory limit, is what bounds cached prompts. Not
    "no limit" (-1): upstream then holds no more tokens than one context.
    """
    if model.server.cache_ram_bytes is not None:
        return model.server.cache_ram_bytes // _MIB
    if read_flags(model.server.extra_args).embedding:
        return 0  # no prompt is ever continued
    limit = (model.resources.get("limits") or {}).get("memory")
    return None if limit is None else parse_size(limit, field="spec.resources.limits.memory") // _MIB


def environment(model: HybridModel) -> list[dict[str, Any]]:
    """Return the environment of llama-server: the operator's variables, then the user's."""
    owned = {
        "LLAMAPOOL_MODE": "on",
        "LLAMAPOOL_LIMITS_FILE": f"{LIMITS_FOLDER}/{LIMITS_FILE}",
        "LLAMAPOOL_METRICS_PORT": str(METRICS_PORT),
        "LLAMAPOOL_IDLE_TRIM_SECONDS": str(model.idle_trim_seconds),
        "LLAMAPOOL_TERMINATION_LOG": TERMINATION_LOG,
    }
    variables = [{"name": name, "value": value} for name, value in owned.items()]
    return [*variables, *(dict(variable) for variable in model.server.env)]
