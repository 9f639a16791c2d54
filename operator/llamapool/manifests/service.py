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


def service(model: HybridModel, *, scrape_annotations: bool) -> Manifest:
    """Return the Service: requests on 8080 (`http`), metrics on 9090 (`metrics`).

    The annotations for a Prometheus that goes by them are here, not on the pods: they can be given to models
    that serve already without replacing their pods.
    """
    described = metadata(model, model.name)
    if scrape_annotations:
        described["annotations"] = {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(METRICS_PORT),
            "prometheus.io/path": "/metrics",
        }
    ports = [
        {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}
        for name, port in (("http", HTTP_PORT), ("metrics", METRICS_PORT))
    ]
    return with_digest(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": described,
            "spec": {"type": "ClusterIP", "selector": selector_labels(model.name), "ports": ports},
        }
    )
