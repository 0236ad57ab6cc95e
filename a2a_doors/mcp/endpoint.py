"""The door by its paths: the metadata of the sign-in, and messages of MCP."""

from __future__ import annotations

import asyncio
from typing import Any

from a2a_doors.mcp.metadata import serve_metadata
from a2a_doors.mcp.request import REQUEST, McpRequest
from a2a_doors.visit import admit_bearer_keys
from a2a_tasks.bindings.errors import to_a2a_error
from a2a_tasks.bindings.http import ClientGone, Request, Send, give_again
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.binding import Binding

__all__ = ["serve"]

_server: Any = None


async def serve(request: Request, send: Send, table: OperationTable) -> None:
    """Answer a request at the door."""
    if request.segments[0] == ".well-known":
        await serve_metadata(request, send)
        return
    admit_bearer_keys(request)
    asked = McpRequest(request, table)
    with asked.observed.by(Binding.MCP, request.headers) as observed:
        try:
            await asked.admit()
            body, call = await asked.read()
            server = _server or await asyncio.to_thread(_load_server)
            await server.note(asked, call)
            manager = await server.start()
            scope, receive = {**request.scope, REQUEST: asked}, give_again(body, request.receive)
            del body, call  # they may be large, and the answer may take minutes
            await manager.handle_request(scope, receive, send)
        except ClientGone as gone:
            observed.note_fault(gone)
        except Exception as raised:  # noqa: BLE001 - after any failure the client gets an answer
            fault = to_a2a_error(raised)
            observed.note_fault(fault)
            await asked.refuse(send, fault)


def _load_server() -> Any:
    """Import the server, which takes a second and 56 MiB."""
    global _server  # noqa: PLW0603
    from a2a_doors.mcp import server  # noqa: PLC0415 - with the first message

    _server = server
    return server
