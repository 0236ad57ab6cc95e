"""The door for clients of MCP, of both eras: 2026-07-28 without sessions, and the older ones with a handshake.

The protocol is that of the library `mcp`, whose low-level server is imported with the first message.
"""

from a2a_doors.mcp.endpoint import serve

__all__ = ["serve"]
