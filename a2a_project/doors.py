"""Doors for clients of other protocols, by their paths below A2A_PREFIX. A door is imported with its first request.

/.well-known/ai-catalog.json, ard.json         catalog: the AI catalog of the agents, for registries; the second name is
                                               that of Agentic Resource Discovery 0.91
/mcp, /agents/<slug>/mcp                       mcp: the agents as tools of an MCP server
/.well-known/oauth-protected-resource[/...]    mcp: where its clients find the company's sign-in (RFC 9728)
/v1/models, /v1/models/<id>                    openai: the agents as models of OpenAI's API
/v1/chat/completions                           openai: conversations with them
/agents/<slug>/ag-ui                           ag-ui: an agent for front ends that speak AG-UI
"""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Mapping

from a2a_project.operations import TABLE
from a2a_tasks.bindings.errors import headers_of
from a2a_tasks.bindings.http import Receive, Request, Scope, Send, may_come_by, respond
from a2a_tasks.conf import opens_door
from a2a_tasks.guests import DOORS, load_guest
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import InvalidRequest

__all__ = ["find_door", "serve_door"]

#: A door: it answers a request with the table of operations.
Door = Callable[[Request, Send, OperationTable], Awaitable[None]]
PATHS: Mapping[str, re.Pattern[str]] = {
    "catalog": re.compile(r"/\.well-known/(ai-catalog|ard)\.json"),
    "mcp": re.compile(r"(/agents/[\w-]+)?/mcp/?|/\.well-known/oauth-protected-resource(/.*)?"),
    "openai": re.compile(r"/v1/(models(/[\w-]+)?|chat/completions)"),
    "ag-ui": re.compile(r"/agents/[\w-]+/ag-ui/?"),
}


def find_door(path: str) -> str:
    """Return the name of the open door that serves a path; empty = none."""
    return next(
        (name for name, paths in PATHS.items() if paths.fullmatch(path) and opens_door(name)), ""
    )


async def serve_door(name: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request by a door."""
    request = Request(scope, receive)
    if may_come_by(request.headers.get("host", "")):
        await _load(name)(request, send, TABLE)
        return
    error = InvalidRequest("This host name is not served here")
    await respond(send, error.http_status, rest.error_body(error), headers_of(error))


@functools.cache
def _load(name: str) -> Door:
    door: Door = load_guest(DOORS, name)
    return door
