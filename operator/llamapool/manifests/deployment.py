"""The Deployment of a model's servers."""

from llamapool.api import HybridModel
from llamapool.manifests.common import Images, Manifest, metadata, selector_labels, with_digest
from llamapool.manifests.pod import DOWNLOAD_SECONDS, STARTUP_SECONDS, pod_template


def deployment(model: HybridModel, images: Images) -> Manifest:
    """Return the Deployment.

    It never surges: a new pod could not start beside the old one on the only GPU, and the rollout would hang.

    Args:
        model: the model.
        images: the images of its pods.
    """
    spec: Manifest = {
        "replicas": model.replicas,
        "selector": {"matchLabels": selector_labels(model.name)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "progressDeadlineSeconds": DOWNLOAD_SECONDS + 2 * STARTUP_SECONDS,
        "revisionHistoryLimit": 3,
        "template": pod_template(model, images),
    }
    return with_digest(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(model, model.name), "spec": spec}
    )
