"""An MCP server with a tool, which notes its process and its calls: `python -m tests.support.mcp_server LEDGER`, over its standard streams."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server import MCPServer


def serve(ledger: Path) -> None:
    """Serve until the input ends."""
    server = MCPServer("greeter")

    @server.tool()
    def greet(name: str) -> str:
        """Greet."""
        with ledger.open("a") as file:
            file.write(f"{name}\n")
        if name == "Nobody":
            raise ValueError("nobody is there")
        return f"hello {name}"

    with ledger.open("a") as file:
        file.write(f"pid-{os.getpid()}\n")
    server.run("stdio")


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
