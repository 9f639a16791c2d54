"""A real single-machine Kubernetes node for tests: `python -m tests.cluster --help`.

`up` builds what the node needs into a cache, starts every component with certificates of its own authority
and waits until pods can run. All state is in one folder, all processes are in one cgroup, all mounts and
sockets in the lab's own namespaces, so that `down` finds and removes all of it, whatever state the lab is in.
"""
