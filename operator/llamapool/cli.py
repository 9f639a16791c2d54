"""The command line."""

import json
import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
import yaml

from llamapool.api import KIND, parse_model
from llamapool.console import commands
from llamapool.domain.decide import decide
from llamapool.domain.facts import Facts
from llamapool.errors import InvalidFieldError, LlamapoolError
from llamapool.fetch_command import fetch
from llamapool.manifests.common import Images, Manifest
from llamapool.manifests.configmap import limits_configmap
from llamapool.manifests.deployment import deployment
from llamapool.manifests.disruption import disruption_budget
from llamapool.manifests.fetch import cache_claim
from llamapool.manifests.service import service
from llamapool.settings import Settings

app = typer.Typer(
    help="Serve hybrid and recurrent GGUF models on Kubernetes within one plan for their memory.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(commands.app)
app.command()(fetch)


class Output(StrEnum):
    """How objects are printed."""

    YAML = "yaml"
    JSON = "json"


@app.command()
def operator(
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Watch this namespace; repeat it for several. Default: LLAMAPOOL_NAMESPACES, or all."
        ),
    ] = None,
) -> None:
    """Run the operator until it is told to stop.

    Example: LLAMAPOOL_SERVER_IMAGE=llamapool/llama-server LLAMAPOOL_OPERATOR_IMAGE=llamapool/operator
    llamapool operator --namespace models
    """
    # Only this command needs kopf and the Kubernetes client, which take a second to import.
    from llamapool import handlers  # noqa: PLC0415

    environment = dict(os.environ)
    if namespace:
        environment["LLAMAPOOL_NAMESPACES"] = ",".join(namespace)
    handlers.run(Settings.from_environment(environment))


@app.command()
def render(
    file: Annotated[
        typer.FileText,
        typer.Argument(encoding="utf-8", help="A manifest of HybridModels; - reads standard input."),
    ],
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.YAML,
    server_image: Annotated[
        str,
        typer.Option(envvar="LLAMAPOOL_SERVER_IMAGE", help="Image where a model names none."),
    ] = "llamapool/llama-server",
    operator_image: Annotated[
        str, typer.Option(envvar="LLAMAPOOL_OPERATOR_IMAGE", help="Image that fetches models.")
    ] = "llamapool/operator",
) -> None:
    """Print the objects that the operator would create for new HybridModels; needs no cluster.

    Example: llamapool render hybridmodel.yaml -o yaml | kubectl diff -f -
    """
    images = Images(server=server_image, operator=operator_image)
    objects = [made for body in _models(file.read(), file.name) for made in objects_of(body, images)]
    if output is Output.JSON:
        typer.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))
    else:
        typer.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(installed_version("llamapool"))


def objects_of(body: Mapping[str, Any], images: Images) -> list[Manifest]:
    """Return what the operator creates for a HybridModel that is new to it, in that order.

    Raises:
        InvalidFieldError: a field cannot be used.
    """
    model = parse_model(body)
    facts = Facts(
        model_uid=model.uid,
        shape=model.shape,
        policy=model.pool,
        written=None,
        record=None,
        workload=None,
        pods=(),
    )
    decision = decide(facts, now="1970-01-01T00:00:00Z")
    return [
        limits_configmap(model, decision.limits, decision.record),
        service(model, scrape_annotations=True),
        *([] if (claim := cache_claim(model)) is None else [claim]),
        deployment(model, images),
        disruption_budget(model),
    ]


def main() -> None:
    """Run the command line; an expected error is one line on standard error and exit code 1."""
    try:
        app()
    except LlamapoolError as error:
        typer.echo(f"llamapool: {error}", err=True)
        raise SystemExit(1) from error


def _models(text: str, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the HybridModels of a YAML text; a List is opened."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise InvalidFieldError(name, str(error), "is not YAML") from error
    for document in documents:
        items = document.get("items", []) if _kind(document) == "List" else [document]
        for item in items:
            if item is None:
                continue
            if _kind(item) != KIND:
                raise InvalidFieldError(f"{name}: kind", _kind(item), f"must be {KIND}")
            yield item


def _kind(document: Any) -> Any:
    return document.get("kind") if isinstance(document, Mapping) else None
