"""The machine that a run was made on: its name, the speed of its memory, and who else used it."""

from __future__ import annotations

import ctypes
import os
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

_COPIES = 5
_BALLOON_REPORTING_BIT = 5


def describe() -> dict[str, str | int | float]:
    """The machine in plain words, from /proc."""
    processor = _field("/proc/cpuinfo", "model name") or platform.machine()
    return {
        "processor": processor,
        "cores": os.cpu_count() or 0,
        "memory_gib": round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20), 1),
        "kernel": platform.release(),
        "transparent_huge_pages": Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip(),
        "free_page_reporting": _free_page_reporting(),
        "virtual": "hypervisor" in _field("/proc/cpuinfo", "flags").split(),
    }


def available_bytes() -> int:
    """Memory that can be used without swapping: MemAvailable."""
    return int(_field("/proc/meminfo", "MemAvailable").split()[0]) * 1024


class Memcpy:
    """Copies memory that is resident already: the floor of a checkpoint's time."""

    def __init__(self, size_bytes: int) -> None:
        self._source = np.ones(size_bytes, dtype=np.uint8)
        self._target = np.zeros(size_bytes, dtype=np.uint8)
        self._target.fill(1)  # zeros() maps only; this makes it resident

    def bytes_per_second(self) -> float:
        """The median of a few copies by the C library's memcpy, on one core."""
        size_bytes = self._source.nbytes
        return size_bytes / statistics.median(self._copy() for _ in range(_COPIES))

    def _copy(self) -> float:
        started = time.perf_counter()
        ctypes.memmove(self._target.ctypes.data, self._source.ctypes.data, self._source.nbytes)
        return time.perf_counter() - started


@dataclass(frozen=True)
class CpuTimes:
    """Processor time since boot, in clock ticks, over all cores: the first line of /proc/stat."""

    total: int
    idle: int
    stolen: int

    @classmethod
    def now(cls) -> Self:
        """As of now."""
        user, nice, system, idle, wait, irq, soft_irq, stolen = map(
            int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        )
        return cls(user + nice + system + idle + wait + irq + soft_irq + stolen, idle + wait, stolen)


class Company:
    """How much of the machine others used since this was made."""

    def __init__(self) -> None:
        self._before = CpuTimes.now()
        self._own_before = _own_ticks()

    def others(self) -> dict[str, float]:
        """Shares, from 0 to 1, of the machine's processor time: used by other programs, and by other guests
        of the host (stolen). Call it once the servers have been stopped: only then their time is known.
        """
        now = CpuTimes.now()
        total = max(1, now.total - self._before.total)
        busy = total - (now.idle - self._before.idle) - (now.stolen - self._before.stolen)
        return {
            "other_programs_share": max(0.0, busy - (_own_ticks() - self._own_before)) / total,
            "stolen_share": (now.stolen - self._before.stolen) / total,
        }


def _free_page_reporting() -> bool:
    """Whether this guest hands free memory back to its host, which then has to provide it anew.

    Only large free blocks are handed back, so what is mapped as huge pages pays for it, up to tens of times
    the price of memory that the guest has at hand, and what is mapped as small pages mostly does not.
    """
    balloons = Path("/sys/bus/virtio/drivers/virtio_balloon").glob("virtio*/features")
    # One character for each feature bit, the lowest first: VIRTIO_BALLOON_F_REPORTING.
    return any(features.read_text()[_BALLOON_REPORTING_BIT] == "1" for features in balloons)


def _own_ticks() -> float:
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own * os.sysconf("SC_CLK_TCK")


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
