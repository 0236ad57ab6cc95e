"""The library's server in this process: it is begun with the first message, and ends with the process."""

from __future__ import annotations

import asyncio
import contextvars
import logging

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolRequestParams
from sse_starlette.sse import AppStatus

from a2a_doors.mcp import tasks
from a2a_doors.mcp.calls import call_tool, note
from a2a_doors.mcp.clients import TASKS
from a2a_doors.mcp.tools import SCHEMA, list_tools
from a2a_tasks import process_lifetime
from a2a_tasks.conf import conf, project

__all__ = ["note", "start"]

INSTRUCTIONS = (
    "Each tool is an agent. Where an answer names a task or a context, "
    "call the same tool again with it to go on there."
)
# The library tells of every request, and the one beneath it would cut streams before calls are answered at a drain.
logging.getLogger("mcp.server").setLevel(logging.WARNING)
AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
_running: asyncio.Future[StreamableHTTPSessionManager] | None = None


async def start() -> StreamableHTTPSessionManager:
    """Return the manager of requests, which runs until the process stops."""
    global _running  # noqa: PLW0603
    if _running is None:
        _running = asyncio.get_running_loop().create_future()
        over = asyncio.Event()
        # It is no part of the request that begins it.
        work = asyncio.create_task(_run(_running, over), context=contextvars.Context())

        async def stop() -> None:
            global _running  # noqa: PLW0603
            _running = None
            over.set()
            await work

        process_lifetime.on_stop(stop)
    return await asyncio.shield(_running)


async def _run(running: asyncio.Future[StreamableHTTPSessionManager], over: asyncio.Event) -> None:
    manager = StreamableHTTPSessionManager(
        _make_server(),
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=int(conf.MAX_BODY_BYTES),
    )
    async with manager.run():
        running.set_result(manager)
        await over.wait()


def _make_server() -> Server:
    server = Server(
        "a2a-host",
        version=project.A2A_HOST_VERSION,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        get_tool_input_schema=lambda _: SCHEMA,
    )
    server.middleware.clear()  # the door has a span for each request
    server.extensions = {TASKS: {}}
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.add_request_handler("tasks/get", tasks.TaskParams, tasks.get_task)
    server.add_request_handler("tasks/update", tasks.UpdateParams, tasks.update_task)
    server.add_request_handler("tasks/cancel", tasks.TaskParams, tasks.cancel_task)
    return server
