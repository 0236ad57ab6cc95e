"""The protocol's ASGI application: from a path to an agent and a binding.

/.well-known/agent-card.json, agent.json card of the default agent
/agents/                                 the cards of all agents
/agents/<slug>/                          JSON-RPC by POST; HTTP+JSON routes below
/agents/<slug>/.well-known/agent-card.json
/agents/<slug>/a2a, .../a2a/1.0          the same, pinned to a version
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from a2a_tasks.agents import Agent, registry
from a2a_tasks.bindings.card_endpoint import serve_card, serve_catalogue
from a2a_tasks.bindings.circumstances import Table
from a2a_tasks.bindings.http import Receive, Request, Scope, Send, respond
from a2a_tasks.bindings.jsonrpc_endpoint import serve_jsonrpc
from a2a_tasks.bindings.rest_endpoint import serve_rest
from a2a_tasks.conf import conf
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.dialects import SUPPORTED_VERSIONS
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.protocol.mounts import split

__all__ = ["Application"]

#: What names a version after `a2a/`; anything else there is a route or a tenant.
VERSION = re.compile(r"v?\d")
CARDS = ([".well-known", "agent-card.json"], [".well-known", "agent.json"])


class Application:
    """Serves every agent over both bindings with one table of operations."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @staticmethod
    def serves(path: str) -> bool:
        """Is this path the protocol's?"""
        return path.startswith(("/agents/", "/.well-known/agent")) or path == "/agents"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        segments = request.segments
        if segments[0] == "agents" and len(segments) == 1:
            await serve_catalogue(request, send, registry.agents())
            return
        slug = segments[1] if segments[0] == "agents" else str(conf.DEFAULT_AGENT)
        agent = registry.find(slug)
        path = segments[2:] if segments[0] == "agents" else segments
        mount, document = split(path)
        if agent is not None and document in CARDS:
            await serve_card(request, send, agent, mount, document[1])
            return
        below = _below_mount(path)
        if agent is None or below is None:
            error = MethodNotFound("There is nothing at this path")
            await respond(send, error.http_status, rest.error_body(error))
        else:
            await self._serve(request, send, agent, below)

    async def _serve(
        self, request: Request, send: Send, agent: Agent, below: Sequence[str]
    ) -> None:
        if not below:
            await serve_jsonrpc(request, send, agent, self._table)
        else:
            await serve_rest(request, send, agent, self._table, below)


def _below_mount(segments: list[str]) -> list[str] | None:
    """What follows `a2a` or `a2a/<version>`; None for a version that is not mounted."""
    if segments[:1] != ["a2a"]:
        return segments
    pinned = segments[1:2]
    if not pinned or not VERSION.match(pinned[0]):
        return segments[1:]
    return segments[2:] if pinned[0] in SUPPORTED_VERSIONS else None
