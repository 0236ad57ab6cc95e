"""A request before the server of the library sees it: method, origin, caller, size and form of the body are checked."""

from __future__ import annotations

import contextlib
from urllib.parse import unquote, urlsplit

from a2a_doors.mcp.metadata import point_to
from a2a_doors.visit import Visit, enter
from a2a_tasks.access.authentication import list_usable
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.errors import headers_of
from a2a_tasks.bindings.http import ClientGone, Request, Send, is_served, list_hosts, respond
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol import jsonrpc
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.errors import (
    A2AError,
    Forbidden,
    InvalidParams,
    InvalidRequest,
    MethodNotAllowed,
    MethodNotFound,
    Unauthenticated,
)
from a2a_tasks.telemetry.observed_request import ObservedRequest

__all__ = ["REQUEST", "McpRequest"]

#: The key of the request in the scope that the library's server gets.
REQUEST = "a2a_doors.mcp"
#: Most bytes of a refused request that are read for its id.
MAX_REFUSED = 16 * 1024
#: Most values in a message: the library reads them a second time, and writes them once. 95,000 lists in each other held
#: the process for 70 milliseconds of CPU.
MAX_VALUES = 50_000
#: Most answers to questions in a call, which has one question: the library takes 5 µs for each, three times.
MAX_REPLIES = 100


class McpRequest:
    """One request, the agents that its caller may use here, and how their operations are reached."""

    def __init__(self, request: Request, table: OperationTable) -> None:
        self.request, self.table = request, table
        self.observed = ObservedRequest()
        self.agents: list[Agent] = []
        self.id = jsonrpc.NULL

    async def enter(self, slug: str) -> Visit:
        """Return a visit to an agent. Raises MethodNotFound for one that is no tool here, and the errors of `enter`."""
        # Where all agents are tools, it is the host that refuses a caller, and records it.
        if self.request.segments[0] == "agents" and slug != self.agents[0].slug:
            raise MethodNotFound("Unknown tool")
        return await enter(self.request, slug, Binding.MCP, self.table, self.observed)

    async def admit(self) -> None:
        """Check the head of the request, and find the agents. Raises the error of a request that is refused."""
        if self.request.method != "POST":
            raise MethodNotAllowed(allow="POST")
        origin = self.request.header("origin")
        ours = urlsplit(str(conf.PUBLIC_URL)).hostname or ""
        if origin and not is_served(urlsplit(origin).netloc, (*list_hosts(), ours)):
            raise Forbidden("Pages of this origin may not call this host")
        if self.request.unreadable:
            raise InvalidRequest("Send application/json")
        agents = await list_usable(self.request.credentials)
        if (place := list(map(unquote, self.request.segments)))[0] == "agents":
            agents = [agent for agent in agents if agent.slug == place[1]]
            if not agents:
                # One that the caller may only see is refused as at every door, and recorded.
                await enter(self.request, place[1], Binding.MCP, self.table, self.observed)
                raise MethodNotFound("No such agent")
        self.agents = agents

    async def read(self) -> tuple[bytes, jsonrpc.JsonRpcCall]:
        """Return the body, and the call in it. Raises TooLarge, ParseError, InvalidRequest, InvalidParams."""
        body = await self.request.body()
        try:
            depth = int(conf.MAX_JSON_DEPTH)
            call = jsonrpc.read_call(body, max_depth=depth, max_values=MAX_VALUES)
        except jsonrpc.BadCall as bad:
            self.id = bad.id
            raise bad.cause from None
        self.id = call.id
        replies = call.params.get("inputResponses") if isinstance(call.params, dict) else None
        if isinstance(replies, dict) and len(replies) > MAX_REPLIES:
            raise InvalidParams(f"inputResponses has more than {MAX_REPLIES} members")
        return body, call

    async def refuse(self, send: Send, fault: A2AError) -> None:
        """Send an error as JSON-RPC, with the id of the request: some clients show only such a body to their users."""
        length = self.request.header("content-length")
        if self.id == jsonrpc.NULL and length.isdecimal() and int(length[:9]) <= MAX_REFUSED:
            with contextlib.suppress(A2AError, ClientGone):
                await self.read()
        headers = headers_of(fault, self.agents[0] if len(self.agents) == 1 else None)
        if isinstance(fault, Unauthenticated):
            headers = point_to(headers, self.request)
        wrong = [text for _, text in fault.violations] if isinstance(fault, InvalidParams) else []
        message = ": ".join([fault.message, *wrong])
        body = jsonrpc.error(self.id, {"code": fault.code, "message": message})
        await respond(send, fault.http_status, body, headers)
