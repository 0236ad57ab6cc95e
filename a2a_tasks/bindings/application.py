"""The protocol's ASGI application: from a path to an agent and a binding.

/                                        JSON-RPC of the default agent, by POST; on a site that is only the host also
                                         its HTTP+JSON routes
/.well-known/agent-card.json, agent.json card of the default agent
/agents/                                 the cards of all agents
/agents/<slug>/                          JSON-RPC by POST; HTTP+JSON routes below
/agents/<slug>/.well-known/agent-card.json
/agents/<slug>/files/<id>                a file of a task, by a signed URL
/agents/<slug>/a2a                       as /agents/<slug>/
/agents/<slug>/a2a/<version>             as above, pinned to a dialect (`protocol.mounts`)
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from django.conf import settings

from a2a_tasks.access.authentication import catalogue, find_agent
from a2a_tasks.agents import Agent, registry
from a2a_tasks.bindings.card_endpoint import serve_card, serve_catalogue
from a2a_tasks.bindings.door import RequestContext
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.file_endpoint import match_file, requires_caller, serve_file
from a2a_tasks.bindings.http import (
    Receive,
    Request,
    Scope,
    Send,
    may_come_by,
    respond,
    without_body,
)
from a2a_tasks.bindings.jsonrpc_endpoint import serve_jsonrpc
from a2a_tasks.bindings.rest_endpoint import serve_rest
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import A2AError, InvalidRequest, MethodNotFound
from a2a_tasks.protocol.mounts import DETECTING, split

__all__ = ["Application"]

#: Matches a version after `a2a/`; any other segment there is a route or a tenant.
VERSION = re.compile(r"v?\d+\.\d")
OURS = "a2a_project.urls"
#: First segments of the default agent's HTTP+JSON routes below the root.
ROOT = frozenset({"message:send", "message:stream", "tasks", "extendedAgentCard", "v1"})
NOWHERE = "There is nothing at this path"
#: The largest number of agents that such an answer names.
NAMED = 20
#: For clients that resolve `.well-known/agent-card.json` relative to an address without the slash.
BESIDE = f"{NOWHERE}. The address of an agent ends with a slash: /agents/SLUG/"
CARDS = ([".well-known", "agent-card.json"], [".well-known", "agent.json"])


def _is_route_of_root(path: str) -> bool:
    """Return whether the path is such a route. Another project may have a page `/tasks` of its own."""
    return path.removeprefix("/").partition("/")[0] in ROOT and settings.ROOT_URLCONF == OURS


async def _refuse(send: Send, error: A2AError) -> None:
    """Answer a request that failed before its agent was known, equally for every agent."""
    await respond(send, error.http_status, rest.error_body(error), headers_of(error))


async def _agent(request: Request, slug: str, file: str | None) -> Agent | None:
    """Return the agent of that slug, if it exists for the caller. A signed URL of a file needs no other credentials.

    Raises WrongCredentials, Overloaded.
    """
    if file is not None and not requires_caller():
        return registry.find(slug)
    return await find_agent(request.credentials, slug)


class Application:
    """The ASGI application that serves every agent over both bindings with one table of operations."""

    def __init__(self, table: OperationTable) -> None:
        self._table = table

    @staticmethod
    def serves(path: str, method: str = "GET") -> bool:
        """Return whether the path, below A2A_PREFIX, belongs to the protocol; a POST to the root does, for clients without a path.

        Slashes too many are ignored: a site ends with one, and so some clients ask for `//agents/SLUG/`.
        """
        path = f"/{path.lstrip('/')}"
        ours = path.startswith(("/agents/", "/.well-known/agent")) or path == "/agents"
        return ours or (path == "/" and method == "POST") or _is_route_of_root(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if not may_come_by(request.headers.get("host", "")):
            await _refuse(send, InvalidRequest("This host name is not served here"))
            return
        if request.method == "HEAD":
            send = without_body(send)
        encoded = request.segments
        segments = list(map(unquote, encoded))
        if segments == ["agents"]:
            await serve_catalogue(request, send)
            return
        at_root = segments[:1] != ["agents"]
        slug = str(conf.DEFAULT_AGENT) if at_root else segments[1]
        path = segments if at_root else segments[2:]
        mount, below = split(path) if path[:1] == ["a2a"] else (DETECTING, path)
        is_file = below[:1] == ["files"] and mount is DETECTING and not at_root
        file = match_file(request, below) if is_file else None
        try:
            agent = await _agent(request, slug, file)
            others = [] if agent else await catalogue(request.credentials)
        except Exception as fault:  # noqa: BLE001 - after any failure the client gets an answer
            await _refuse(send, to_a2a_error(fault))
            return
        unknown = mount is DETECTING and path[:1] == ["a2a"] and below and VERSION.match(below[0])
        nowhere = at_root and below and below not in CARDS and below[0] not in ROOT
        if agent is None or unknown or nowhere:
            text = BESIDE if slug in CARDS[0] else NOWHERE
            names = ", ".join(one.slug for one in others[:NAMED])
            await _refuse(
                send, MethodNotFound(f"{text}. The agents here: {names}" if names else text)
            )
            return
        if file is not None:
            await serve_file(request, send, agent, file)
            return
        visit = RequestContext(request, agent, mount, self._table)
        if below in CARDS:
            await serve_card(visit, send, below[1])
        elif below:
            await serve_rest(visit, send, encoded[-len(below) :])
        else:
            await serve_jsonrpc(visit, send)
