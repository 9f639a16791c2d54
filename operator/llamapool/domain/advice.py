"""What a person on call is told about an end that limits cannot answer: what it was, and what to do next."""

from llamapool.domain.conditions import DecisionReason
from llamapool.domain.oom import Cause, Kill, Phase

_EVICTED = """\
the node was short of something and the kubelet evicted the pod; the pool is not to blame. \
Set requests equal to limits, or move the model to a node with more room"""
_NODE_OOM = """\
the node itself ran out of memory: the container has no limit of its own that it could have passed. \
Set spec.resources.limits.memory, and requests equal to it"""
_PROBE_KILLED = """\
the kubelet ended the server after a probe had failed, not for memory. Remove the liveness probe from \
spec.podTemplate, or give it more time: a long prompt may silence the server"""
_DEVICE_OOM = """\
a device ran out of its own memory; host memory and the pool have no part in that. \
Lower spec.server.gpuLayers, contextSize or slots"""
_KILLED = """\
the server was killed, and neither the kubelet nor its own last words tell of memory. \
Look at the pod's Events and at the node's log"""
_CRASHED = "the process ended by itself. Its log tells more: kubectl logs --previous"
_INIT_OOM = "an init container exceeded its memory limit, before the server started. Raise its limit"
_LOADING_OOM = """\
the model does not fit while it is loaded, before there is any state or pool. \
Raise spec.resources.limits.memory, or lower contextSize or what is kept off the GPU"""
_NOT_EXPLAINED = """\
killed for memory, and the server left no account of it: is the image llamapool's? Nothing is changed"""

_OF_CAUSE = {
    Cause.EVICTION: (DecisionReason.EVICTED, _EVICTED),
    Cause.NODE_OOM: (DecisionReason.NODE_OOM, _NODE_OOM),
    Cause.PROBE_KILL: (DecisionReason.PROBE_KILLED, _PROBE_KILLED),
    Cause.DEVICE_OOM: (DecisionReason.DEVICE_OOM, _DEVICE_OOM),
    Cause.KILLED: (DecisionReason.KILLED, _KILLED),
    Cause.CRASH: (DecisionReason.CRASHED, _CRASHED),
}
_OF_PHASE = {
    Phase.INIT: (DecisionReason.INIT_OOM, _INIT_OOM),
    Phase.LOADING: (DecisionReason.LOADING_OOM, _LOADING_OOM),
    Phase.UNKNOWN: (DecisionReason.NOT_EXPLAINED, _NOT_EXPLAINED),
}


def advice_on(kill: Kill) -> tuple[DecisionReason, str] | None:
    """Return reason and advice for an end that is none of the pool's or the state's; None: it may be."""
    return _OF_CAUSE.get(kill.cause) or _OF_PHASE.get(kill.phase)
