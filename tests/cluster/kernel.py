"""Kernel settings of the whole machine that a kubelet changes: kept, and put back when the last lab ends."""

import json
from pathlib import Path

from tests.cluster import cache

# setupKernelTunables in k8s.io/kubernetes v1.35.4, pkg/kubelet/cm/container_manager_linux.go
_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
_SYSCTL = Path("/proc/sys")
_FOLDER = Path("/run/llamapool-lab")


def save(folder: Path = _FOLDER, sysctl: Path = _SYSCTL) -> None:
    """Notes the settings as they are before the first kubelet starts; later labs leave the note alone."""
    with cache.lock(folder / "lock"):
        note = folder / "kernel.json"
        if not note.exists():
            present = (name for name in _SETTINGS if (sysctl / name).exists())
            note.write_text(json.dumps({name: (sysctl / name).read_text().strip() for name in present}))


def restore(folder: Path = _FOLDER, sysctl: Path = _SYSCTL) -> None:
    """Puts them back; for when no lab runs any more."""
    with cache.lock(folder / "lock"):
        note = folder / "kernel.json"
        if note.exists():
            for name, value in json.loads(note.read_text()).items():
                (sysctl / name).write_text(value)
            note.unlink()
