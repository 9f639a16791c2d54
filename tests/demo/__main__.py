"""The main job, end to end: install the chart, serve a model, see its cap follow the pod's limit live.

Run inside the test node, by ``make demo``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.models.hybrid import HybridShape
from tests.support import chart
from tests.support.kubectl import Kubectl, until
from tests.support.models import MEBIBYTE, Model, provide_model

MANIFEST = Path(__file__).with_name("hybridmodel.yaml")
POOL_SHARE_OF_HOST = 16  # the published pool's default: one part in sixteen of the host's RAM

console = Console(width=110, highlight=False)


def say(text: str) -> None:
    """One step of the demo."""
    console.print(f"[bold]demo[/bold] {text}")


def mebibytes(count: float) -> str:
    """Bytes as a person reads them."""
    return f"{count / MEBIBYTE:,.0f} MiB"


def settled_cap(model: Model, limit: str) -> dict[str, Any]:
    """The status once the cap follows ``limit``, is sized from a measured checkpoint, and is acknowledged.

    The server's own figures must agree: what the operator believes is not enough.
    """

    def settled() -> dict[str, Any] | None:
        status = model.status()
        written = status.get("limits", {}).get("written", {})
        if status.get("memory", {}).get("limit") != limit or not status["memory"].get("checkpointBytes"):
            return None
        applied = model.condition("LimitsApplied")
        metrics = model.metrics()
        agreed = (
            applied is not None
            and applied["status"] == "True"
            and metrics["llamapool_limits_generation"] == written.get("generation")
            and metrics["llamapool_pool_cap_bytes"] == written.get("poolCapBytes")
        )
        return status if agreed else None

    return until(f"the cap for a limit of {limit}", settled, timeout_seconds=90)


def show(model: Model, limit: str, status: dict[str, Any]) -> None:
    """The table of the demo: who would set which cap."""
    host_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    metrics = model.metrics()
    written = status["limits"]["written"]
    table = Table(title=f"{model.name} under a limit of {limit}", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for figure, value in (
        ("host RAM", mebibytes(host_bytes)),
        (
            "pod memory limit, as the server's cgroup has it",
            mebibytes(metrics["llamapool_cgroup_limit_bytes"]),
        ),
        ("one checkpoint, as the server measured it", mebibytes(metrics["llamapool_checkpoint_bytes"])),
        ("pool cap that 1/16 of the host would give", mebibytes(host_bytes / POOL_SHARE_OF_HOST)),
        ("pool cap the operator set", mebibytes(written["poolCapBytes"])),
        ("pool cap the server reports", mebibytes(metrics["llamapool_pool_cap_bytes"])),
        ("limits generation written", str(written["generation"])),
        ("limits generation acknowledged", f"{metrics['llamapool_limits_generation']:.0f}"),
    ):
        table.add_row(figure, value)
    console.print(table)


def main() -> None:
    """Run the demo; any state that is not reached ends it with a message and a non-zero exit code."""
    kubectl = Kubectl("llamapool-demo")
    model = Model(kubectl, "hybrid-27b")

    say("installing the chart: helm upgrade --install llamapool charts/llamapool")
    chart.install()

    say("writing a random model with the recurrent state of a 27B, and its volume")
    kubectl.ensure_namespace()
    provide_model(kubectl, "hybrid-27b.gguf", HybridShape())

    say(f"kubectl apply --filename {MANIFEST.relative_to(chart.ROOT)}")
    kubectl("delete", "hybridmodel", model.name, "--ignore-not-found", "--wait")
    kubectl(
        "wait", "--for", "delete", "pod", "--selector", f"llamapool.dev/model={model.name}", "--timeout", "2m"
    )
    kubectl("apply", "--filename", str(MANIFEST))
    started = time.monotonic()
    model.until_condition("Ready")
    say(f"ready after {time.monotonic() - started:.1f} s")

    started = time.monotonic()
    answer = model.chat("What is a context checkpoint?")
    seconds = time.monotonic() - started
    tokens, text = answer["usage"]["completion_tokens"], answer["choices"][0]["message"]["content"]
    say(f"/v1/chat/completions answered through the Service: {tokens} tokens in {seconds:.1f} s")
    say(f"the weights are random, and so is the text: {text!r}")

    status = settled_cap(model, "2Gi")
    show(model, "2Gi", status)
    restarts = model.restarts()

    say("resizing the pod to 3Gi in place")
    started = time.monotonic()
    model.resize("3Gi")
    resized = settled_cap(model, "3Gi")
    seconds = time.monotonic() - started
    show(model, "3Gi", resized)
    before, after = (each["limits"]["written"]["poolCapBytes"] for each in (status, resized))
    if after <= before:
        raise SystemExit(f"demo: the cap did not grow with the limit: {before} then {after} bytes")
    if model.restarts() != restarts or restarts != 0:
        raise SystemExit(f"demo: the container restarted {model.restarts()} times; 0 is right")
    model.chat("Still there?")
    say(f"new cap {mebibytes(after)}, applied {seconds:.1f} s after the resize, restarts {model.restarts()}")

    console.print(kubectl("get", "hybridmodels"), end="")
    console.print(
        "The node is up. Look around:\n"
        "  make lab-exec CMD='kubectl -n llamapool-demo describe hybridmodel hybrid-27b'\n"
        "  make lab-exec CMD='kubectl -n llamapool-system logs deploy/llamapool'\n"
        "  make lab-shell\n"
        "Stop it: make lab-down"
    )


if __name__ == "__main__":
    main()
