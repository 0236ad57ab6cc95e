"""A request at a door on its way to an operation: agent, caller and call context are found as at every binding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from a2a_tasks.access.api_keys import PATTERN
from a2a_tasks.access.authentication import find_agent
from a2a_tasks.agents import Agent
from a2a_tasks.agents.host_extensions import USAGE
from a2a_tasks.agents.usage import ModelUsage
from a2a_tasks.bindings.door import RequestContext, load_dialect
from a2a_tasks.bindings.event_stream import STREAM_HEADERS
from a2a_tasks.bindings.http import NOSNIFF, Headers, Request, Send
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects.reading import MAX_ID_LENGTH
from a2a_tasks.protocol.errors import ContentTypeNotSupported, MethodNotFound, TaskNotFound
from a2a_tasks.protocol.jsontext import read, write
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.protocol.requests import GetTaskRequest, SendMessageRequest
from a2a_tasks.streaming.stream import EventStream
from a2a_tasks.telemetry.observed_request import ObservedRequest

__all__ = ["Visit", "admit_bearer_keys", "begin_stream", "enter", "read_document", "read_task_id"]

#: The key of callers without credentials: clients of OpenAI's API refuse to go without a key.
NO_KEY = "anonymous"
#: The dialect of the tasks that doors make: the newest, which has a member for everything.
DIALECT = "v10"


@dataclass(frozen=True, slots=True)
class Visit:
    """A request to one agent, whose caller is known."""

    context: RequestContext
    caller: Caller
    binding: Binding

    @property
    def agent(self) -> Agent:
        """The agent that is asked."""
        return self.context.agent

    def call(self, operation: str, **changes: Any) -> CallContext:
        """Return the context of an operation, by its name in A2A 1.0; `changes` are fields of it.

        Raises the error of an operation whose capability the agent does not declare.
        """
        call = self.context.enter(load_dialect(DIALECT), self.caller, self.binding, operation)
        return replace(call, **changes) if changes else call

    async def converse(
        self, request: SendMessageRequest, *, streams: bool, **changes: Any
    ) -> EventStream:
        """Send a message and return the stream of its turn. The caller closes it (`a2a_doors.hang_ups`).

        `streams`: the client reads it as it comes. A door needs the stream in any case, to know the task from the
        beginning, so an agent may have it also if its card declares no streaming. The message is read once more, as that of
        a client of A2A: bounds and forms are the same. Raises the errors of the operation.
        """
        declared = streams and self.agent.streaming
        call = self.call("SendStreamingMessage" if declared else "SendMessage", **changes)
        said = {"message": msgspec.json.decode(write(request.message))}
        message = load_dialect(DIALECT).decode("SendMessage", said).message  # type: ignore[union-attr]
        request = replace(request, message=message, wants_task=True, pauses=INTERRUPTED)
        stream: EventStream = await self.context.table["SendStreamingMessage"](request, call)
        if streams:
            self.context.observed.streams(stream)
        return stream

    async def read_usage(self, task_id: str) -> dict[str, ModelUsage]:
        """Return the usage of a task so far by model; nothing where the agent reports none. Raises as `run`."""
        if not self.agent.reports_usage:
            return {}
        request = GetTaskRequest(id=task_id, history_length=0)
        task = await self.run("GetTask", request, extensions=(USAGE.uri,))
        members = msgspec.json.decode(task.metadata) if task.metadata else {}
        return msgspec.convert(members.get(USAGE.uri, {}), dict[str, ModelUsage])

    async def run(self, operation: str, request: Any, **changes: Any) -> Any:
        """Execute an operation with its decoded request. Raises the errors of the operation."""
        return await self.context.table[operation](request, self.call(operation, **changes))


def read_task_id(text: str) -> str:
    """Return the id by which a client names a task. Raises TaskNotFound for one that is longer than any."""
    if len(text) > MAX_ID_LENGTH:
        raise TaskNotFound
    return text


def admit_bearer_keys(request: Request) -> None:
    """Let the request of a client that has only Authorization bring an API key there, or nothing, or NO_KEY."""
    word, _, text = request.header("authorization").strip().partition(" ")
    key = text.strip()
    if word.lower() == "bearer" and (key in {"", NO_KEY} or PATTERN.fullmatch(key)):
        del request.headers["authorization"]
        if key not in {"", NO_KEY}:
            request.headers.setdefault(str(conf.API_KEY_HEADER).lower(), key)


async def read_document(request: Request) -> Any:
    """Return the JSON of a request. Raises ContentTypeNotSupported, TooLarge, ParseError, InvalidParams."""
    if called := request.unreadable:
        raise ContentTypeNotSupported("Send application/json", mediaType=called)
    return read(await request.body(), max_depth=int(conf.MAX_JSON_DEPTH))


async def begin_stream(send: Send, headers: Headers) -> None:
    """Begin an answer of server-sent events."""
    given = [*STREAM_HEADERS, NOSNIFF, *headers]
    await send({"type": "http.response.start", "status": 200, "headers": given})


async def enter(
    request: Request,
    slug: str,
    binding: Binding,
    table: OperationTable,
    observed: ObservedRequest | None = None,
) -> Visit:
    """Find the agent and the caller by the headers alone; observe the request by `visit.context.observed`.

    `observed`: the observation that has begun already. Raises MethodNotFound for an agent that does not exist for the
    caller, and Unauthenticated, InsufficientScope, RateLimited, Overloaded.
    """
    agent = await find_agent(request.credentials, slug)
    if agent is None:
        raise MethodNotFound("No such agent")
    context = RequestContext(request, agent, MOUNTS[DIALECT], table, observed or ObservedRequest())
    return Visit(context, await context.identify(), binding)
