"""The command line and the environment of llama-server."""

from typing import Any

from llamapool.api import HybridModel, ImageSource, Source
from llamapool.manifests.common import HTTP_PORT, LIMITS_FILE, METRICS_PORT

LIMITS_FOLDER = "/etc/llamapool"
API_KEY_FOLDER = "/etc/llamapool-api-key"
MODEL_FOLDER = "/models"
MMPROJ_FOLDER = "/mmproj"
DRAFT_FOLDER = "/draft"
TERMINATION_LOG = "/dev/termination-log"
"""The server keeps its accounting there, so that a kill leaves it in the pod's status."""
_MIB = 1 << 20


def arguments(model: HybridModel) -> list[str]:
    """Return the arguments of llama-server; flags as of upstream release b11434."""
    server = model.server
    given: list[str] = ["--host", "0.0.0.0", "--port", str(HTTP_PORT)]  # noqa: S104 - in the pod's own network
    given += ["--model", file_path(model.model, MODEL_FOLDER), "--alias", model.alias]
    if model.mmproj is not None:
        given += ["--mmproj", file_path(model.mmproj, MMPROJ_FOLDER)]
    if model.draft is not None:
        given += ["--model-draft", file_path(model.draft, DRAFT_FOLDER)]
    given += ["--parallel", str(server.slots)]
    # Off unless asked for: upstream's default of 8 GiB is over many a limit, and a checkpoint that the prompt
    # cache holds on to is not there for the pool to reuse.
    given += ["--cache-ram", str((server.cache_ram_bytes or 0) // _MIB)]
    for flag, value in (
        ("--ctx-checkpoints", server.ctx_checkpoints),
        ("--ctx-size", server.context_size),
        ("--n-gpu-layers", server.gpu_layers),
        ("--sleep-idle-seconds", server.idle_sleep_seconds),
        ("--api-key-file", f"{API_KEY_FOLDER}/{server.api_key.key}" if server.api_key else None),
    ):
        if value is not None:
            given += [flag, str(value)]
    return [*given, "--metrics", "--no-ui", *server.extra_args]


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


def file_path(source: Source, folder: str) -> str:
    """Return where a file is in the server's container.

    Args:
        source: where it comes from.
        folder: where the volume of a PVC source is mounted.
    """
    return source.path if isinstance(source, ImageSource) else f"{folder}/{source.path}"
