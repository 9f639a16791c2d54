"""A real Prometheus on the test node, configured as documented, with the rules that the chart delivers."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.support.chart import NAMESPACE, RELEASE, ROOT
from tests.support.kubectl import Kubectl, run, until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

EXAMPLE = ROOT / "docs" / "examples" / "prometheus.yaml"
SCRAPE_SECONDS = 1
# A minute of the shipped rules is this many seconds here, so that an alert fires and clears within a test.
SECONDS_A_MINUTE = 4
_DURATION = re.compile(r"(?<=\[)(\d+)m(?=\])")

Series = dict[str, str]


@dataclass(frozen=True)
class Prometheus:
    """A running server.

    Attributes:
        address: host and port.
        started_at: Unix seconds.
    """

    address: str
    started_at: float

    def get(self, path: str, **parameters: str | float) -> Any:
        """What its HTTP API answers, the part ``data``."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{query}", timeout=30) as response:
            return json.load(response)["data"]

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as response:
                ready: bool = response.status == 200
        except OSError:
            return False
        return ready

    def values(self, expression: str) -> list[tuple[Series, float]]:
        """Result of an instant query."""
        found = self.get("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def samples(
        self, expression: str, step_seconds: float = 2
    ) -> list[tuple[Series, list[tuple[float, float]]]]:
        """Result of a query over all the time since the start: series with (Unix seconds, value), no NaN."""
        found = self.get(
            "query_range", query=expression, start=self.started_at, end=time.time(), step=step_seconds
        )["result"]
        series = [
            (
                each["metric"],
                [(at, float(value)) for at, value in each["values"] if not math.isnan(float(value))],
            )
            for each in found
        ]
        return [(labels, values) for labels, values in series if values]

    def firing(self, alert: str, **labels: str) -> Series | None:
        """Labels of a firing alert; ``None`` where there is none."""
        alerts = self.get("alerts")["alerts"]
        wanted = {"alertname": alert} | labels
        return next(
            (
                found["labels"]
                for found in alerts
                if found["state"] == "firing" and wanted.items() <= found["labels"].items()
            ),
            None,
        )

    def until_firing(self, alert: str, *, timeout_seconds: float = 120, **labels: str) -> Series:
        """Wait until the alert fires; its labels."""
        return until(f"{alert} fires", lambda: self.firing(alert, **labels), timeout_seconds=timeout_seconds)

    def until_clear(self, alert: str, *, timeout_seconds: float = 240, **labels: str) -> None:
        """Wait until the alert does not fire."""
        until(f"{alert} clears", lambda: not self.firing(alert, **labels), timeout_seconds=timeout_seconds)

    def targets(self) -> list[Series]:
        """Labels of every target that is scraped, with its ``health``."""
        active = self.get("targets", state="active")["activeTargets"]
        return [{**target["labels"], "health": target["health"]} for target in active]


def shortened(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Rules as shipped, but with shorter windows and times to wait; thresholds are left alone."""

    def seconds(minutes: str) -> str:
        return f"{int(minutes) * SECONDS_A_MINUTE}s"

    def rule(shipped: Mapping[str, Any]) -> dict[str, Any]:
        made = {**shipped, "expr": _DURATION.sub(lambda found: seconds(found[1]), shipped["expr"])}
        if "for" in shipped:
            made["for"] = seconds(shipped["for"].removesuffix("m"))
        return made

    return {
        "groups": [
            {**group, "interval": f"{SCRAPE_SECONDS}s", "rules": [rule(each) for each in group["rules"]]}
            for group in rules["groups"]
        ]
    }


def by_annotations(folder: Path) -> dict[str, Any]:
    """The documented configuration, which scrapes what asks for it by annotation, and the rules as delivered.

    Args:
        folder: where the rules are put.
    """
    (folder / "rules").mkdir(parents=True)
    delivered = Kubectl(NAMESPACE).get("configmap", f"{RELEASE}-prometheus-rules")["data"]
    for name, text in delivered.items():
        (folder / "rules" / name).write_text(yaml.safe_dump(shortened(yaml.safe_load(text))))
    config: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    config["global"] = {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"}
    config["rule_files"] = [str(folder / "rules" / Path(pattern).name) for pattern in config["rule_files"]]
    return config


def by_pod_monitors(rendered: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The configuration that Prometheus Operator makes of the PodMonitors among rendered objects."""
    kinds = ("PodMonitor", "PrometheusRule")
    text = yaml.safe_dump_all([found for found in rendered if found["kind"] in kinds])
    config: dict[str, Any] = yaml.safe_load(run("podmonitor", stdin=text))
    return config


@contextmanager
def running(folder: Path, config: dict[str, Any], address: str = "127.0.0.1:9190") -> Iterator[Prometheus]:
    """A Prometheus with its data and log in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for job in config["scrape_configs"]:
        for discovery in job["kubernetes_sd_configs"]:
            # It runs beside the cluster, not in a pod with a service account.
            discovery["kubeconfig_file"] = os.environ["KUBECONFIG"]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    program = shutil.which("prometheus")
    assert program is not None, "prometheus is on PATH inside the test node: python -m tests.cluster exec"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            server = Prometheus(address=address, started_at=time.time())
            until("Prometheus is ready", server.is_ready, timeout_seconds=30)
            yield server
        finally:
            process.terminate()
            process.wait(30)
