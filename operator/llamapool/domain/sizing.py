"""What a server will need, before it starts: from the facts of its model and its flags."""

from dataclasses import dataclass, replace

from llamapool.domain.context import ContextFlags, context_layout
from llamapool.domain.facts_message import FetchedModel
from llamapool.domain.gguf import GgufError
from llamapool.domain.memory import MemoryPlan
from llamapool.domain.model_facts import ModelFacts
from llamapool.domain.prediction import PROCESS_BYTES, BasePrediction, predict_base
from llamapool.domain.quantity import format_bytes
from llamapool.domain.sequence_memory import CacheTypes
from llamapool.domain.server_flags import ServerFlags


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a server needs in host memory.

    Attributes:
        base: by what it is for; None: not known, will be measured.
        checkpoint_bytes: data of one checkpoint, with every window full; 0: it makes none; None: not known,
            will be measured.
        grows: whether a checkpoint is smaller while a sliding window is not full.
        offloaded: whether layers are on a device, whose runtime takes host memory that no prediction has.
        unknown: why base or checkpoint is not known, for people; empty where both are.
    """

    base: BasePrediction | None = None
    checkpoint_bytes: int | None = None
    grows: bool = False
    offloaded: bool = False
    unknown: str = ""

    @property
    def base_bytes(self) -> int | None:
        """The base; None: not known."""
        return None if self.base is None else self.base.total


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a user set for state; None: left to llamapool.

    Attributes:
        cache_ram_bytes: `spec.server.cacheRAM`.
        ctx_checkpoints: `spec.server.ctxCheckpoints`.
        pool_cap_bytes: `spec.pool.cap`.
        embedding: whether the server only embeds or reranks.
    """

    cache_ram_bytes: int | None = None
    ctx_checkpoints: int | None = None
    pool_cap_bytes: int | None = None
    embedding: bool = False


def predict_need(model: FetchedModel, flags: ServerFlags, *, ctx_checkpoints: int | None = None) -> Need:
    """Predict what a server needs.

    Args:
        model: that it serves, with its draft model and projector.
        flags: of the server.
        ctx_checkpoints: `--ctx-checkpoints`; None: upstream's default.
    """
    try:
        checkpoint_bytes = _checkpoint_bytes(model.facts, flags.context)
        base = predict_base(model.facts, flags.context)
        if model.draft is not None and base is not None:
            draft = predict_base(model.draft, replace(flags.context, cache_types=CacheTypes()))
            base = None if draft is None else _joined(base, draft)
            of_draft = _checkpoint_bytes(model.draft, flags.context)
            if checkpoint_bytes is not None:
                checkpoint_bytes = None if of_draft is None else checkpoint_bytes + of_draft
    except (GgufError, ValueError) as error:
        return Need(unknown=f"{error}; will be measured")
    if base is not None and model.projector_bytes is not None:
        base = replace(base, weights=base.weights + model.projector_bytes)  # it is read, never mapped
    grows = model.facts.memory is not None and model.facts.memory.window > 0
    if ctx_checkpoints == 0:
        checkpoint_bytes = 0
    if flags.unpredicted:
        unknown = f"{', '.join(flags.unpredicted)}: its memory is not predicted, and will be measured"
        return Need(checkpoint_bytes=checkpoint_bytes, grows=grows, unknown=unknown)
    unknown = _unknown(model, base, checkpoint_bytes)
    return Need(
        base=base,
        checkpoint_bytes=checkpoint_bytes,
        grows=grows,
        offloaded=flags.context.gpu_layers != 0,
        unknown=unknown,
    )


def prices(plan: MemoryPlan, asked: Asked, slots: int) -> tuple[str, ...]:
    """Say what each value that a user set costs: it wins, within the server's own bound."""
    said = []
    budget_bytes, buffer_bytes = plan.state_budget_bytes, plan.buffer_bytes
    if asked.cache_ram_bytes and asked.embedding:
        cache = format_bytes(asked.cache_ram_bytes)
        useless = "serves nothing where prompts are only embedded or ranked; remove it"
        said.append(f"spec.server.cacheRAM of {cache} {useless}")
    if budget_bytes is None:
        return tuple(said)
    for name, size_bytes in (
        ("spec.server.cacheRAM", asked.cache_ram_bytes),
        ("spec.pool.cap", asked.pool_cap_bytes),
    ):
        if size_bytes is not None and size_bytes > budget_bytes:
            size, budget = format_bytes(size_bytes), format_bytes(budget_bytes)
            said.append(f"{name} of {size} is over the state budget of {budget}, which bounds it")
    if asked.ctx_checkpoints and buffer_bytes:
        wanted = slots * asked.ctx_checkpoints
        if wanted * buffer_bytes > budget_bytes:
            said.append(
                f"spec.server.ctxCheckpoints of {asked.ctx_checkpoints} would take"
                f" {format_bytes(wanted * buffer_bytes)} for {slots} slots; the budget holds"
                f" {budget_bytes // buffer_bytes} of {wanted} checkpoints, and older ones are given up"
            )
    return tuple(said)


def _checkpoint_bytes(facts: ModelFacts, flags: ContextFlags) -> int | None:
    if facts.memory is None:
        return None
    streams = context_layout(flags, facts.memory, facts.context_length).streams
    return facts.memory.checkpoint_bytes(flags.cache_types, streams=streams)


def _joined(base: BasePrediction, draft: BasePrediction) -> BasePrediction:
    return BasePrediction(
        weights=base.weights + draft.weights,
        keys_values=base.keys_values + draft.keys_values,
        recurrent_state=base.recurrent_state + draft.recurrent_state,
        compute=base.compute + draft.compute,
        overhead=base.overhead + draft.overhead - PROCESS_BYTES,  # one process serves both
    )


def _unknown(model: FetchedModel, base: BasePrediction | None, checkpoint_bytes: int | None) -> str:
    if base is not None and checkpoint_bytes is not None:
        return ""
    for facts in (model.facts, model.draft):
        if facts is not None and facts.memory is None:
            return f"architecture {facts.architecture} is not known; its figures will be measured"
    return "only the first of the model's files was read; its weights will be measured"
