"""Pure rules: no I/O, no clock, no Kubernetes. Times and facts are passed in."""
