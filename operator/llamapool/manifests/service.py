"""The Service of a model's servers."""

from llamapool.api import HybridModel
from llamapool.manifests.common import (
    HTTP_PORT,
    METRICS_PORT,
    Manifest,
    metadata,
    selector_labels,
    with_digest,
)


def service(model: HybridModel) -> Manifest:
    """Return the Service: requests on 8080 (`http`), metrics on 9090 (`metrics`)."""
    ports = [
        {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}
        for name, port in (("http", HTTP_PORT), ("metrics", METRICS_PORT))
    ]
    return with_digest(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(model, model.name),
            "spec": {"type": "ClusterIP", "selector": selector_labels(model.name), "ports": ports},
        }
    )
