#!/bin/sh
# Package:   mcp 2.3.0, beside fastmcp 4.1.2 (PyPI)
# Behaviour: MCPServer parses a string argument as JSON if the parameter is not annotated with `str` alone. A tool with
#            `text: str | None` gets None for the word "null", and refuses the text of a JSON object or list, such as the
#            content of a package.json, as "not a valid string"; with `str` it takes both. FastMCP takes all of them.
# Output:    mcp, str, null: 'null'
#            mcp, str, {"a": 1}: '{"a": 1}'
#            mcp, str | None, null: None
#            mcp, str | None, {"a": 1}: refused
#            mcp, str | None, a note: 'a note'
#            fastmcp, str | None, null: 'null'
#            fastmcp, str | None, {"a": 1}: '{"a": 1}'
# Run:       sh findings/mcp_reads_texts_as_json.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet mcp==2.3.0 fastmcp==4.1.2
cat > "$place/try.py" <<'PYTHON'
import asyncio

from fastmcp import Client, FastMCP
from mcp.client import Client as McpClient
from mcp.server.mcpserver import MCPServer


def keep(text: str) -> str:
    return repr(text)


def maybe(text: str | None = None) -> str:
    return repr(text)


async def call(server, tool, text):
    server.add_tool(tool)
    name, connect = ("fastmcp", Client) if isinstance(server, FastMCP) else ("mcp", McpClient)
    async with connect(server) as client:
        result = await client.call_tool(tool.__name__, {"text": text})
    seen = "refused" if result.is_error else result.content[0].text
    print(f"{name}, {'str' if tool is keep else 'str | None'}, {text}: {seen}")


async def call_all():
    for text in ("null", '{"a": 1}'):
        await call(MCPServer("one"), keep, text)
    for text in ("null", '{"a": 1}', "a note"):
        await call(MCPServer("one"), maybe, text)
    for text in ("null", '{"a": 1}'):
        await call(FastMCP("two"), maybe, text)


asyncio.run(call_all())
PYTHON
"$place/venv/bin/python" "$place/try.py" 2>/dev/null | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(\(mcp\|fastmcp\), .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
