"""Ports for servers that tests begin, on 127.0.0.1.

None from where the system takes ports for outgoing connections (Linux 32768 and up, others 49152): somebody else might
be given one before the server has it, and a server that is down for a while would not find its own port free.
"""

from __future__ import annotations

import contextlib
import secrets
import socket

from a2a_tasks.outbound.policy import SERVICES

__all__ = ["free_port", "free_ports"]

#: None of those that the guard of outbound calls refuses, either.
PORTS = sorted({*range(20_000, 32_000)} - SERVICES)


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens at."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)


def free_port() -> int:
    """A port that nobody listens at. Raises OSError if none is found."""
    for _ in range(1000):
        port: int = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")
