"""Flags and environment of llama-server that the operator sets: refused where users add their own.

Spellings are those of upstream release b11434, common/arg.cpp.
"""

_OWNED_FLAGS = {
    "spec.model.source": (
        "-m --model -mu --model-url -dr --docker-repo -hf -hfr --hf-repo -hff --hf-file -hft --hf-token"
    ),
    "spec.model.mmproj": "-mm --mmproj -mmu --mmproj-url",
    "spec.model.draft": "-md --model-draft --spec-draft-model -hfd -hfrd --hf-repo-draft --spec-draft-hf",
    "spec.model.alias": "-a --alias",
    "spec.server.contextSize": "-c --ctx-size",
    "spec.server.slots": "-np --parallel",
    "spec.server.ctxCheckpoints": "-ctxcp --ctx-checkpoints --swa-checkpoints",
    "spec.server.cacheRAM": "-cram --cache-ram",
    "spec.server.gpuLayers": "-ngl --gpu-layers --n-gpu-layers",
    "spec.server.idleSleepSeconds": "--sleep-idle-seconds",
    "spec.server.apiKeySecretRef": "--api-key --api-key-file",
}
_FIXED_FLAGS = (
    "--host --port --reuse-port --metrics --ui --webui --no-ui --no-webui"
    " --api-prefix --ssl-key-file --ssl-cert-file"
)
_ROUTER_FLAGS = "--models-dir --models-preset --models-max --models-autoload --no-models-autoload"

_FIELD_OF_FLAG = {flag: field for field, flags in _OWNED_FLAGS.items() for flag in flags.split()}
_FIELD_OF_ENV = {"LLAMA_API_KEY": "spec.server.apiKeySecretRef", "HF_TOKEN": "spec.model.source.huggingFace"}


def refusal_of_argument(argument: str) -> str | None:
    """Return why a word may not be in `spec.server.extraArgs`, as the end of a sentence; None if it may.

    Args:
        argument: one word of the command line; `--flag=value` is seen as its flag.
    """
    flag = argument.split("=", 1)[0]
    if flag.startswith("--"):
        flag = flag.replace("_", "-")  # upstream takes both spellings
    if flag in _FIELD_OF_FLAG:
        return f"is set by the operator; set {_FIELD_OF_FLAG[flag]} instead"
    if flag in _FIXED_FLAGS.split():
        return "is set by the operator; remove it"
    if flag in _ROUTER_FLAGS.split():
        return "starts llama-server's router, whose children would share one pod's memory; remove it"
    return None


def refusal_of_environment(name: str) -> str | None:
    """Return why a variable may not be in `spec.server.env`, as the end of a sentence; None if it may."""
    if name.startswith("LLAMA_ARG_"):
        return "sets a flag; set the field of spec.server for it, or put the flag into spec.server.extraArgs"
    if name.startswith("LLAMAPOOL_"):
        return "is set by the operator; set spec.pool or spec.tuning instead"
    if name in _FIELD_OF_ENV:
        return f"is set by the operator; set {_FIELD_OF_ENV[name]} instead"
    return None
