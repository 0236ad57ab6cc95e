#!/bin/sh
# Package:   langchain-mcp-adapters 0.3.2 with langchain-core 1.8.3 and mcp 1.30.0 (PyPI)
# Behaviour: a tool of an MCP server whose result has sound beside its text raises NotImplementedError in the client, so
#            that the model gets nothing of it and the run ends. An image beside the text is taken.
# Output:    image: text, image
#            audio: NotImplementedError
# Run:       sh findings/langchain_mcp_audio.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet langchain-mcp-adapters==0.3.2 langchain-core==1.8.3 mcp==1.30.0
cat > "$place/try.py" <<'PYTHON'
import asyncio
import logging

from langchain_mcp_adapters.tools import load_mcp_tools
from mcp.server.fastmcp import FastMCP
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import AudioContent, ImageContent, TextContent

logging.disable(logging.ERROR)
server = FastMCP("server")


@server.tool(structured_output=False)
def image() -> list:
    return [TextContent(type="text", text="hi"), ImageContent(type="image", data="AAAA", mimeType="image/png")]


@server.tool(structured_output=False)
def audio() -> list:
    return [TextContent(type="text", text="hi"), AudioContent(type="audio", data="AAAA", mimeType="audio/wav")]


async def main():
    async with create_connected_server_and_client_session(server._mcp_server) as session:
        for tool in await load_mcp_tools(session):
            try:
                found = await tool.ainvoke({})
                print(f"{tool.name}: {', '.join(block['type'] for block in found)}")
            except Exception as fault:
                print(f"{tool.name}: {type(fault).__name__}")


asyncio.run(main())
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen" 2>/dev/null
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
image: text, image
audio: NotImplementedError
TEXT
cmp "$place/seen" "$place/expected"
