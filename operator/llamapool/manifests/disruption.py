"""The PodDisruptionBudget of a model's servers."""

from llamapool.api import HybridModel
from llamapool.manifests.common import Manifest, metadata, selector_labels, with_digest


def disruption_budget(model: HybridModel) -> Manifest:
    """Return the budget: nodes are drained of one server at a time.

    It never blocks a drain: a single replica may be evicted, and so may pods that are not ready, which
    protect nothing.
    """
    return with_digest(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata(model, model.name),
            "spec": {
                "maxUnavailable": 1,
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
                "selector": {"matchLabels": selector_labels(model.name)},
            },
        }
    )
