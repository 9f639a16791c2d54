"""The Event that tells people of a decision."""

from llamapool.api import GROUP, KIND, VERSION, HybridModel
from llamapool.domain.limits import DecisionEntry, Figure
from llamapool.domain.quantity import format_bytes
from llamapool.manifests.common import Manifest

REPORTER = "llamapool"


def decision_event(model: HybridModel, entry: DecisionEntry) -> Manifest:
    """Return the Event of one decision; its name follows from the decision, so that it is told only once."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{model.name}.{entry.id}", "namespace": model.namespace},
        "involvedObject": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "name": model.name,
            "namespace": model.namespace,
            "uid": model.uid,
        },
        "type": "Normal",
        "reason": entry.reason,
        "message": _message(entry),
        "firstTimestamp": entry.time,
        "lastTimestamp": entry.time,
        "count": 1,
        "source": {"component": REPORTER},
        "reportingComponent": REPORTER,
        "reportingInstance": REPORTER,
    }


def _message(entry: DecisionEntry) -> str:
    before, after = (_cap(values.get("poolCapBytes")) for values in (entry.before, entry.after))
    figures = ", ".join(
        f"{words} {_cap(entry.evidence[name])}"
        for name, words in (
            ("limitBytes", "limit"),
            ("bufferBytes", "one buffer"),
            ("baseBytes", "base"),
            ("stateBudgetBytes", "state budget"),
        )
        if name in entry.evidence
    )
    plan = ", ".join(
        part
        for part in (f"mode {entry.evidence.get('mode')}", f"{entry.evidence.get('slots')} slots", figures)
        if part
    )
    return f"pool cap {before} -> {after} ({plan}; decision {entry.id})"


def _cap(value: Figure) -> str:
    return format_bytes(value) if isinstance(value, int) else "the server's own"
