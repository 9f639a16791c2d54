"""The errors of llamapool.

LlamapoolError
├── InvalidFieldError       a value of a HybridModel, a quantity or a setting that cannot be used
│   └── UnsupportedFieldError   a valid value that this release does not act on
├── LimitsFileError         a limits.json or record.json that cannot be read back
├── FactsMessageError       an init container's message that holds no facts of a model
├── ScrapeError             a server's metrics that could not be fetched or understood
├── GgufError               a header that is not one of a GGUF file (domain/gguf.py)
│   └── GgufTruncatedError
├── ModelFileError          a model file that could not be read (adapters/gguf_header.py)
├── OutdatedSchemaError     the cluster's CustomResourceDefinition is older than this operator
├── FetchError              a model's file that cannot be brought into place
│   └── TransferInterruptedError   a transfer that may succeed when it is tried again
└── ClusterError            an answer of the Kubernetes API other than success
    ├── NotFoundError
    ├── ConflictError       somebody wrote first, or the object exists already
    ├── OwnershipError      an object of the wanted name belongs to somebody else
    └── NotLeadingError     a write of a replica that does not lead
"""


class LlamapoolError(Exception):
    """Base of every error that llamapool raises on purpose."""


class InvalidFieldError(LlamapoolError, ValueError):
    """A field whose value cannot be used: names the field, the value, and what would be right.

    Attributes:
        field: path of the field, such as `spec.pool.cap`.
        value: the value found there.
        expected: what would be right, as the end of a sentence.
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(f"{field}: {value!r} {expected}")
        self.field = field
        self.value = value
        self.expected = expected


class UnsupportedFieldError(InvalidFieldError):
    """A value that the API allows and this release does not act on; refused rather than ignored."""


class LimitsFileError(LlamapoolError, ValueError):
    """A limits.json or record.json whose text is not what llamapool writes."""


class FactsMessageError(LlamapoolError, ValueError):
    """A termination message that is not the facts of a model as llamapool writes them."""


class OutdatedSchemaError(LlamapoolError):
    """The API server drops fields that this operator reads or writes; says which, and what to do."""


class FetchError(LlamapoolError):
    """A model's file cannot be brought into place: refused, wrong, or no room for it."""


class TransferInterruptedError(FetchError):
    """A transfer ended before it was complete; another try may go on from there.

    Attributes:
        after_seconds: how long the server asks to wait before it; None: it does not say.
    """

    def __init__(self, message: str, *, after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds


class ScrapeError(LlamapoolError):
    """A server's metrics could not be had.

    Attributes:
        reason: a CamelCase word for conditions and metric labels, such as `Timeout`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ClusterError(LlamapoolError):
    """The Kubernetes API answered with something other than success.

    Attributes:
        status: the HTTP status; 0 where there was no answer.
        reason: the API's own reason, such as `Forbidden`; `Unreachable` where there was no answer.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class NotFoundError(ClusterError):
    """The object does not exist."""


class ConflictError(ClusterError):
    """The object was changed since it was read, or exists already."""


class OwnershipError(ClusterError):
    """An object of the wanted name exists and belongs to somebody else."""


class NotLeadingError(ClusterError):
    """This replica of the operator does not lead, so it must not write."""
