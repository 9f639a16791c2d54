"""When the pods of a model are replaced: when someone asked for it, never because the operator changed.

Replacing a pod means minutes of loading and, on the only GPU, no answers meanwhile. A new operator that
builds pods a little differently therefore leaves those that serve as they are, until the spec of their model
changes or its annotation `llamapool.dev/update` does.
"""

from collections.abc import Mapping
from typing import Any

from llamapool.api import DEFAULT_IDLE_TRIM_SECONDS, GROUP
from llamapool.manifests.common import DIGEST_ANNOTATION, Manifest, digest, with_digest

UPDATE_ANNOTATION = f"{GROUP}/update"
"""On a HybridModel: any new value asks for its pods to be built anew; the Deployment keeps the last one."""
ASKED_ANNOTATION = f"{GROUP}/asked"
"""On a Deployment: generation and digest of the spec that its pod template was built for."""
TEMPLATE_ANNOTATION = f"{GROUP}/template-digest"
"""On a Deployment: digest of the pod template as the operator built it."""
_WITHOUT_EFFECT_ON_PODS = ("replicas", "tuning", "pool")


def roll(wanted: Manifest, live: Mapping[str, Any] | None, body: Mapping[str, Any]) -> tuple[Manifest, bool]:
    """Return the Deployment to apply, and whether pods of another template than today's are left in place.

    Args:
        wanted: the Deployment as this operator builds it.
        live: the Deployment as the API server has it; None: there is none.
        body: its HybridModel as the API server has it.
    """
    built = digest(wanted["spec"]["template"])
    if live is None or _is_built(live, wanted, built) or _is_asked_for(live, body):
        return _annotated(wanted, body, built), False
    kept = {**wanted, "spec": {**wanted["spec"], "template": live["spec"]["template"]}}
    return _annotated(kept, body, _annotations(live).get(TEMPLATE_ANNOTATION)), True


def _is_built(live: Mapping[str, Any], wanted: Manifest, built: str) -> bool:
    """Whether the live template is what this operator builds."""
    noted = _annotations(live)
    if TEMPLATE_ANNOTATION in noted:
        return noted[TEMPLATE_ANNOTATION] == built
    # Release 0.1.0 noted a digest of the whole Deployment only.
    return noted.get(DIGEST_ANNOTATION) == _annotations(wanted)[DIGEST_ANNOTATION]


def _is_asked_for(live: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether the spec was changed in what makes its pods, or an update was asked for.

    A digest that differs in the same generation is not a change of the spec: a newer CRD has defaults more.
    """
    noted, metadata = _annotations(live), body["metadata"]
    if noted.get(UPDATE_ANNOTATION) != _annotations(body).get(UPDATE_ANNOTATION):
        return True
    observed = str((body.get("status") or {}).get("observedGeneration"))
    generation, _, spec_digest = noted.get(ASKED_ANNOTATION, observed).partition("-")
    return generation != str(metadata.get("generation")) and spec_digest != _spec_digest(body)


def _annotated(manifest: Manifest, body: Mapping[str, Any], built: str | None) -> Manifest:
    notes = {
        ASKED_ANNOTATION: f"{body['metadata'].get('generation')}-{_spec_digest(body)}",
        TEMPLATE_ANNOTATION: built,
        UPDATE_ANNOTATION: _annotations(body).get(UPDATE_ANNOTATION),
    }
    annotations = {name: value for name, value in notes.items() if value is not None}
    return with_digest({**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}})


def _spec_digest(body: Mapping[str, Any]) -> str:
    spec = body.get("spec") or {}
    idle_trim_seconds = (spec.get("pool") or {}).get("idleTrimSeconds", DEFAULT_IDLE_TRIM_SECONDS)
    parts = {name: value for name, value in spec.items() if name not in _WITHOUT_EFFECT_ON_PODS}
    return digest([parts, idle_trim_seconds])


def _annotations(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}
