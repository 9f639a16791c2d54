"""Debian packages that the lab needs of its machine, installed only where they are missing."""

import os
import shutil
from pathlib import Path

from tests.cluster import cache, progress
from tests.cluster.errors import LabError

# What has to be there → the package that brings it. Paths of which one is enough are separated by a bar.
_NODE = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "/usr/lib/cni/ptp|/opt/cni/bin/ptp": "containernetworking-plugins",
    "/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}
_IMAGES = {
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "gcc": "gcc",
    "/usr/lib/x86_64-linux-gnu/libc.a|/usr/lib/aarch64-linux-gnu/libc.a": "libc6-dev",
    "git": "git",
}


def ensure() -> None:
    """Installs what is missing with apt-get.

    Raises:
        LabError: something is missing and there is no apt-get.
    """
    missing = sorted({package for what, package in (_NODE | _IMAGES).items() if not _present(what)})
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise LabError(f"missing on this machine: {', '.join(missing)} (names of Debian packages)")
    log = cache.log_file("apt")
    environment = dict(os.environ) | {"DEBIAN_FRONTEND": "noninteractive"}
    with cache.lock(cache.root() / ".apt.lock"):
        progress.run("updating the package lists", ["apt-get", "update"], log, environment=environment)
        install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
        progress.run(f"installing {', '.join(missing)}", install, log, environment=environment)


def _present(what: str) -> bool:
    # Only programs are looked up on PATH; an absolute path may name any file.
    return any(shutil.which(each) or (each[0] == "/" and Path(each).exists()) for each in what.split("|"))
