"""A watch that silently died is noticed by the operator's liveness."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.settings import API_PORT
from tests.long.proxy import Proxy
from tests.support.kubectl import Kubectl, until
from tests.support.models import manifest
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator


def healthy(port: int) -> str:
    """What /healthz says; empty while nothing answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy("127.0.0.1", API_PORT)
    yield made
    made.close()


@pytest.fixture
def health_port(proxy: Proxy, kubectl: Kubectl, tmp_path: Path) -> Iterator[int]:
    """The health port of an operator of this test's own, which reaches the API server by the proxy."""
    configuration = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    configuration["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(yaml.safe_dump(configuration))
    port, metrics_port = free_ports(2)
    environment = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "LLAMAPOOL_SERVER_IMAGE": "none:1",
        "LLAMAPOOL_OPERATOR_IMAGE": "none:1",
        "LLAMAPOOL_HEALTH_PORT": str(port),
        "LLAMAPOOL_METRICS_PORT": str(metrics_port),
    }
    command = [sys.executable, "-m", "llamapool", "operator", "--namespace", kubectl.namespace]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        yield port
        process.kill()
        process.wait()


@pytest.mark.timeout(600)
def test_a_watch_that_died_without_a_word_fails_the_liveness_probe(
    proxy: Proxy, health_port: int, kubectl: Kubectl
) -> None:
    kubectl.apply(manifest("known", "small.gguf", limit="1Gi"))
    kubectl("annotate", "hm", "known", "llamapool.dev/paused=true")
    until("the operator is up", lambda: healthy(health_port) == "ok\n", timeout_seconds=60)
    proxy.freeze()
    kubectl("annotate", "hm", "known", "example.org/changed=1")

    def unhealthy() -> str | None:
        said = healthy(health_port)
        return None if said == "ok\n" else said

    assert "the watch has stopped" in until("liveness fails", unhealthy, timeout_seconds=150)
