"""`python mcp_strands.py URL VERSION` where strands-agents is installed: its client of MCP."""

from __future__ import annotations

import asyncio

from mcp.client.streamable_http import streamable_http_client
from mcp_talk import URL, checks_of, main
from strands.tools.mcp import MCPClient


def call(message: str) -> str:
    """What the model gets."""
    with MCPClient(lambda: streamable_http_client(URL)) as client:
        found = client.call_tool_sync("1", "demo", {"message": message, "data": None})
        return str(found["content"])


if __name__ == "__main__":
    main(checks_of(lambda message: asyncio.to_thread(call, message)))
