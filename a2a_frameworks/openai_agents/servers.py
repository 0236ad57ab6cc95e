"""MCP servers of agents of the OpenAI Agents SDK. Each is connected while a run uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from agents.mcp import MCPServer, MCPServerManager

__all__ = ["ConnectedServers"]

#: Maximum seconds for a server to start and answer; some install themselves first.
CONNECT_SECONDS = 60.0


@dataclass
class _Use:
    """The use of a server in this process."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    runs: int = 0
    #: The connection, until it is closed; None = there is none of ours.
    manager: MCPServerManager | None = None

    async def connect(self, server: MCPServer) -> None:
        """Connect the server. Close first a connection that a cancelled run may have left."""
        await self.close()
        # connected in a task of its own: the task that closes it must be the same
        self.manager = MCPServerManager(
            [server],
            connect_timeout_seconds=CONNECT_SECONDS,
            strict=True,
            suppress_cancelled_error=False,
            connect_in_parallel=True,
        )
        await self.manager.connect_all()

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self.manager is not None:
            await self.manager.cleanup_all()
            self.manager = None


_uses: WeakKeyDictionary[MCPServer, _Use] = WeakKeyDictionary()


class ConnectedServers:
    """The servers that one run uses. Runs at the same time share a connection."""

    def __init__(self) -> None:
        self._used: list[_Use] = []

    async def connect(self, servers: Sequence[MCPServer]) -> None:
        """Connect servers, unless the app or another run has. Raises what the SDK raises."""
        for server in servers:
            use = _uses.setdefault(server, _Use())
            async with use.lock:
                if use.runs == 0:
                    if use.manager is None and getattr(server, "session", None) is not None:
                        continue  # the app has connected it, and will close it
                    await use.connect(server)
                use.runs += 1
            self._used.append(use)

    async def close(self) -> None:
        """Close the connections that no other run uses."""
        while self._used:
            use = self._used.pop()
            async with use.lock:
                use.runs -= 1
                if use.runs == 0:
                    await use.close()
