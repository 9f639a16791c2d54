"""The command line: python -m tests.cluster COMMAND."""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tests.cluster import (
    client,
    daemons,
    golang,
    images,
    namespaces,
    node,
    progress,
    runtime,
    settings,
    teardown,
)
from tests.cluster.components import COMPONENTS
from tests.cluster.errors import LabError

app = typer.Typer(
    help="A real one-machine Kubernetes node for tests. State: $LLAMAPOOL_LAB_STATE, cache: $LLAMAPOOL_CACHE",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Name = Annotated[str | None, typer.Option("--name", help="Which lab; several can run side by side.")]
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


@app.callback()
def _require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the lab makes namespaces, mounts and cgroups: run it as root")


@app.command()
def up(
    name: Name = None,
    gpus: Annotated[int, typer.Option(min=0, help="How many nvidia.com/gpu the node offers.")] = 4,
    audit: Annotated[bool, typer.Option("--audit", help="Keep an audit log of the API.")] = False,  # noqa: FBT002
) -> None:
    """Bring the lab up; what runs already is left alone."""
    lab = settings.lab(name)
    node.up(lab, gpus=gpus, audit=audit)
    option = "" if lab.name == settings.DEFAULT_NAME else f" --name {lab.name}"
    progress.say(
        f"lab {lab.name} is up: node {lab.node_name} Ready, {settings.KUBERNETES_VERSION}, "
        f"{gpus} {settings.GPU_RESOURCE}, services programmed\n"
        f"         look around: python -m tests.cluster shell{option}; logs: {lab.log}\n"
        f"         stop it:     python -m tests.cluster down{option}"
    )


@app.command()
def down(name: Name = None) -> None:
    """Stop the lab and verify that nothing of it is left running, mounted or configured."""
    lab = settings.lab(name)
    teardown.down(lab)
    progress.say(f"lab {lab.name} is down, no process, mount, namespace or cgroup left; logs: {lab.log}")


@app.command()
def status(name: Name = None) -> None:
    """List the components; exit with 0 only if all are up and the node is Ready."""
    lab = settings.lab(name)
    complete = True
    for component in COMPONENTS:
        process = daemons.running(lab, component)
        complete = complete and process is not None
        print(f"{component:26}{f'up    pid {process.pid}' if process else 'down'}")
    ready = complete and client.ready_since(lab, daemons.started_at(lab, "kubelet").replace(microsecond=0))
    print(f"node {lab.node_name:21}{'Ready' if ready else 'not Ready'}")
    raise typer.Exit(0 if ready else 1)


@app.command()
def shell(name: Name = None) -> None:
    """Open a shell in the lab's network, with kubectl and helm."""
    _enter(settings.lab(name), [os.environ.get("SHELL", "/bin/bash")])


@app.command("exec")
def execute(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", show_default=False)] = None,
    command: Annotated[str | None, typer.Option(help="A line for the shell, instead of -- COMMAND.")] = None,
    name: Name = None,
) -> None:
    """Run one command in the lab's network; its input, output and exit code are passed on."""
    if bool(arguments) == bool(command):
        raise LabError("exec: give either --command 'LINE' or -- COMMAND [ARGUMENT...]")
    _enter(settings.lab(name), arguments or ["/bin/bash", "-c", command or ""])


@app.command("images")
def build_images(
    names: Annotated[list[str] | None, typer.Argument(metavar="[IMAGE]...", show_default=False)] = None,
    build_arg: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, for the images named.")] = None,
) -> None:
    """Build the project's images from their Dockerfiles, where no image of the same content is cached."""
    known = {image.name: image for image in images.IMAGES}
    build_arguments = dict(_pair(each) for each in build_arg or ())
    for wanted in names or known:
        if wanted not in known:
            raise LabError(f"images: {wanted!r} is no image of the project; {', '.join(known)} are")
        built = images.build(known[wanted], build_arguments)
        images.add_to_list(wanted, built)
        print(f"{built.reference} {built.archive}")


@app.command("prometheus")
def build_prometheus() -> None:
    """Build prometheus, promtool and podmonitor, which `exec` and `shell` have on PATH from then on."""
    progress.say(f"prometheus, promtool and podmonitor are in {golang.prometheus()}")


@app.command()
def load(name: Name = None) -> None:
    """Load the images that `images` built into the lab, in place of older ones that are not in use."""
    lab = settings.lab(name)
    for each in images.read_list().values():
        runtime.load(lab, each.archive, each.reference)
        runtime.remove_older(lab, each.reference)
        progress.say(f"{each.reference} is in lab {lab.name}")


@app.command("add-image")
def add_image(archive: Path, name: Name = None) -> None:
    """Load a docker or OCI archive into the lab."""
    runtime.load(settings.lab(name), archive)


def main() -> NoReturn:
    """Runs the command; what the user can act on is one message, not a traceback."""
    try:
        app()
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise LabError(f"--build-arg: {text!r} is not NAME=VALUE")
    return name, value


def _enter(lab: settings.Lab, command: list[str]) -> NoReturn:
    if not namespaces.is_mounted(lab.network_namespace):
        raise LabError(f"lab {lab.name} is not up: python -m tests.cluster up")
    environment = {key: value for key, value in os.environ.items() if key.lower() not in _PROXY_VARIABLES}
    environment |= {
        "PATH": f"{golang.kube()}:{golang.helm()}:{golang.prometheus_folder()}:{os.environ['PATH']}",
        "KUBECONFIG": str(lab.kubeconfig),
        "KUBECACHEDIR": str(lab.kubectl_cache),
        "LLAMAPOOL_LAB_NAME": lab.name,
        "LLAMAPOOL_LAB_STATE": str(lab.state),
    }
    words = [*namespaces.enter_network(lab), *command]
    os.execvpe(words[0], words, environment)  # noqa: S606 - no shell is wanted
