"""What a server needs in host memory beside the state of its conversations, predicted before it starts.

base = weights neither offloaded nor memory-mapped + host share of keys and values + host share of recurrent
state + compute buffer + overhead: what is reserved once and never grows. Checkpoints and cached prompts are
the state budget's.

Source: `llama_model::load_tensors` (llama-model.cpp: what is offloaded), `output_reserve` and
`graph_max_nodes` (llama-context.cpp) of llama.cpp b11434; the overhead was measured on its llama-server.
"""

from dataclasses import dataclass, fields

from llamapool.domain.compute_buffer import compute_bytes, graph_nodes, input_bytes, work_bytes
from llamapool.domain.context import ContextFlags, ContextLayout, context_layout
from llamapool.domain.model_facts import ModelFacts, WeightBytes
from llamapool.domain.sequence_memory import SequenceMemory

PROCESS_BYTES = 5 << 20
"""Of a server without a model: libraries' data, threads, HTTP."""
TOKEN_BYTES = 300
"""For each token of the vocabulary: its text, its merge, and the tables that find them."""
CANDIDATE_BYTES = 12
"""For each token of the vocabulary and each slot: the token's probability while one is chosen."""
NODE_BYTES = 1204
"""For each node that a graph may have, in the graphs that are kept for reuse and in the scheduler."""
_FLOAT_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class BasePrediction:
    """Host memory by what it is for, in bytes.

    Attributes:
        weights: neither offloaded nor memory-mapped.
        keys_values: of attention layers that are not offloaded.
        recurrent_state: that the context keeps, of recurrent layers that are not offloaded.
        compute: intermediate and converted results of a batch, its inputs, and the logits.
        overhead: the process, the tables of the vocabulary, and the graphs.
    """

    weights: int
    keys_values: int
    recurrent_state: int
    compute: int
    overhead: int

    @property
    def total(self) -> int:
        """The base."""
        return sum(getattr(self, part.name) for part in fields(self))


def predict_base(facts: ModelFacts, flags: ContextFlags) -> BasePrediction | None:
    """Predict the base of a server.

    The device runtime's own host memory is not in it: where layers are offloaded, the first measured base
    tells.

    Args:
        facts: of the model.
        flags: of the server.

    Returns:
        The prediction; None: the architecture is not known, or only the first of the model's files was read.

    Raises:
        GgufError: a key is absent or out of range.
        ValueError: a cache type does not fit the model's widths.
    """
    memory = facts.memory
    if memory is None or facts.weights is None:
        return None
    layout = context_layout(flags, memory, facts.context_length)
    first = _first_offloaded(facts, flags)
    cached = first if flags.offload_cache else facts.layers
    if first > 0:
        compute = compute_bytes(facts, memory, flags, layout) + work_bytes(facts, layout)
    else:
        embeddings = _FLOAT_BYTES * facts.parameters.embedding_length * layout.batch_tokens
        compute = input_bytes(memory, layout) + embeddings
    logits = _FLOAT_BYTES * facts.vocabulary * flags.slots
    return BasePrediction(
        weights=_host_weights(facts, flags, first),
        keys_values=_keys_values(memory, flags, layout, cached),
        recurrent_state=flags.slots
        * sum(row.size_bytes for layer, row in memory.recurrent.items() if layer < cached),
        compute=compute + logits,
        overhead=PROCESS_BYTES
        + (TOKEN_BYTES + CANDIDATE_BYTES * flags.slots) * facts.vocabulary
        + NODE_BYTES * graph_nodes(facts, layout),
    )


def _first_offloaded(facts: ModelFacts, flags: ContextFlags) -> int:
    """Return the first layer that is offloaded; the output counts as one after the last layer."""
    if flags.gpu_layers is None:
        return 0
    return max(0, facts.layers + 1 - flags.gpu_layers)


def _host_weights(facts: ModelFacts, flags: ContextFlags, first_offloaded: int) -> int:
    weights = facts.weights
    if weights is None:
        return 0
    host = sum((part for layer, part in weights.layers.items() if layer < first_offloaded), WeightBytes())
    copied = host.repacked
    if first_offloaded > facts.layers:
        host += weights.output
        copied = host.repacked + weights.tied_output.repacked
    if flags.mmap:
        return copied if flags.repack else 0
    # Repacked weights take the place of what was read; only the tied matrix is there twice.
    again = copied - host.repacked if flags.repack else 0
    return weights.input.total + host.total + again


def _keys_values(memory: SequenceMemory, flags: ContextFlags, layout: ContextLayout, cached: int) -> int:
    size_bytes = 0
    for layer, row in memory.attention.items():
        if layer < cached:
            cells = layout.window_cells if row.sliding else layout.cells
            size_bytes += row.token_bytes(flags.cache_types) * cells * layout.streams
    return size_bytes
