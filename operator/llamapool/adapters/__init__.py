"""The ways to the world outside: the Kubernetes API, the servers' metrics, the operator's own metrics."""
