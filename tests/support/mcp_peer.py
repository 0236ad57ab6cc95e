"""An MCP server in the process of the test, for those with a token: `async with serving() as peer`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

from tests.journeys.waiting import eventually
from tests.support.ports import free_port

__all__ = ["HEADERS", "TOKEN", "Peer", "QuietServer", "serving"]

HEADERS = 'headers = { Authorization = "Bearer ${BANK_TOKEN}" }\n'
TOKEN = "Bearer s3cret"


class QuietServer(uvicorn.Server):
    """It leaves the signals of the process to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them."""
        yield


class Peer:
    """An MCP server that counts, for those with the token."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refused = 0
        server = MCPServer("peer")

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def look(what: str) -> str:
            self.calls.append(f"look {what}")
            return f"saw {what}"

        @server.tool()
        def pay(amount: int) -> str:
            self.calls.append(f"pay {amount}")
            if amount < 0:
                raise ValueError("no debts")
            return f"paid {amount}"

        self.app = server.streamable_http_app()
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve those with the token."""
        if (
            scope["type"] == "http"
            and dict(scope["headers"]).get(b"authorization") != TOKEN.encode()
        ):
            self.refused += 1
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self.app(scope, receive, send)

    def declare(self, folder: Path) -> Path:
        """Write a file that declares it as `bank` for all tenants."""
        file = folder / "servers.toml"
        file.write_text(f'[servers.bank]\nurl = "{self.url}"\n{HEADERS}')
        return file


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Peer]:
    """Serve as long as the block lasts."""
    made, port = Peer(), free_port()
    server = QuietServer(uvicorn.Config(made, port=port, lifespan="on", log_config=None, ws="none"))
    work = asyncio.create_task(server.serve())
    await eventually(lambda: asyncio.sleep(0, server.started), "the server listens")
    made.url = f"http://127.0.0.1:{port}/mcp"
    yield made
    server.should_exit = True
    await work
