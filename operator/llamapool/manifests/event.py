"""The Event that tells people of a decision."""

from llamapool.api import GROUP, KIND, VERSION, HybridModel
from llamapool.domain.conditions import DecisionReason
from llamapool.domain.limits import DecisionEntry
from llamapool.manifests.common import Manifest

REPORTER = "llamapool"
_LONGEST_MESSAGE = 1024
"""The API server takes no longer message in an Event."""
_NORMAL = frozenset(
    {
        DecisionReason.POOL_CAP_CHANGED,
        DecisionReason.STATE_BUDGET_CHANGED,
        DecisionReason.POOL_RETRIED,
        DecisionReason.POOL_RESTORED,
        DecisionReason.STATE_BUDGET_RAISED,
        DecisionReason.TROUBLE_PASSED,
        DecisionReason.TUNING_RESET,
        DecisionReason.TRIAL_STARTED,
        DecisionReason.TRIAL_POOL_HELPS,
        DecisionReason.TRIAL_INCONCLUSIVE,
    }
)


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
        "type": "Normal" if entry.reason in _NORMAL else "Warning",
        "reason": entry.reason,
        "message": f"{entry.message} (decision {entry.id})"[:_LONGEST_MESSAGE],
        "firstTimestamp": entry.time,
        "lastTimestamp": entry.time,
        "count": 1,
        "source": {"component": REPORTER},
        "reportingComponent": REPORTER,
        "reportingInstance": REPORTER,
    }
