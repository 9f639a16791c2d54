"""Ports of 127.0.0.1 that nothing listens on."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """So many different ones, free a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
