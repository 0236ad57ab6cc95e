#!/bin/sh
# Package:   mcp 2.3.0 with httpx2 2.16.2 (PyPI)
# Behaviour: its client refuses server-sent events of more than 1 MiB, and its server puts each answer into one event,
#            however large. So a call of a tool whose answer is larger fails after the work was done, with an MCPError.
#            Without progress a server of the newest version answers by JSON, which has no limit: the same call fails
#            only if a `progress_callback` is given, or the server speaks an older version. `max_sse_event_size=None` of
#            `streamable_http_client` lifts the limit.
# Output:    plain: 2000000 characters
#            with progress: MCPError, SSE stream failed: Server-sent event exceeded the 1048576 byte limit.
#            older version: MCPError, SSE stream failed: Server-sent event exceeded the 1048576 byte limit.
#            with progress, without a limit: 2000000 characters
# Run:       sh findings/mcp_client_refuses_its_servers_answers.sh   (needs python3 and PyPI; half a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet mcp==2.3.0 httpx2==2.16.2 uvicorn==0.54.0
cat > "$place/try.py" <<'PYTHON'
import asyncio
import logging
import socket

import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError

logging.disable()
library = MCPServer("library")


@library.tool()
async def read(context: Context) -> str:
    """Read a long book."""
    await context.report_progress(1, 2)
    return "x" * 2_000_000


async def note(*_):
    """Take the progress."""


async def call(name, server, mode="auto", **more):
    async with Client(server, mode=mode) as client:
        try:
            answer = await client.call_tool("read", {}, **more)
            print(f"{name}: {len(answer.content[0].text)} characters")
        except MCPError as fault:
            print(f"{name}: {type(fault).__name__}, {fault}")


async def call_all():
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    config = uvicorn.Config(library.streamable_http_app(), log_config=None, ws="none")
    server = uvicorn.Server(config)
    work = asyncio.create_task(server.serve([listening]))
    await call("plain", url)
    await call("with progress", url, progress_callback=note)
    await call("older version", url, mode="legacy")
    unlimited = streamable_http_client(url, max_sse_event_size=None)
    await call("with progress, without a limit", unlimited, progress_callback=note)
    server.should_exit = True
    await work


asyncio.run(call_all())
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n '/^# Run/q; s/^# Output:    //p; s/^#            \(\(with progress\|older\).*: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
