"""The bindings by the names that agent cards give them (A2A 1.0 §4.4.6), and the doors for other protocols."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Binding"]


class Binding(StrEnum):
    """A binding or door by which a request came."""

    JSONRPC = "JSONRPC"
    REST = "HTTP+JSON"
    GRPC = "GRPC"
    MCP = "mcp"
    OPENAI = "openai"
    AG_UI = "ag-ui"
