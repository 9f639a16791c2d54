"""kubectl and helm as a person uses them, with their answers as values."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value = TypeVar("Value")


class CommandError(AssertionError):
    """A command failed; the message holds what it printed."""


class NeverHappenedError(AssertionError):
    """A state that was waited for did not come; the message holds what was seen last."""


def run(*command: str, stdin: str | None = None, timeout_seconds: float = 300) -> str:
    """Standard output of ``command``.

    Raises:
        CommandError: it exited with another code than 0.
    """
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=timeout_seconds, check=False
    )
    if done.returncode != 0:
        raise CommandError(
            f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}".rstrip()
        )
    return done.stdout


def until(
    what: str, probe: Callable[[], Value | None], *, timeout_seconds: float = 120, every_seconds: float = 0.25
) -> Value:
    """The first answer of ``probe`` that is neither ``None`` nor ``False``.

    A probe that raises ``CommandError`` is asked again: objects come and go while a state is reached.

    Raises:
        NeverHappenedError: there was none within ``timeout_seconds``.
    """
    deadline = time.monotonic() + timeout_seconds
    last: object = None
    while time.monotonic() < deadline:
        try:
            answer = probe()
        except CommandError as error:
            last = error
        else:
            if answer is not None and answer is not False:
                return answer
            last = answer
        time.sleep(every_seconds)
    raise NeverHappenedError(f"{what}: not within {timeout_seconds:.0f} s; seen last: {last}")


@dataclass(frozen=True)
class Kubectl:
    """kubectl in one namespace."""

    namespace: str

    def __call__(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = 300) -> str:
        """Standard output of ``kubectl --namespace NAMESPACE ARGUMENTS``."""
        return run(
            "kubectl", "--namespace", self.namespace, *arguments, stdin=stdin, timeout_seconds=timeout_seconds
        )

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """Apply ``manifests``, in order."""
        self("apply", "--filename", "-", stdin=yaml.safe_dump_all(manifests))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """One object."""
        found: dict[str, Any] = json.loads(self("get", kind, name, "--output", "json"))
        return found

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """One object, or ``None`` where there is none."""
        text = self("get", kind, name, "--output", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """All objects of a kind that carry the labels of ``selector``."""
        listing = json.loads(self("get", kind, "--selector", selector, "--output", "json"))
        items: list[dict[str, Any]] = listing["items"]
        return items

    def ensure_namespace(self, labels: Mapping[str, str] | None = None) -> None:
        """Create the namespace where it is absent, with ``labels``."""
        metadata = {"name": self.namespace, "labels": dict(labels or {})}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
