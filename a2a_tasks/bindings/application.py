"""The protocol's ASGI application: from a path to an agent and a binding.

/                                        JSON-RPC of the default agent, by POST
/.well-known/agent-card.json, agent.json card of the default agent
/agents/                                 the cards of all agents
/agents/<slug>/                          JSON-RPC by POST; HTTP+JSON routes below
/agents/<slug>/.well-known/agent-card.json
/agents/<slug>/files/<id>                a file of a task, by a signed URL
/agents/<slug>/a2a                       the same
/agents/<slug>/a2a/<version>             the same, pinned to a dialect (`protocol.mounts`)
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from a2a_tasks.access.callers import existing
from a2a_tasks.agents import Agent, registry
from a2a_tasks.bindings.card_endpoint import serve_card, serve_catalogue
from a2a_tasks.bindings.circumstances import Table, Visit
from a2a_tasks.bindings.faults import headers_of, told
from a2a_tasks.bindings.file_endpoint import authenticated, serve_file, serving_file
from a2a_tasks.bindings.http import Receive, Request, Scope, Send, respond, without_body
from a2a_tasks.bindings.jsonrpc_endpoint import serve_jsonrpc
from a2a_tasks.bindings.rest_endpoint import serve_rest
from a2a_tasks.conf import conf
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import A2AError, MethodNotFound
from a2a_tasks.protocol.mounts import DETECTING, split

__all__ = ["Application"]

#: What names a version after `a2a/`; anything else there is a route or a tenant.
VERSION = re.compile(r"v?\d+\.\d")
CARDS = ([".well-known", "agent-card.json"], [".well-known", "agent.json"])


async def _refuse(send: Send, error: A2AError) -> None:
    """What is said before there is an agent to say it: the same of each."""
    await respond(send, error.http_status, rest.error_body(error), headers_of(error))


async def _agent(request: Request, slug: str, file: str | None) -> Agent | None:
    """The agent of that slug, if there is one for who asks. A signed URL of a file vouches for whoever has it.

    Raises WrongCredentials, Overloaded.
    """
    if file is not None and not authenticated():
        return registry.find(slug)
    return await existing(request.credentials, slug)


class Application:
    """Serves every agent over both bindings with one table of operations."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @staticmethod
    def serves(path: str, method: str = "GET") -> bool:
        """Is this the protocol's? A POST to the root is: clients that know no path send there."""
        ours = path.startswith(("/agents/", "/.well-known/agent")) or path == "/agents"
        return ours or (path == "/" and method == "POST")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method == "HEAD":
            send = without_body(send)
        encoded = request.segments
        segments = [unquote(segment) for segment in encoded]
        if segments == ["agents"]:
            await serve_catalogue(request, send)
            return
        at_root = segments[:1] != ["agents"]
        slug = str(conf.DEFAULT_AGENT) if at_root else segments[1]
        path = segments if at_root else segments[2:]
        mount, below = split(path)
        file = serving_file(request, below) if mount is DETECTING and not at_root else None
        try:
            agent = await _agent(request, slug, file)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the client gets an answer
            await _refuse(send, told(fault))
            return
        unknown = mount is DETECTING and path[:1] == ["a2a"] and below and VERSION.match(below[0])
        nowhere = at_root and below and below not in CARDS
        if agent is None or unknown or nowhere:
            await _refuse(send, MethodNotFound("There is nothing at this path"))
            return
        if file is not None:
            await serve_file(request, send, agent, file)
            return
        visit = Visit(request, agent, mount, self._table)
        if below in CARDS:
            await serve_card(visit, send, below[1])
        elif below:
            await serve_rest(visit, send, encoded[-len(below) :])
        else:
            await serve_jsonrpc(visit, send)
