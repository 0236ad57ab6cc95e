"""Connections between two requests: few, not for long, and never to an address that is no longer the host's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from a2a_tasks.outbound.web_address import IPAddress
from a2a_tasks.outbound.wire import Wire

__all__ = ["Endpoint", "Idle"]

#: Scheme, host and port.
Endpoint = tuple[str, str, int]


class Idle:
    """The open connections nobody uses. One loop."""

    def __init__(self, *, most_each: int = 16, most: int = 512, seconds: float = 15.0) -> None:
        self._most_each, self._most, self._seconds = most_each, most, seconds
        self._wires: dict[Endpoint, dict[Wire, asyncio.TimerHandle]] = {}
        self._count = 0

    def take(self, endpoint: Endpoint, addresses: Sequence[IPAddress]) -> Wire | None:
        """The one used last that is still open, to one of these addresses."""
        for wire in reversed(list(self._wires.get(endpoint, ()))):
            if wire.peer in addresses:
                self._forget(endpoint, wire)
                if wire.quiet:
                    return wire
                wire.abort()
        return None

    def keep(self, endpoint: Endpoint, wire: Wire) -> None:
        """Take in a connection that can carry another request; close it if there are enough."""
        mine = self._wires.get(endpoint, {})
        if self._count >= self._most or len(mine) >= self._most_each:
            wire.abort()
            return
        self._wires[endpoint] = mine
        loop = asyncio.get_running_loop()
        mine[wire] = loop.call_later(self._seconds, self._drop, endpoint, wire)
        self._count += 1

    def close(self) -> None:
        """Close them all."""
        for endpoint, mine in list(self._wires.items()):
            for wire in list(mine):
                self._drop(endpoint, wire)

    def _drop(self, endpoint: Endpoint, wire: Wire) -> None:
        self._forget(endpoint, wire)
        wire.abort()

    def _forget(self, endpoint: Endpoint, wire: Wire) -> None:
        mine = self._wires[endpoint]
        mine.pop(wire).cancel()
        self._count -= 1
        if not mine:
            del self._wires[endpoint]
