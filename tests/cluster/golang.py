"""The Go toolchain, and what is built with it: the Kubernetes components, helm, and what monitoring needs."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import urllib.request
import zipfile
from pathlib import Path

from tests.cluster import cache, progress
from tests.cluster.errors import LabError
from tests.cluster.settings import (
    GO_SHA256,
    GO_VERSION,
    HELM_VERSION,
    KUBERNETES_VERSION,
    METRICS_SERVER_VERSION,
    PROMETHEUS_VERSION,
)

PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "device-plugin",
    "kubectl",
)
_SOURCE = Path(__file__).parent / "kube"
_PROMETHEUS = Path(__file__).parent / "prometheus"
_POD_MONITOR = Path(__file__).parent / "podmonitor"
_ORACLE = Path(__file__).parents[1] / "oracle" / "quantity"
_OLDEST_GO = (1, 25)  # what kube/go.mod asks for


def kube() -> Path:
    """Folder with one program for each of `PROGRAMS`."""
    sources = [*sorted(_SOURCE.glob("*.go")), _SOURCE / "go.mod", _SOURCE / "go.sum"]
    key = cache.digest(*(path.read_bytes() for path in sources))[:12]
    return cache.entry(f"kube-{KUBERNETES_VERSION}-{key}", _build_kube)


def helm() -> Path:
    """Folder with helm in it."""
    return cache.entry(f"helm-{HELM_VERSION}", _build_helm)


def prometheus() -> Path:
    """Folder with prometheus, promtool and podmonitor."""
    return cache.entry(_prometheus_name(), _build_prometheus)


def prometheus_folder() -> Path:
    """The same folder, which is absent while it was not asked for: most of what a lab is for does without."""
    return cache.root() / _prometheus_name()


def _prometheus_name() -> str:
    sources = sorted(file for folder in (_PROMETHEUS, _POD_MONITOR) for file in folder.iterdir())
    key = cache.digest(*(file.read_bytes() for file in sources))[:12]
    return f"prometheus-{PROMETHEUS_VERSION}-{key}"


def _build_prometheus(folder: Path) -> None:
    version = f"github.com/prometheus/common/version.Version={PROMETHEUS_VERSION.removeprefix('v')}"
    # Of its two dozen ways of discovery only that of Kubernetes; the others take longer than all the rest.
    tags = "-tags=remove_all_sd,enable_kubernetes_sd"
    programs = [f"github.com/prometheus/prometheus/cmd/{name}" for name in ("prometheus", "promtool")]
    flags = ("-v", "-trimpath", "-buildvcs=false", tags, f"-ldflags=-s -w -X {version}")
    log = cache.log_file("prometheus")
    progress.run(
        f"building Prometheus {PROMETHEUS_VERSION}, some minutes the first time",
        [_go(), "build", *flags, "-o", f"{folder}/", *programs],
        log,
        cwd=_PROMETHEUS,
        environment=_environment(),
    )
    progress.run(
        "building what tells how Prometheus Operator reads a PodMonitor",
        [_go(), "build", *flags, "-o", folder / "podmonitor", "."],
        log,
        cwd=_POD_MONITOR,
        environment=_environment(),
    )


def metrics_server() -> Path:
    """Folder with metrics-server in it."""
    return cache.entry(f"metrics-server-{METRICS_SERVER_VERSION}", _build_metrics_server)


def quantity_oracle() -> Path:
    """Folder with `quantity` in it: apimachinery's reading of quantities, for the tests of ours."""
    sources = [_ORACLE / name for name in ("main.go", "go.mod", "go.sum")]
    key = cache.digest(*(path.read_bytes() for path in sources))[:12]
    return cache.entry(f"quantity-{key}", _build_oracle)


def _build_oracle(folder: Path) -> None:
    progress.run(
        "building apimachinery's reader of quantities",
        [_go(), "build", "-trimpath", "-buildvcs=false", "-o", folder / "quantity", "."],
        cache.log_file("quantity"),
        cwd=_ORACLE,
        environment=_environment(),
    )


def _build_kube(folder: Path) -> None:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    stamp = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    variables = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    flags = ("-trimpath", "-buildvcs=false", f"-ldflags=-s -w {variables}")
    progress.run(
        f"building the Kubernetes {KUBERNETES_VERSION} components, about 5 minutes the first time",
        [_go(), "build", "-v", *flags, "-o", folder / "kube", "."],
        cache.log_file("kube"),
        cwd=_SOURCE,
        environment=_environment(),
    )
    for program in PROGRAMS:
        (folder / program).symlink_to("kube")


def _build_helm(folder: Path) -> None:
    flags = ("-trimpath", f"-ldflags=-s -w -X helm.sh/helm/v3/internal/version.version={HELM_VERSION}")
    progress.run(
        f"building helm {HELM_VERSION}, about 2 minutes the first time",
        [_go(), "install", "-v", *flags, f"helm.sh/helm/v3/cmd/helm@{HELM_VERSION}"],
        cache.log_file("helm"),
        environment=_environment() | {"GOBIN": str(folder)},
    )


def _build_metrics_server(folder: Path) -> None:
    package = f"sigs.k8s.io/metrics-server/cmd/metrics-server@{METRICS_SERVER_VERSION}"
    progress.run(
        f"building metrics-server {METRICS_SERVER_VERSION}, about 4 minutes the first time",
        [_go(), "install", "-v", "-trimpath", "-ldflags=-s -w", package],
        cache.log_file("metrics-server"),
        environment=_environment() | {"GOBIN": str(folder)},
    )


def _environment() -> dict[str, str]:
    # No cgo: the programs then need nothing of the host, and no C compiler is needed to build them.
    return dict(os.environ) | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}


def _go() -> Path:
    """A go command that is new enough: the one on PATH, else the pinned toolchain."""
    found = shutil.which("go")
    if found:
        asked = subprocess.run([found, "env", "GOVERSION"], check=True, capture_output=True, text=True)
        numbers = re.match(r"go(\d+)\.(\d+)", asked.stdout)
        if numbers and (int(numbers[1]), int(numbers[2])) >= _OLDEST_GO:
            return Path(found)
    return cache.entry(f"go-{GO_VERSION}", _fetch_toolchain) / "bin" / "go"


def _fetch_toolchain(folder: Path) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise LabError(
            f"the pinned Go is for Linux on x86_64, this is {platform.system()} on {platform.machine()}: "
            f"put a go of {'.'.join(map(str, _OLDEST_GO))} or newer on PATH"
        )
    module = f"v0.0.1-go{GO_VERSION}.linux-amd64"
    proxies = os.environ.get("GOPROXY", "").replace("|", ",").split(",")
    proxy = next((each for each in proxies if each.startswith("https://")), "https://proxy.golang.org")
    url = f"{proxy.rstrip('/')}/golang.org/toolchain/@v/{module}.zip"
    progress.say(f"fetching the Go toolchain, 70 MB: {url}")
    archive = folder.with_suffix(".zip")
    with urllib.request.urlopen(url) as response, archive.open("wb") as output:  # noqa: S310 - https, see above
        shutil.copyfileobj(response, output)
    with archive.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != GO_SHA256:
        raise LabError(f"{url}: SHA-256 is {found}, {GO_SHA256} is right")
    unpacked = folder.with_suffix(".unpacked")
    cache.remove(unpacked)
    with zipfile.ZipFile(archive) as content:
        content.extractall(unpacked)
    root = unpacked / f"golang.org/toolchain@{module}"
    # Module archives carry no modes.
    for program in [*(root / "bin").iterdir(), *(root / "pkg/tool/linux_amd64").iterdir()]:
        program.chmod(0o755)
    root.rename(folder)
    cache.remove(unpacked)
    archive.unlink()
