"""The ConfigMap that carries a model's limits to its servers, and the operator's record of why."""

from llamapool.api import HybridModel
from llamapool.domain.limits import Limits, Record
from llamapool.manifests.common import LIMITS_FILE, RECORD_FILE, Manifest, limits_name, metadata


def limits_configmap(model: HybridModel, limits: Limits, record: Record) -> Manifest:
    """Return the ConfigMap: limits.json is mounted in the pods, record.json is not."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(model, limits_name(model.name)),
        "data": {LIMITS_FILE: limits.to_json(), RECORD_FILE: record.to_json()},
    }
