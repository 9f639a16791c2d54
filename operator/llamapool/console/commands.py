"""`llamapool status`, `explain`, `top` and `trial`: with the credentials of kubectl."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from llamapool.api import TRIAL_ANNOTATION
from llamapool.errors import NotFoundError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from llamapool.adapters.cluster import KubernetesCluster, Manifest
    from llamapool.domain.facts import ServerSample

app = typer.Typer()
_TIMEOUT_SECONDS = 15.0
_WIDTH_WITHOUT_TERMINAL = 200


class Output(StrEnum):
    """How what was found is printed."""

    TABLE = "table"
    JSON = "json"


Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace. Default: that of the current context."),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Models of all namespaces.")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: the current one.")]
OneName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="One model, in detail.")]


@app.command()
def status(
    name: OneName = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,  # noqa: FBT002 - a flag
    context: Context = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TABLE,
) -> None:
    """Show how models are: all of them in a table, or one in detail.

    Example: kubectl llamapool status --all-namespaces
    """
    from llamapool.console import tables  # noqa: PLC0415 - rich and the client take a second to import

    cluster = _connect(context)
    now = datetime.now(UTC)
    found = _models(cluster, name, namespace, all_namespaces=all_namespaces)
    if output is Output.JSON:
        typer.echo(
            json.dumps(found[0] if name else {"apiVersion": "v1", "kind": "List", "items": found}, indent=2)
        )
    elif name is not None:
        _print(tables.one(found[0], now=now))
    elif found:
        _print(tables.fleet(found, now=now, namespaces=all_namespaces))
    else:
        typer.echo("no HybridModels found", err=True)


@app.command()
def top(
    name: OneName = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,  # noqa: FBT002 - a flag
    context: Context = None,
) -> None:
    """Show what each server reports now: memory, state, pool, time to first token since its start.

    The figures come from the servers themselves, through the API server: that takes the right to get
    pods/proxy.

    Example: kubectl llamapool top --namespace models
    """
    from llamapool.console import tables  # noqa: PLC0415 - rich and the client take a second to import

    cluster = _connect(context)
    found = list(_samples(cluster, _models(cluster, name, namespace, all_namespaces=all_namespaces)))
    if found:
        _print(tables.usage(found))
    else:
        typer.echo("no pods of HybridModels found", err=True)


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="The model.")],
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Explain one model: what is wrong with it, how its memory is planned, what was decided and why.

    Example: kubectl llamapool explain qwen3-5-27b
    """
    from llamapool.console.explain import explain as text_of  # noqa: PLC0415 - as above

    cluster = _connect(context)
    (model,) = _models(cluster, name, namespace, all_namespaces=False)
    typer.echo(text_of(model, now=datetime.now(UTC)))


@app.command()
def trial(
    name: Annotated[str, typer.Argument(help="The model.")],
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Ask for a trial: the pool on and off in alternation, under the traffic that comes.

    Example: kubectl llamapool trial qwen3-5-27b
    """
    cluster = _connect(context)
    (model,) = _models(cluster, name, namespace, all_namespaces=False)
    metadata = model["metadata"]
    cluster.annotate("HybridModel", metadata["namespace"], name, {TRIAL_ANNOTATION: _asked_now()})
    typer.echo(
        f"trial of {metadata['namespace']}/{name} asked for; follow it with: kubectl llamapool status {name}"
    )


def _asked_now() -> str:
    """Return a word that no earlier request used: the same word again would not be a new request."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _connect(context: str | None) -> "KubernetesCluster":
    from llamapool.adapters.cluster import KubernetesCluster  # noqa: PLC0415 - takes a second to import

    return KubernetesCluster(request_timeout_seconds=_TIMEOUT_SECONDS, context=context)


def _models(
    cluster: "KubernetesCluster", name: str | None, namespace: str | None, *, all_namespaces: bool
) -> list["Manifest"]:
    """Return the models that were asked for, ordered by namespace and name.

    Raises:
        NotFoundError: there is none of that name.
    """
    where = None if all_namespaces and name is None else namespace or cluster.namespace
    if name is not None:
        found = cluster.get("HybridModel", where or "default", name)
        if found is None:
            raise NotFoundError(404, "NotFound", f"there is no HybridModel {name} in namespace {where}")
        return [found]
    return sorted(
        cluster.list("HybridModel", where),
        key=lambda model: (model["metadata"]["namespace"], model["metadata"]["name"]),
    )


def _samples(
    cluster: "KubernetesCluster", models: list["Manifest"]
) -> Iterator[tuple[str, str, str, "ServerSample | str"]]:
    from llamapool.adapters.scrape import parse_sample  # noqa: PLC0415 - as above
    from llamapool.errors import ClusterError, ScrapeError  # noqa: PLC0415 - as above
    from llamapool.manifests.common import METRICS_PORT, MODEL_LABEL  # noqa: PLC0415 - as above

    for model in models:
        namespace, name = model["metadata"]["namespace"], model["metadata"]["name"]
        for pod in cluster.list("Pod", namespace, f"{MODEL_LABEL}={name}"):
            pod_name = pod["metadata"]["name"]
            try:
                text = cluster.pod_page(namespace, pod_name, METRICS_PORT, "metrics")
                sample: ServerSample | str = parse_sample(text)
            except (ClusterError, ScrapeError) as error:
                sample = str(getattr(error, "reason", error))
            yield namespace, name, pod_name, sample


def _print(shown: "RenderableType") -> None:
    """Print to a terminal in its width and colours, else in full width and plain."""
    from rich.console import Console  # noqa: PLC0415 - as above

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)
    console.print(shown)
