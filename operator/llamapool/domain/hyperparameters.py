"""The hyperparameters of a model, read from its GGUF metadata the way upstream's loader reads them.

Source: `llama_model_base::load_hparams` (llama-model.cpp) and `get_key_or_arr` (llama-model-loader.cpp) of
llama.cpp b11434.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from llamapool.domain.gguf import GgufError, OmittedArray, Value

MAX_LAYERS = 512
"""Upstream's LLAMA_MAX_LAYERS."""
_MAX_WHOLE = (1 << 32) - 1


@dataclass(frozen=True)
class Hyperparameters:
    """Typed access to the keys of one architecture; names are without the `ARCHITECTURE.` prefix.

    Every accessor raises `GgufError`, naming key and value, where a required key is absent or a value is not
    what upstream would take.

    Attributes:
        architecture: `general.architecture`.
        metadata: the key-value pairs of the file.
    """

    architecture: str
    metadata: Mapping[str, Value]

    @classmethod
    def of(cls, metadata: Mapping[str, Value]) -> "Hyperparameters":
        """Read the architecture, on which the names of all other keys depend.

        Raises:
            GgufError: `general.architecture` is absent or not a text.
        """
        architecture = metadata.get("general.architecture")
        if not isinstance(architecture, str) or not architecture:
            raise GgufError(f"general.architecture is {architecture!r}, not the name of an architecture")
        return cls(architecture, metadata)

    def whole(self, name: str, default: int | None = None) -> int:
        """Return a whole number; `default` where the key is absent, and None means that it is required."""
        value = self.metadata.get(self._key(name), default)
        return self._checked(name, value)

    def has(self, name: str) -> bool:
        """Whether the key is there."""
        return self._key(name) in self.metadata

    def is_array(self, name: str) -> bool:
        """Whether the key is there and holds an array."""
        return isinstance(self.metadata.get(self._key(name)), tuple | OmittedArray)

    def array(self, name: str) -> tuple[int, ...]:
        """Return an array of whole numbers (or of truth values, as 0 and 1); empty where absent."""
        value = self.metadata.get(self._key(name), ())
        if not isinstance(value, tuple):
            raise GgufError(f"{self._key(name)} is {value!r}, not an array of whole numbers")
        return tuple(self._checked(name, item) for item in value)

    def per_layer(
        self, name: str, default: int | tuple[int, ...] | None = None, *, layers: int | None = None
    ) -> tuple[int, ...]:
        """Return one whole number a layer; the file holds an array, or one value for all.

        Args:
            name: of the key.
            default: for every layer, where the key is absent; None: it is required.
            layers: how many there are; None: all, draft layers included.
        """
        count = self.layers_with_draft if layers is None else layers
        if not self.has(name) and isinstance(default, tuple):
            return default
        if not self.is_array(name):
            return (self.whole(name, default if isinstance(default, int) else None),) * count
        values = self.array(name)
        if len(values) != count:
            raise GgufError(f"{self._key(name)} has {len(values)} values, not one for each of {count} layers")
        return values

    @cached_property
    def layers_with_draft(self) -> int:
        """All layers of the file, the trailing draft (next-token prediction) layers included."""
        layers = self.whole("block_count")
        if not 0 < layers <= MAX_LAYERS:
            raise GgufError(f"{self._key('block_count')} is {layers}, not 1 to {MAX_LAYERS}")
        return layers

    @cached_property
    def layers(self) -> int:
        """The layers that every token passes through: all but the draft layers."""
        draft = self.whole("nextn_predict_layers", 0)
        if draft > self.layers_with_draft:
            raise GgufError(
                f"{self._key('nextn_predict_layers')} is {draft}; there are {self.layers_with_draft} layers"
            )
        return self.layers_with_draft - draft

    @cached_property
    def embedding_length(self) -> int:
        """Width of a token's embedding."""
        return self.whole("embedding_length")

    @cached_property
    def context_length(self) -> int:
        """Tokens of context that the model was trained on."""
        return self.whole("context_length")

    @cached_property
    def head_count(self) -> tuple[int, ...]:
        """Query heads of each layer."""
        return self.per_layer("attention.head_count", 0)

    @cached_property
    def head_count_kv(self) -> tuple[int, ...]:
        """Key-value heads of each layer; as many as query heads where the file does not say."""
        return self.per_layer("attention.head_count_kv", self.head_count)

    @cached_property
    def feed_forward_length(self) -> tuple[int, ...]:
        """Width of the feed-forward network of each layer; 0: it has none."""
        return self.per_layer("feed_forward_length", 0)

    def head_length(self, part: str, *, sliding: bool = False) -> int:
        """Return the width of a head: of the `key` or the `value`, in full or in sliding-window attention."""
        full = 0
        if self.head_count[0]:
            full = self.whole(f"attention.{part}_length", self.embedding_length // self.head_count[0])
        elif self.architecture == "plamo2":  # the one that has the key though its first layer has no heads
            full = self.whole(f"attention.{part}_length", 0)
        return self.whole(f"attention.{part}_length_swa", full) if sliding else full

    @property
    def has_latent_attention(self) -> bool:
        """Whether attention is multi-head latent attention (MLA), whose cache holds no values."""
        return all(self.whole(f"attention.{part}_length_mla", 0) for part in ("key", "value"))

    def _key(self, name: str) -> str:
        return f"{self.architecture}.{name}"

    def _checked(self, name: str, value: Value | None) -> int:
        if value is None:
            raise GgufError(f"{self._key(name)} is absent; {self.architecture} needs it")
        if not isinstance(value, int) or not 0 <= value <= _MAX_WHOLE:
            raise GgufError(f"{self._key(name)} is {value!r}, not a whole number up to {_MAX_WHOLE}")
        return int(value)
