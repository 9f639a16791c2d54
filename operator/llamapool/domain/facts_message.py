"""A model's facts as one line of JSON: what the init container leaves as its termination message.

A pod's status keeps at most 4,096 bytes of it. So beside the figures for people it holds only what the memory
plan is predicted from: the whole-number hyperparameters of the architecture, and the weights by layer, both
with repeated values written once.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llamapool.domain.architectures import sequence_memory
from llamapool.domain.gguf import Value
from llamapool.domain.hyperparameters import Hyperparameters
from llamapool.domain.model_facts import ModelFacts, WeightBytes, Weights
from llamapool.errors import FactsMessageError

MAX_MESSAGE_BYTES = 4096
"""What the kubelet keeps of a container's termination message."""
VERSION = 1

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOT_OF_MEMORY = ("rope.", "tokenizer.", "vocab_size")


@dataclass(frozen=True, kw_only=True)
class FetchedModel:
    """A model whose files are in place, with their facts.

    Attributes:
        sha256: of its (first) file, in lower-case hexadecimal; None: it was not computed.
        facts: of the model.
        draft: of the draft model; None: there is none.
        projector_bytes: weights of the multimodal projector; None: there is none.
    """

    sha256: str | None
    facts: ModelFacts
    draft: ModelFacts | None = None
    projector_bytes: int | None = None


def to_message(model: FetchedModel, *, spec: str | None = None) -> str:
    """Write the message; of a model too unusual to fit, the figures for people alone.

    Args:
        model: the model.
        spec: identifies what was asked for, so that the facts of another model are not taken for these.
    """
    head = (
        {"v": VERSION, "sha256": model.sha256}
        if spec is None
        else {"v": VERSION, "spec": spec, "sha256": model.sha256}
    )
    message = {**head, **_written(model.facts)}
    if model.draft is not None:
        message["draft"] = _written(model.draft)
    if model.projector_bytes is not None:
        message["projector_bytes"] = model.projector_bytes
    text = json.dumps(message, separators=(",", ":"))
    if len(text.encode()) <= MAX_MESSAGE_BYTES:
        return text
    summary = {**head, "file_bytes": model.facts.file_bytes, **model.facts.summary()}
    return json.dumps(summary, separators=(",", ":"))


def to_error_message(error: str) -> str:
    """Write the message of an init container that failed; a long error loses its middle."""
    for kept in range(len(error), 0, -64):
        text = error if kept == len(error) else f"{error[: kept // 2]} … {error[len(error) - kept // 2 :]}"
        message = json.dumps({"v": VERSION, "error": text}, separators=(",", ":"), ensure_ascii=False)
        if len(message.encode()) <= MAX_MESSAGE_BYTES:
            return message
    return json.dumps({"v": VERSION, "error": "?"})


def from_message(text: str) -> FetchedModel | None:
    """Read a message back.

    Returns:
        The model; None where the message has the figures for people alone.

    Raises:
        FactsMessageError: it is not such a message; names the part and what is wrong with it.
    """
    try:
        message = json.loads(text)
    except json.JSONDecodeError as error:
        raise FactsMessageError(f"the facts are not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("v") != VERSION:
        raise FactsMessageError(f"the facts are not of version {VERSION}: {text[:80]!r}")
    return from_status(message)


def from_status(values: Mapping[str, Any]) -> FetchedModel | None:
    """Read what `to_message` wrote, as status keeps it; None: the figures for people alone.

    Raises:
        FactsMessageError: a part is missing or of another kind; names it.
    """
    if "keys" not in values:
        return None
    try:
        draft = values.get("draft")
        sha256, projector_bytes = values.get("sha256"), values.get("projector_bytes")
        return FetchedModel(
            sha256=None if sha256 is None else str(sha256),
            facts=_read(values),
            draft=None if draft is None else _read(draft),
            projector_bytes=None if projector_bytes is None else int(projector_bytes),
        )
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise FactsMessageError(f"the facts cannot be read: {type(error).__name__}: {error}") from error


def _written(facts: ModelFacts) -> dict[str, Any]:
    prefix = f"{facts.architecture}."
    keys = {
        name.removeprefix(prefix): _folded(value) if isinstance(value, tuple) else value
        for name, value in facts.parameters.metadata.items()
        if name.startswith(prefix)
        and not name.removeprefix(prefix).startswith(_NOT_OF_MEMORY)
        and _is_whole(value)
    }
    return {
        "file_bytes": facts.file_bytes,
        **facts.summary(),
        "vocabulary": facts.vocabulary,
        "keys": keys,
        "weights": None if facts.weights is None else _written_weights(facts.weights),
    }


def _read(values: Mapping[str, Any]) -> ModelFacts:
    architecture = str(values["architecture"])
    metadata: dict[str, Value] = {"general.architecture": architecture}
    for name, value in values["keys"].items():
        whole = isinstance(value, int)
        metadata[f"{architecture}.{name}"] = value if whole else tuple(int(each) for each in _unfolded(value))
    parameters = Hyperparameters.of(metadata)
    return ModelFacts(
        architecture=architecture,
        parameters=parameters,
        memory=sequence_memory(parameters),
        weights=None if values["weights"] is None else _read_weights(values["weights"]),
        vocabulary=int(values["vocabulary"]),
        file_bytes=int(values["file_bytes"]),
    )


def _is_whole(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(each, int) for each in value)
    return isinstance(value, int)


def _written_weights(weights: Weights) -> dict[str, Any]:
    last = max(weights.layers, default=-1)
    by_layer = [_pair(weights.layers.get(layer, WeightBytes())) for layer in range(last + 1)]
    return {
        "input": _pair(weights.input),
        "layers": _folded(by_layer),
        "output": _pair(weights.output),
        "tied": _pair(weights.tied_output),
        "tensors": weights.tensors,
        "row": weights.converted_row_bytes,
    }


def _read_weights(values: Mapping[str, Any]) -> Weights:
    layers = {layer: _weight(pair) for layer, pair in enumerate(_unfolded(values["layers"]))}
    return Weights(
        input=_weight(values["input"]),
        layers={layer: weight for layer, weight in layers.items() if weight.total},
        output=_weight(values["output"]),
        tied_output=_weight(values["tied"]),
        tensors=int(values["tensors"]),
        converted_row_bytes=int(values["row"]),
    )


def _pair(weight: WeightBytes) -> tuple[int, int]:
    return weight.total, weight.repacked


def _weight(pair: Sequence[int]) -> WeightBytes:
    total, repacked = pair
    return WeightBytes(total=int(total), repacked=int(repacked))


def _folded(values: Sequence[Hashable]) -> dict[str, Any]:
    """Write each distinct value once, and one digit for each place that it stands at."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) > len(_DIGITS):
        return {"of": list(values)}
    return {"of": distinct, "at": "".join(_DIGITS[distinct.index(value)] for value in values)}


def _unfolded(folded: Mapping[str, Any]) -> list[Any]:
    distinct: list[Any] = folded["of"]
    return distinct if "at" not in folded else [distinct[_DIGITS.index(digit)] for digit in folded["at"]]
