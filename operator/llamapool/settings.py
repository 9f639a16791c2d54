"""The operator's settings: read once at the start from environment and command line, never at import."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from llamapool.domain.election import LeaseSettings
from llamapool.errors import InvalidFieldError

_HIGHEST_PORT = 65535


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What is logged, and how."""

    format: str = "plain"
    """`plain` for people, `json` for collectors (LLAMAPOOL_LOG_FORMAT)."""

    level: str = "INFO"
    """Least level that is logged: DEBUG, INFO, WARNING or ERROR (LLAMAPOOL_LOG_LEVEL)."""


@dataclass(frozen=True, kw_only=True)
class PortSettings:
    """The ports that the operator listens on."""

    metrics: int = 9090
    """Prometheus metrics (LLAMAPOOL_METRICS_PORT)."""

    health: int = 8081
    """Liveness, at /healthz (LLAMAPOOL_HEALTH_PORT)."""

    status: int | None = None
    """The status page (LLAMAPOOL_STATUS_PORT); None: there is none."""


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How often models are looked at."""

    interval_seconds: float = 5.0
    """Longest time between two looks at a model."""

    concurrency: int = 8
    """Models looked at in the same moment."""

    scrape_timeout_seconds: float = 2.0
    """Longest wait for a server's metrics."""

    request_timeout_seconds: float = 15.0
    """Longest wait for an answer of the Kubernetes API."""

    figures_interval_seconds: float = 60.0
    """Least time between two status writes in which only figures moved."""

    ttft_window_seconds: float = 300.0
    """How far back the time to first token in status looks."""


@dataclass(frozen=True, kw_only=True)
class ElectionSettings:
    """Which Lease says that this replica acts."""

    namespace: str = ""
    """Namespace of the Lease (first part of LLAMAPOOL_LEASE, NAMESPACE/NAME); empty: no election."""

    name: str = ""
    """Name of the Lease (second part of LLAMAPOOL_LEASE)."""

    identity: str = field(default_factory=socket.gethostname)
    """What this replica is called in it (LLAMAPOOL_IDENTITY); default: the host's name."""

    lease: LeaseSettings = field(default_factory=LeaseSettings)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set about the operator."""

    server_image: str
    """Image of llama-server where a model names none (LLAMAPOOL_SERVER_IMAGE)."""

    operator_image: str
    """Image of the init container of model pods, the operator's own (LLAMAPOOL_OPERATOR_IMAGE)."""

    namespaces: tuple[str, ...] = ()
    """Namespaces that are watched; empty: all (LLAMAPOOL_NAMESPACES, comma-separated)."""

    scrape_annotations: bool = True
    """Whether Services of models ask to be scraped, for a Prometheus that goes by annotations
    (LLAMAPOOL_SCRAPE_ANNOTATIONS, true or false)."""

    log: LogSettings = field(default_factory=LogSettings)
    ports: PortSettings = field(default_factory=PortSettings)
    election: ElectionSettings = field(default_factory=ElectionSettings)
    loop: LoopSettings = field(default_factory=LoopSettings)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Raises:
            InvalidFieldError: a variable is missing or cannot be used; names it, its value and what is right.
        """
        namespaces = environment.get("LLAMAPOOL_NAMESPACES", "").split(",")
        return cls(
            server_image=_required(
                environment,
                "LLAMAPOOL_SERVER_IMAGE",
                "must name the default image of the pooled llama-server",
            ),
            operator_image=_required(
                environment,
                "LLAMAPOOL_OPERATOR_IMAGE",
                "must name the operator's own image, which fetches models",
            ),
            namespaces=tuple(namespace.strip() for namespace in namespaces if namespace.strip()),
            scrape_annotations=_choice(environment, "LLAMAPOOL_SCRAPE_ANNOTATIONS", ("true", "false"), "true")
            == "true",
            log=LogSettings(
                format=_choice(environment, "LLAMAPOOL_LOG_FORMAT", ("plain", "json"), "plain"),
                level=_choice(
                    environment, "LLAMAPOOL_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO"
                ),
            ),
            ports=PortSettings(
                metrics=_port(environment, "LLAMAPOOL_METRICS_PORT", PortSettings.metrics),
                health=_port(environment, "LLAMAPOOL_HEALTH_PORT", PortSettings.health),
                status=_port(environment, "LLAMAPOOL_STATUS_PORT", 0)
                if environment.get("LLAMAPOOL_STATUS_PORT")
                else None,
            ),
            election=_election(environment),
        )


def _required(environment: Mapping[str, str], name: str, expected: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise InvalidFieldError(name, value, expected)
    return value


def _election(environment: Mapping[str, str]) -> ElectionSettings:
    lease = environment.get("LLAMAPOOL_LEASE", "")
    namespace, slash, name = lease.partition("/")
    if lease and not (namespace and slash and name and "/" not in name):
        raise InvalidFieldError("LLAMAPOOL_LEASE", lease, "must be NAMESPACE/NAME, or empty for no election")
    return ElectionSettings(
        namespace=namespace,
        name=name,
        identity=environment.get("LLAMAPOOL_IDENTITY") or socket.gethostname(),
    )


def _choice(environment: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    value = environment.get(name) or default
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise InvalidFieldError(name, value, f"must be one of {', '.join(choices)}")


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    value = environment.get(name) or str(default)
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= _HIGHEST_PORT:
        raise InvalidFieldError(name, value, f"must be a port, 1 to {_HIGHEST_PORT}")
    return int(value)
