"""The arms: which server, with what preloaded, in what environment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.builds import Build
from tests.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

UPSTREAM = "upstream"
OURS = "ours"
PUBLISHED = "published"
CAP0 = "cap0"


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to serve.

    Attributes:
        name: in the record.
        what: in plain words.
        build: which server.
        library: to preload, the name of a file in the linker's folders; none if empty.
        package: Debian's, that brings the library.
        environment: beside the benchmark's own.
    """

    name: str
    what: str
    build: Build
    library: str = ""
    package: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_histogram(self) -> bool:
        """Whether its server has a metrics port with the histogram of the time to first token."""
        return self.build is Build.LLAMAPOOL

    def variables(self) -> dict[str, str]:
        """Its environment, the preload included.

        Raises:
            BenchError: the library is not installed.
        """
        if not self.library:
            return dict(self.environment)
        found = sorted(Path("/usr/lib").glob(f"*-linux-gnu/{self.library}"))
        if not found:
            raise BenchError(f"arm {self.name}: no {self.library} in /usr/lib; install {self.package}")
        return dict(self.environment) | {"LD_PRELOAD": str(found[0])}


_JEMALLOC = Arm(
    name="jemalloc",
    what="upstream, jemalloc preloaded",
    build=Build.UPSTREAM,
    library="libjemalloc.so.2",
    package="libjemalloc2",
)

ARMS = {
    arm.name: arm
    for arm in (
        Arm(name=UPSTREAM, what="llama.cpp as released", build=Build.UPSTREAM),
        _JEMALLOC,
        replace(
            _JEMALLOC,
            name="jemalloc-nodecay",
            what="upstream, jemalloc preloaded and told never to return memory",
            environment={"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"},
        ),
        Arm(
            name="tcmalloc",
            what="upstream, tcmalloc preloaded",
            build=Build.UPSTREAM,
            library="libtcmalloc_minimal.so.4",
            package="libtcmalloc-minimal4",
        ),
        Arm(
            name="huge-pages",
            what="upstream, glibc told to ask for huge pages",
            build=Build.UPSTREAM,
            environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
        ),
        Arm(name=PUBLISHED, what="the published pool: copies, no huge pages", build=Build.PUBLISHED),
        Arm(name=OURS, what="llamapool", build=Build.LLAMAPOOL),
        Arm(
            name=CAP0,
            what="llamapool that keeps no buffer",
            build=Build.LLAMAPOOL,
            environment={"LLAMAPOOL_POOL_CAP_BYTES": "0"},
        ),
    )
}
