"""The command `llamapool fetch`: the init container of a model's pods, and the same for people."""

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import yaml

from llamapool.domain.facts_message import to_error_message, to_message
from llamapool.errors import InvalidFieldError, LlamapoolError
from llamapool.fields import Fields
from llamapool.sources import CACHE_FOLDER, SECRETS_FOLDER, Artifacts, parse_artifacts

_TERMINATED = 128 + signal.SIGTERM


def fetch(
    file: Annotated[
        typer.FileText | None,
        typer.Argument(encoding="utf-8", help="A manifest of one HybridModel; - reads standard input."),
    ] = None,
    *,
    model: Annotated[
        str | None, typer.Option(help="spec.model of a HybridModel as JSON, instead of FILE.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="Folder that files are downloaded to.")] = Path(CACHE_FOLDER),
    secrets: Annotated[
        Path,
        typer.Option(help="Folder with the files of Secrets, as model/token or model/AWS_ACCESS_KEY_ID."),
    ] = Path(SECRETS_FOLDER),
    root: Annotated[
        Path, typer.Option(help="Folder below which claims are mounted, as models, mmproj and draft.")
    ] = Path("/"),
    termination_log: Annotated[
        Path | None, typer.Option(help="File for the facts of the model, or for the error.")
    ] = None,
) -> None:
    """Download the files of a model, verify them, and print the model's facts as JSON.

    What is there already and was verified is not downloaded again. A transfer that was cut goes on where it
    ended. A file gets its name only once its size, its checksum and its header are right.

    Examples:
    llamapool fetch hybridmodel.yaml --cache models
    llamapool fetch --cache models --model '{"source": {"http": {"urls": ["https://example.org/model.gguf"]}}}'
    """
    # Of all commands only this one needs these, and they take a while to import.
    from llamapool.adapters.fetch.model import Fetcher, Places  # noqa: PLC0415

    # The first process of a container ignores SIGTERM unless it says otherwise.
    signal.signal(signal.SIGTERM, _end)
    try:
        artifacts = _artifacts(file, model)
        fetched = Fetcher(places=Places(cache=cache, secrets=secrets, root=root), say=_say).fetch(artifacts)
    except LlamapoolError as error:
        if termination_log is not None:
            termination_log.write_text(to_error_message(str(error)), encoding="utf-8")
        raise
    if fetched is not None:
        message = to_message(fetched, spec=artifacts.digest)
        if termination_log is not None:
            termination_log.write_text(message, encoding="utf-8")
        typer.echo(message)


def _artifacts(file: Any, model: str | None) -> Artifacts:
    if (file is None) == (model is None):
        raise InvalidFieldError("fetch", None, "must be given either FILE or --model")
    if model is not None:
        return parse_artifacts(Fields(_object("--model", model), "spec.model"))
    body = Fields(_object(file.name, file.read()), "")
    return parse_artifacts(body.child("spec").child("model"))


def _object(name: str, text: str) -> dict[str, Any]:
    """Read JSON, or YAML, of which it is a part."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidFieldError(name, str(error), "is neither YAML nor JSON") from error
    if not isinstance(value, dict):
        raise InvalidFieldError(name, value, "must be an object")
    return value


def _say(line: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    sys.stderr.write(f"{now} {line}\n")
    sys.stderr.flush()


def _end(*_: object) -> NoReturn:
    raise SystemExit(_TERMINATED)
