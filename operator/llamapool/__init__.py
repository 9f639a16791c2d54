"""A Kubernetes operator that serves hybrid and recurrent GGUF models on a pooled llama-server."""
