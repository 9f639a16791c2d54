"""The objects of some models, whole, as golden files to read and to compare with."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from llamapool.cli import objects_of
from llamapool.manifests.common import Images
from tests.unit.builders import model_body

GOLDEN = Path(__file__).with_name("golden")
IMAGES = Images(server="example.org/llama-server:1", operator="example.org/operator:1")
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "model-in-image": {
        "model": {"source": {"image": {"path": "/models/tiny.gguf"}}},
        "server": {"image": "example.org/with-model:2", "pullPolicy": "Never"},
        "pool": {"mode": "Fixed", "cap": "512Mi", "idleTrimSeconds": 0},
    },
    "downloaded": {
        "model": {
            "source": {
                "huggingFace": {
                    "repo": "owner/repo",
                    "files": ["q4/27b-00001-of-00002.gguf", "q4/27b-00002-of-00002.gguf"],
                    "tokenSecretRef": {"name": "hub", "key": "token"},
                }
            },
            "sha256": "ab" * 32,
            "mmproj": {"source": {"http": {"urls": ["https://example.org/mmproj.gguf"]}}},
            "draft": {
                "source": {
                    "s3": {
                        "endpoint": "https://minio.storage:9000",
                        "bucket": "models",
                        "keys": ["draft.gguf"],
                        "credentialsSecretRef": {"name": "s3"},
                    }
                }
            },
            "cache": {"size": "40Gi", "storageClassName": "fast", "retain": False},
        },
    },
    "every-field": {
        "model": {
            "source": {"pvc": {"claimName": "models", "path": "qwen/27b.gguf"}},
            "alias": "qwen",
            "mmproj": {"source": {"pvc": {"claimName": "models", "path": "qwen/mmproj.gguf"}}},
            "draft": {"source": {"image": {"path": "/models/draft.gguf"}}},
        },
        "server": {
            "slots": 8,
            "contextSize": 32768,
            "ctxCheckpoints": 16,
            "cacheRAM": "1Gi",
            "gpuLayers": "all",
            "idleSleepSeconds": 600,
            "apiKeySecretRef": {"name": "api-key", "key": "key"},
            "imagePullSecrets": [{"name": "registry"}],
            "extraArgs": ["--flash-attn", "on"],
            "env": [{"name": "GGML_CUDA_ENABLE_UNIFIED_MEMORY", "value": "1"}],
        },
        "resources": {
            "requests": {"cpu": 4, "memory": "16Gi"},
            "limits": {"memory": "16Gi", "nvidia.com/gpu": 1},
        },
        "podTemplate": {
            "metadata": {"annotations": {"team": "search"}, "labels": {"tier": "models"}},
            "spec": {
                "nodeSelector": {"gpu": "true"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "priorityClassName": "high",
                "runtimeClassName": "nvidia",
                "terminationGracePeriodSeconds": 300,
            },
        },
        "replicas": 2,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_the_objects_of_a_model_are_those_of_the_golden_file(name: str, regenerate_golden: bool) -> None:  # noqa: FBT001 - a fixture
    objects = objects_of(model_body(**CASES[name]), IMAGES)
    path = GOLDEN / f"{name}.yaml"
    if regenerate_golden:
        path.write_text(yaml.safe_dump_all(objects, sort_keys=False), encoding="utf-8")
    assert objects == list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
