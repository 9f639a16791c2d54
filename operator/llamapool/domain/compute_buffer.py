"""How much memory the CPU backend reserves for computing one batch.

Upstream lays the intermediate results of its graph into one buffer, each freed once it was used, so the
buffer is as large as the step that keeps most at once: attention, the recurrent part, the feed-forward part,
or the output. A step is a few widths times the tokens of a batch; the factors were fitted to what upstream
reserves (`sched_reserve` of llama.cpp b11434, which needs no weights for it) over random widths of every
architecture. At the widths of published models and micro batches of 512 tokens they are within 20 MiB of it,
mostly within one; at 2,048 tokens within 10 %.
"""

from collections.abc import Callable

from llamapool.domain.context import ContextFlags, ContextLayout
from llamapool.domain.hyperparameters import Hyperparameters
from llamapool.domain.model_facts import ModelFacts
from llamapool.domain.sequence_memory import SequenceMemory

_FLOAT_BYTES, _MASK_BYTES = 4, 2
_RESIDUAL = 5
"""Embeddings' widths that are kept through every step: the residual, the normed input, the results."""
_DELTA_NET = frozenset({"qwen3next", "qwen35", "qwen35moe", "qwen4exp"})
"""Architectures with gated delta-net layers; their attention is gated too."""

_MANY_NODES = _DELTA_NET | {"kimi-linear", "bailingmoe3", "minimax-01"}
_MANY_NODES_TWICE = frozenset({"kimi-k3", "glm5-next"})


def compute_bytes(
    facts: ModelFacts, memory: SequenceMemory, flags: ContextFlags, layout: ContextLayout
) -> int:
    """Return the size of the compute buffer of a model whose layers are computed on the CPU.

    Args:
        facts: of the model.
        memory: what it keeps for its sequences.
        flags: of the server.
        layout: of its context.

    Raises:
        GgufError: a key is absent or out of range.
    """
    parameters, tokens = facts.parameters, layout.batch_tokens
    residual = _RESIDUAL * parameters.embedding_length * tokens
    steps = [
        _feed_forward(parameters) * tokens,
        _experts(parameters) * tokens,
        facts.vocabulary * flags.slots,
    ]
    if memory.attention:
        steps.append(_attention(parameters) * tokens)
    if memory.recurrent:
        state = max(row.state for row in memory.recurrent.values()) * flags.slots
        steps.append(_recurrent(parameters, tokens, flags.slots, state))
    return _FLOAT_BYTES * (residual + max(steps)) + input_bytes(memory, layout)


def input_bytes(memory: SequenceMemory, layout: ContextLayout) -> int:
    """Return the size of a batch's inputs: for each kind of attention, which token sees which cell."""
    cells = 0
    if any(not row.sliding for row in memory.attention.values()):
        cells += layout.cells
    if memory.window:
        cells += layout.window_cells
    return _MASK_BYTES * cells * layout.batch_tokens


def work_bytes(facts: ModelFacts, layout: ContextLayout) -> int:
    """Return the size of a batch's activations in the type of the weights that they are multiplied by.

    Source: `ggml_graph_plan` (ggml-cpu.c): the largest that a matrix product of the graph needs.
    """
    return 0 if facts.weights is None else facts.weights.converted_row_bytes * layout.batch_tokens


def graph_nodes(facts: ModelFacts, layout: ContextLayout) -> int:
    """Return the nodes that upstream makes room for in a graph (`llama_context::graph_max_nodes`)."""
    tensors = 0 if facts.weights is None else facts.weights.tensors
    if facts.architecture in _MANY_NODES_TWICE:
        return max(160 * layout.batch_tokens, 64 * tensors)
    if facts.architecture in _MANY_NODES:
        return max(40 * layout.batch_tokens, 32 * tensors)
    return max(1024, 8 * tensors)


def _feed_forward(parameters: Hyperparameters) -> int:
    return 3 * max(parameters.feed_forward_length)


def _experts(parameters: Hyperparameters) -> int:
    used = max(parameters.per_layer("expert_used_count", 0))
    if used == 0:
        return 0
    width = max(parameters.per_layer("expert_feed_forward_length", parameters.feed_forward_length))
    embedding = parameters.embedding_length
    results = embedding if 2 * width < embedding else 0  # else they fit where the inputs were
    return used * (3 * width + results)


def _attention(parameters: Hyperparameters) -> int:
    heads, key = max(parameters.head_count), parameters.head_length("key")
    if parameters.has_latent_attention:
        latent = parameters.whole("attention.kv_lora_rank")
        return heads * (key + latent + parameters.whole("attention.key_length_mla"))
    return (4 if parameters.architecture in _DELTA_NET else 2) * heads * key


def _recurrent(parameters: Hyperparameters, tokens: int, slots: int, state: int) -> int:
    """Return the elements of a recurrent layer's step; `state`: those of all slots' states."""
    copies = state if slots == 1 else 2 * state  # as it was and as it becomes
    if parameters.architecture in _DELTA_NET:
        return _delta_net(parameters, tokens, 0 if slots == 1 else state)
    if parameters.architecture == "minimax-01":
        heads = parameters.head_count[0]
        decays = 3 * heads * tokens // slots  # of each token of a sequence to each other
        return (5 * heads * parameters.head_length("key") + decays) * tokens + copies
    width = _RECURRENT.get(parameters.architecture)
    return 0 if width is None else width(parameters) * tokens + copies


def _delta_net(parameters: Hyperparameters, tokens: int, state: int) -> int:
    groups = parameters.whole("ssm.group_count") * parameters.whole("ssm.state_size")
    channels = parameters.whole("ssm.inner_size") + 2 * groups
    if 6 * parameters.embedding_length < channels:  # nothing of it fits where embeddings were freed
        return 3 * channels * tokens + 2 * state
    return 2 * channels * tokens + 2 * state + min(channels * tokens, state)


def _mamba(parameters: Hyperparameters) -> int:
    groups = parameters.whole("ssm.group_count", 0) * parameters.whole("ssm.state_size")
    return 5 * parameters.whole("ssm.inner_size") + 6 * groups


def _falcon_h1(parameters: Hyperparameters) -> int:
    return _mamba(parameters) + parameters.embedding_length  # attention's result is kept meanwhile


def _delta_attention(parameters: Hyperparameters) -> int:
    return 6 * parameters.head_count[0] * parameters.whole("kda.head_dim")


def _short_convolution(parameters: Hyperparameters) -> int:
    return 4 * parameters.embedding_length


def _rwkv6(parameters: Hyperparameters) -> int:
    return 10 * parameters.embedding_length


def _rwkv7(parameters: Hyperparameters) -> int:
    return 15 * parameters.embedding_length


_RECURRENT: dict[str, Callable[[Hyperparameters], int]] = {
    **dict.fromkeys(("mamba", "mamba2", "jamba", "granitehybrid", "nemotron_h", "nemotron_h_moe"), _mamba),
    "plamo2": _mamba,
    "falcon-h1": _falcon_h1,
    **dict.fromkeys(("kimi-linear", "kimi-k3", "bailingmoe3", "glm5-next"), _delta_attention),
    **dict.fromkeys(("lfm2", "lfm2moe"), _short_convolution),
    **dict.fromkeys(("rwkv6", "rwkv6qwen2"), _rwkv6),
    **dict.fromkeys(("rwkv7", "arwkv7"), _rwkv7),
}
