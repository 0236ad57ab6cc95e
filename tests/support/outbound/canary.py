"""Nobody may come here: a listener on every address of this machine, and an ear at the interpreter itself."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Canary", "canary", "watched"]


class Canary:
    """Listens, and accepts nobody: whoever connected waits in the kernel's queue."""

    def __init__(self) -> None:
        self._sockets = [socket.create_server(("0.0.0.0", 0))]  # noqa: S104 - any address is the point
        self.port: int = self._sockets[0].getsockname()[1]
        self._sockets.append(socket.create_server(("::", self.port), family=socket.AF_INET6))
        for sock in self._sockets:
            sock.setblocking(False)

    @property
    def sings(self) -> bool:
        """Has anybody connected?"""
        return any(_somebody(sock) for sock in self._sockets)

    def close(self) -> None:
        """Listen no longer."""
        for sock in self._sockets:
            sock.close()


def _somebody(sock: socket.socket) -> bool:
    try:
        sock.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextmanager
def canary() -> Iterator[Canary]:
    """A canary for a while."""
    bird = Canary()
    try:
        yield bird
    finally:
        bird.close()


#: What the interpreter tells of, while somebody listens (it has no way to stop listening).
_heard: list[tuple[str, Any]] | None = None
EVENTS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if _heard is not None and event in EVENTS:
        _heard.append((event, args[-1] if event == "socket.connect" else args))


sys.addaudithook(_hear)


@contextmanager
def watched() -> Iterator[list[tuple[str, Any]]]:
    """Every connection and every look-up of a name that this process begins meanwhile."""
    global _heard  # noqa: PLW0603 - a hook cannot be taken away
    heard: list[tuple[str, Any]] = []
    _heard = heard
    try:
        yield heard
    finally:
        _heard = None
