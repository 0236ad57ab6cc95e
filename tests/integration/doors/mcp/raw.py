"""Messages of MCP as they are, for what no published client sends."""

from __future__ import annotations

from typing import Any

from a2a_project.asgi import application
from tests.support.bindings.client import Client, Response

__all__ = ["ALL", "FORM", "NEW", "OLD", "TASKS", "ask", "head_of", "message"]

NEW, OLD = "2026-07-28", "2025-11-25"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
FORM: dict[str, Any] = {"elicitation": {"form": {}}}
ALL: dict[str, Any] = {**TASKS, "elicitation": {"form": {}, "url": {}}}
META = "io.modelcontextprotocol/"


def message(
    method: str, params: dict[str, Any], *, version: str = NEW, can: Any = None, number: Any = 1
) -> dict[str, Any]:
    """A message of one era, which says what its client can."""
    meta = {
        f"{META}protocolVersion": version,
        f"{META}clientInfo": {"name": "raw", "version": "1"},
        f"{META}clientCapabilities": can or {},
    }
    more = {"_meta": meta} if version == NEW else {}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, **more}}


def head_of(method: str, params: dict[str, Any], version: str = NEW) -> dict[str, str]:
    """The headers of such a message."""
    head = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": version,
    }
    if version != NEW:
        return head
    named = {"mcp-name": params["name"]} if "name" in params else {}
    return {**head, "mcp-method": method, **named}


async def ask(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    version: str = NEW,
    can: Any = None,
    headers: dict[str, str] | None = None,
    path: str = "/mcp",
) -> Response:
    """Ask, and read the whole answer; of an event stream only the last event."""
    given = params or {}
    head = {**head_of(method, given, version), **(headers or {})}
    body = message(method, given, version=version, can=can)
    answer = await Client(application).post(path, body, head)
    if (answer.header("content-type") or "").startswith("text/event-stream"):
        lines = [line for line in answer.body.splitlines() if line.startswith(b"data: ")]
        return Response(answer.status, answer.headers, lines[-1].removeprefix(b"data: "))
    return answer
