"""The command line."""

import json
import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

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
    _print(objects, output)


@app.command()
def plan(  # noqa: PLR0917 - typer reads the signature
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL|hf:REPO/FILE",
            help="A GGUF file: a path, an http(s) address, or hf:OWNER/REPO[@REVISION]/FILE.gguf.",
        ),
    ],
    limit: Annotated[str | None, typer.Option(help="Memory limit of the pod, such as 16Gi.")] = None,
    slots: Annotated[int, typer.Option(min=1, max=256, help="Requests served at once.")] = 4,
    context: Annotated[
        int,
        typer.Option(min=0, help="Tokens of context of all slots; 0: as many as the model was trained on."),
    ] = 0,
    gpu_layers: Annotated[
        str | None,
        typer.Option(help="Layers on the device: a number, auto or all; omitted: there is no device."),
    ] = None,
    mmap: Annotated[  # noqa: FBT002 - a switch
        bool, typer.Option(help="Map the weights; they are page cache then.")
    ] = True,
    cache_type_k: Annotated[str, typer.Option(help="Type of cached keys, such as q8_0.")] = "f16",
    cache_type_v: Annotated[str, typer.Option(help="Type of cached values.")] = "f16",
    ubatch_size: Annotated[int, typer.Option(min=1, help="Tokens computed at once.")] = 512,
    embedding: Annotated[  # noqa: FBT002 - a switch
        bool, typer.Option("--embedding", help="An embedding or rerank server.")
    ] = False,
    cache_ram: Annotated[str | None, typer.Option(help="Memory for cached prompts, such as 2Gi.")] = None,
    ctx_checkpoints: Annotated[int | None, typer.Option(min=0, help="Checkpoints kept a slot.")] = None,
    pool_cap: Annotated[str | None, typer.Option(help="A fixed cap of the pool, such as 512Mi.")] = None,
    draft: Annotated[str | None, typer.Option(help="The draft model's file, as FILE.")] = None,
    mmproj: Annotated[str | None, typer.Option(help="The projector's file, as FILE.")] = None,
    name: Annotated[str | None, typer.Option(help="Name in the manifest; default: the file's.")] = None,
    output: Annotated[
        Output | None, typer.Option("--output", "-o", help="Print a HybridModel for it instead.")
    ] = None,
) -> None:
    r"""Say what a model needs and what fits, from the header of its file; no weights are read.

    Exits with 1 if it does not fit, and with 2 if that is not known.

    \b
    Examples:
      llamapool plan model.gguf --limit 16Gi --slots 8 --context 32768
      llamapool plan hf:unsloth/Qwen3.5-27B-GGUF/Qwen3.5-27B-Q4_K_M.gguf --limit 16Gi --gpu-layers all
      llamapool plan https://example.org/model.gguf --limit 8Gi -o yaml | kubectl apply -f -
    """
    # Reading headers over HTTP and drawing tables takes a while to import.
    from llamapool import plan_command, plan_table  # noqa: PLC0415

    request = plan_command.request_of(
        file,
        limit=limit,
        slots=slots,
        context=context,
        gpu_layers=gpu_layers,
        mmap=mmap,
        cache_types=(cache_type_k, cache_type_v),
        ubatch_size=ubatch_size,
        embedding=embedding,
        cache_ram=cache_ram,
        ctx_checkpoints=ctx_checkpoints,
        pool_cap=pool_cap,
        draft=draft,
        projector=mmproj,
    )
    found = plan_command.answer(request, os.environ)
    if output is not None:
        _print([plan_command.manifest(request, name or plan_command.default_name(file))], output)
        return
    Console(highlight=False).print(plan_table.show(request, found))
    if found.fit is None and request.limit is not None:
        raise typer.Exit(2)
    if found.fit is not None and not found.fit.fits:
        raise typer.Exit(1)


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


def _print(objects: list[Manifest], output: Output) -> None:
    if output is Output.JSON:
        shown = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
        typer.echo(json.dumps(shown, indent=2))
    else:
        typer.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)


def _kind(document: Any) -> Any:
    return document.get("kind") if isinstance(document, Mapping) else None
