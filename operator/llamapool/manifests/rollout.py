"""When the pods of a model are replaced: when someone asked for it, never because the operator changed.

Replacing a pod means minutes of loading and, on the only GPU, no answers meanwhile. A new operator that
builds pods a little differently therefore leaves those that serve as they are, until the spec of their model
changes or its annotation `llamapool.dev/update` does.
"""

import json
from collections.abc import Mapping
from typing import Any

from llamapool.api import DEFAULT_IDLE_TRIM_SECONDS, GROUP
from llamapool.manifests.common import DIGEST_ANNOTATION, Manifest, digest, with_digest

UPDATE_ANNOTATION = f"{GROUP}/update"
"""On a HybridModel: any new value asks for its pods to be built anew; the Deployment keeps the last one."""
ASKED_ANNOTATION = f"{GROUP}/asked"
"""On a Deployment: generation and digest of the spec that its pod template was built for."""
TEMPLATE_ANNOTATION = f"{GROUP}/template"
"""On a Deployment: its pod template as the operator built it, in JSON."""
_WITHOUT_EFFECT_ON_PODS = ("replicas", "tuning", "pool")


def roll(wanted: Manifest, live: Mapping[str, Any] | None, body: Mapping[str, Any]) -> tuple[Manifest, bool]:
    """Return the Deployment to apply, and whether pods of another template than today's are left in place.

    What is left in place is the template as it was built, so that an edit by someone else is put right.

    Args:
        wanted: the Deployment as this operator builds it.
        live: the Deployment as the API server has it; None: there is none.
        body: its HybridModel as the API server has it.
    """
    built = wanted["spec"]["template"]
    if live is None or _is_asked_for(live, body):
        return _annotated(wanted, body, built), False
    noted = _noted_template(live)
    # Release 0.1.0 noted a digest of the whole Deployment only: what it built is the same, or unknown.
    digests = [_annotations(manifest).get(DIGEST_ANNOTATION) for manifest in (live, wanted)]
    if noted == built or (noted is None and digests[0] == digests[1]):
        return _annotated(wanted, body, built), False
    kept = live["spec"]["template"] if noted is None else noted
    return _annotated({**wanted, "spec": {**wanted["spec"], "template": kept}}, body, noted), True


def _noted_template(live: Mapping[str, Any]) -> Manifest | None:
    """Return the live pod template as it was built; None: by release 0.1.0, or the note was spoilt."""
    try:
        noted = json.loads(_annotations(live).get(TEMPLATE_ANNOTATION, "null"))
    except ValueError:
        return None
    return noted if isinstance(noted, dict) else None


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


def _annotated(manifest: Manifest, body: Mapping[str, Any], built: Manifest | None) -> Manifest:
    notes = {
        ASKED_ANNOTATION: f"{body['metadata'].get('generation')}-{_spec_digest(body)}",
        TEMPLATE_ANNOTATION: None if built is None else json.dumps(built, sort_keys=True),
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
