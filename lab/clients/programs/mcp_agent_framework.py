"""`python mcp_agent_framework.py URL VERSION` where agent-framework-core is installed: its tools of MCP."""

from __future__ import annotations

from agent_framework import MCPStreamableHTTPTool
from mcp_talk import URL, checks_of, main


async def call(message: str) -> str:
    """What the model gets."""
    async with MCPStreamableHTTPTool(name="host", url=URL) as tool:
        found = await tool.call_tool("demo", message=message)
        return "".join(content.text or "" for content in found)


if __name__ == "__main__":
    main(checks_of(call))
