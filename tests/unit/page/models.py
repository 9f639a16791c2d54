"""Models for the status page: one that is well, one in trouble, one that nobody has looked at."""

from typing import Any

from tests.unit.builders import GIB, MIB, model_body


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def well(name: str = "qwen3-5-27b") -> dict[str, Any]:
    return model_body(name) | {
        "status": {
            "conditions": [
                condition("Ready", "True", "Serving", "1 of 1 replicas answer requests"),
                condition("MemoryFits", "True", "BudgetSufficient", "the limit of 2Gi holds 8 checkpoints"),
                condition("LimitsApplied", "True", "Acknowledged", "every ready pod applies generation 3"),
                condition("PoolActive", "True", "PoolCapped", "at most 600Mi of buffers are kept for reuse"),
            ],
            "memory": {
                "limit": "2Gi",
                "limitBytes": 2 * GIB,
                "baseBytes": 512 * MIB,
                "stateBudgetBytes": 1280 * MIB,
                "headroomBytes": 256 * MIB,
            },
            "pool": {"cap": "600Mi", "capBytes": 600 * MIB},
            "ttft": {"p50": "0.21s", "p90": "0.42s", "p99": "0.6s"},
            "limits": {
                "acknowledged": {"pods": 1, "of": 1},
                "pods": [{"name": f"{name}-1", "ready": True, "restarts": 0, "generation": 3}],
            },
            "decisions": [
                {
                    "id": "3-ab12",
                    "time": "2026-12-01T12:00:00Z",
                    "reason": "PoolCapChanged",
                    "from": {"poolCapBytes": None},
                    "to": {"poolCapBytes": 600 * MIB},
                    "evidence": {"limitBytes": 2 * GIB, "slots": 4, "mode": "Auto"},
                }
            ],
        }
    }


def troubled(name: str = "jamba-mini") -> dict[str, Any]:
    body = well(name)
    message = "the limit of 1Gi holds 2 checkpoints for 4 slots: 314572800 bytes short"
    body["status"]["conditions"][1] = condition("MemoryFits", "False", "BudgetTooSmall", message)
    body["status"]["conditions"].append(
        condition("Degraded", "True", "NoStepLeft", "give the pods a larger limit, or fewer slots")
    )
    return body


def new(name: str = "lfm2") -> dict[str, Any]:
    return model_body(name)
