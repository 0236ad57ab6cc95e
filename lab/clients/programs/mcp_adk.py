"""`python mcp_adk.py URL VERSION` where google-adk[mcp] is installed: its toolset of MCP."""

from __future__ import annotations

from types import SimpleNamespace

from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from mcp_talk import URL, checks_of, main


async def call(message: str) -> str:
    """What the model gets."""
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=URL))
    try:
        demo = next(tool for tool in await toolset.get_tools() if tool.name == "demo")
        context = SimpleNamespace(state={}, function_call_id="1", _invocation_context=None)
        return str(await demo.run_async(args={"message": message}, tool_context=context))
    finally:
        await toolset.close()


if __name__ == "__main__":
    main(checks_of(call))
