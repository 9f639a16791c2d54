"""The API server's audit log: who wrote what."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WRITES = ("create", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True)
class Write:
    """One write that the API server was asked for.

    Attributes:
        verb: as in RBAC.
        resource: plural, with its subresource, such as `hybridmodels/status`.
        name: of the object.
        body: what was sent.
    """

    verb: str
    resource: str
    name: str
    body: Any


class AuditLog:
    """What is written to the audit log from now on.

    Raises:
        AssertionError: the node was started without ``--audit``.
    """

    def __init__(self) -> None:
        self._path = Path(os.environ["LLAMAPOOL_LAB_STATE"]) / "log" / "audit.jsonl"
        assert self._path.exists(), "the node keeps no audit log: python -m tests.cluster up --audit"
        self._start = self._path.stat().st_size

    def events(self) -> list[dict[str, Any]]:
        """What was asked of the API server, in order, as it writes it down (audit.k8s.io/v1 Event)."""
        with self._path.open("rb") as log:
            log.seek(self._start)
            return [json.loads(line) for line in log.read().splitlines()]

    def writes(self, user: str) -> list[Write]:
        """What ``user`` wrote, in order."""
        return [
            Write(
                verb=event["verb"],
                resource="/".join(
                    part
                    for part in (event["objectRef"]["resource"], event["objectRef"].get("subresource"))
                    if part
                ),
                name=event["objectRef"].get("name", ""),
                body=event.get("requestObject"),
            )
            for event in self.events()
            if event["user"]["username"] == user and event["verb"] in _WRITES
        ]
