"""`tools/call`: a message to an agent, and the answer as far as there is one when the client wants to hear."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import anyio
import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams

from a2a_doors.hang_ups import cancel_later, cancel_now
from a2a_doors.mcp.answers import make_error, make_handle, make_result
from a2a_doors.mcp.clients import Abilities
from a2a_doors.mcp.questions import ask, key_of, read_reply, read_state, seal_state
from a2a_doors.mcp.request import REQUEST, McpRequest
from a2a_doors.texts import name_fields, show_message, show_parts
from a2a_doors.visit import DIALECT, Visit, read_task_id
from a2a_tasks.bindings.door import load_dialect
from a2a_tasks.bindings.errors import to_a2a_error
from a2a_tasks.conf import conf
from a2a_tasks.operations.conversation import at_most, count_answer, insist
from a2a_tasks.operations.repeats import name_repeat
from a2a_tasks.protocol import errors, requests
from a2a_tasks.protocol.jsonrpc import JsonRpcCall
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import (
    INTERRUPTED,
    TERMINAL,
    EventKind,
    LogEvent,
    read_status_body,
)
from a2a_tasks.protocol.values import ArtifactUpdate, Task, TaskState
from a2a_tasks.streaming.stream import EventStream

__all__ = ["call_tool", "make_message", "note"]

#: Seconds after which a common client gives up by itself, and lets its model try again: that is no wish to stop.
IMPATIENT = (4.5, 5.5)
#: Most characters of one report of progress.
MAX_PROGRESS = 1000
UNKNOWN_TOOL = "Unknown tool"
_update = msgspec.json.Decoder(ArtifactUpdate).decode
#: Calls that are under way in this process, by what a client that cancels one can say of it.
_open: defaultdict[tuple[str, ...], list[_ToolCall]] = defaultdict(list)


def _make_call_key(asked: McpRequest, request_id: Any) -> tuple[str, ...]:
    """Return what tells the calls of clients apart; ids of requests begin at 0 in every client."""
    request = asked.request
    identity = request.credentials.identity
    principal = identity.caller.principal if identity else ""
    marks = (principal, request.credentials.address, request.header("user-agent"))
    return (*marks, write(request_id).decode())


async def note(asked: McpRequest, call: JsonRpcCall) -> None:
    """End a call that the client cancels by a notification, if it can only be that one.

    Clients of the older era keep the stream open meanwhile, and the library does not know which one it is.
    """
    params = call.params if isinstance(call.params, Mapping) else {}
    if call.method != "notifications/cancelled" or "requestId" not in params:
        return
    found = _open.get(_make_call_key(asked, params["requestId"]), [])
    if len(found) == 1:
        found[0].give_up()


async def call_tool(ctx: Any, params: CallToolRequestParams) -> dict[str, Any]:
    """Answer a call of a tool. Raises MCPError for one that is not there, and for wrong arguments."""
    asked: McpRequest = ctx.request.scope[REQUEST]
    mark = _make_call_key(asked, ctx.request_id)
    try:
        visit = await asked.enter(params.name)
        call = _ToolCall(visit, Abilities.of(ctx), ctx.session.report_progress)
        _open[mark].append(call)
        try:
            return await call.answer(params)
        finally:
            _open[mark].remove(call)
            if not _open[mark]:
                del _open[mark]
    except Exception as raised:  # noqa: BLE001 - after any failure the client gets an answer
        fault = to_a2a_error(raised)
        asked.observed.note_fault(fault)
        return _refuse(fault)


def _refuse(fault: errors.A2AError) -> dict[str, Any]:
    """Return the answer to a call that failed. Raises MCPError where no model could do better with words."""
    match fault:
        case errors.Overloaded() | errors.RateLimited():
            seconds = fault.metadata.get("retry_after", "1")
            return make_error(f"Busy; call again in {seconds} seconds. ({fault.message})")
        case errors.MethodNotFound() | errors.Forbidden() | errors.Unauthenticated():
            raise MCPError(INVALID_PARAMS, UNKNOWN_TOOL)
        case errors.InvalidParams():
            raise MCPError(INVALID_PARAMS, name_fields(fault))
        case errors.InternalError():
            raise MCPError(INTERNAL_ERROR, fault.message)
    return make_error(f"{fault.message}.")


def make_message(
    parts: list[dict[str, Any]], task: str | None = None, context: str | None = None
) -> requests.SendMessageRequest:
    """Return the request that sends a message. Raises InvalidParams."""
    ids = {name: value for name, value in (("taskId", task), ("contextId", context)) if value}
    message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": parts, **ids}
    request = load_dialect(DIALECT).decode("SendMessage", {"message": message})
    assert isinstance(request, requests.SendMessageRequest)  # noqa: S101 - the only one of this operation
    return replace(request, wants_task=True)


class _ToolCall:
    """A call of a tool that is under way."""

    def __init__(self, visit: Visit, can: Abilities, report: Any) -> None:
        self.visit, self.can, self._report = visit, can, report
        self.slug = visit.agent.slug
        #: The wait inside is no stream of the client, so that agents need not declare streams.
        self._context = visit.call("SendMessage")
        self._begun = asyncio.get_running_loop().time()
        #: The id of the task, once there is one, and whether this call has begun its turn.
        self._task = ""
        self._began = False
        self._hearing = anyio.CancelScope()

    def give_up(self) -> None:
        """Wait no longer, and cancel the task unless somebody else follows it: equal calls are one task."""
        self._hearing.cancel()

    async def answer(self, params: CallToolRequestParams) -> dict[str, Any]:
        """Return the result of the call. Raises the errors of the operations."""
        if params.request_state is not None:
            return await self._go_on(params.request_state, params.input_responses or {})
        given = {
            name: value for name, value in (params.arguments or {}).items() if value is not None
        }
        parts = _read_parts(given)
        if named := given.get("task"):
            task = await self._get(named)
            if not key_of(task):
                return await self._wait(task)
            if not parts:
                return self._show(task)
            return await self._send(make_message(parts, named), f"mcp answer {key_of(task)}")
        if not parts:
            raise errors.InvalidParams.field("message", "must not be empty")
        request = make_message(parts, context=given.get("context"))
        key = await name_repeat(request, self._context, float(conf.REPEAT_SECONDS))
        return await self._send(request, key)

    async def _go_on(self, state: str, replies: Mapping[str, Any]) -> dict[str, Any]:
        """Go on with a call that was repeated with the answer to the agent's question."""
        named, key = read_state(state, self.visit.caller)
        task = await self._get(named)
        reply = replies.get(key)
        if key != key_of(task) or (reply and task.status.state is TaskState.AUTH_REQUIRED):
            return await self._wait(task)  # it was answered already, or the user is at the page
        if reply is None or reply.action != "accept":
            return self._show(task, asks=reply is None)
        request = make_message(read_reply(task, reply.content or {}), named)
        try:
            return await self._send(request, f"mcp answer {key}")
        except errors.InvalidParams as fault:
            return self._show(task, fault=name_fields(fault))

    async def _send(self, request: requests.SendMessageRequest, key: str | None) -> dict[str, Any]:
        self._began = True
        with anyio.CancelScope(shield=True):  # a client that leaves now may have a task already
            stream = await self.visit.converse(request, streams=False, idempotency_key=key)
        return await self._follow(stream)

    async def _wait(self, task: Task) -> dict[str, Any]:
        """Follow a task that this call has not begun."""
        if task.status.state in TERMINAL:
            return self._show(task)
        request = requests.SubscribeToTaskRequest(id=task.id, lenient=True)
        return await self._follow(await self._run("SubscribeToTask", request))

    async def _follow(self, stream: EventStream) -> dict[str, Any]:
        """Wait for the end of the turn, and show the task as it is then."""
        stream.take_first()  # nothing keeps it from here on
        self._task = stream.subject.id
        feed = stream.follower.feed
        gone = self._began
        with count_answer() as count:
            try:
                async with at_most(self._patience()):
                    with self._hearing:
                        await self._hear(stream, count)
                gone = False
            finally:
                with anyio.CancelScope(shield=True):
                    await stream.close()
                if gone and feed is not None and not self._is_impatient():
                    cancel_later(self.visit, self._task, feed.task)
            if self._hearing.cancel_called and feed is not None:
                await cancel_now(self.visit, self._task, feed.task)
            return self._show(await insist(self._get, self._task))

    async def _hear(self, stream: EventStream, count: Callable[[Iterable[LogEvent]], None]) -> None:
        async for events in stream.batches(float(conf.KEEPALIVE_SECONDS)):
            count(events or ())
            for event in events or ():
                if words := _show_text(event):
                    await self._report(event.number, None, words[:MAX_PROGRESS])
                if event.state in INTERRUPTED | TERMINAL:
                    return

    def _patience(self) -> float:
        """Return the seconds for which the client waits for the end of a turn."""
        if self.can.tasks:
            return float(conf.MCP_HANDLE_SECONDS)
        most = float(conf.MAX_BLOCK_SECONDS)
        return most if self.can.modern else min(most, float(conf.MCP_OLD_SECONDS))

    def _is_impatient(self) -> bool:
        waited = asyncio.get_running_loop().time() - self._begun
        shortest, longest = IMPATIENT
        return self.can.modern and not self.can.tasks and shortest <= waited <= longest

    def _show(self, task: Task, *, asks: bool = True, fault: str = "") -> dict[str, Any]:
        """Return what this client can take of a task: its end, a handle, a question, or words about it."""
        if task.status.state in TERMINAL:
            return make_result(task, self.slug)
        questions = ask(task, self.can, fault) if self.can.modern and asks else {}
        if self.can.tasks and (questions or task.status.state is not TaskState.INPUT_REQUIRED):
            return {"resultType": "task", **make_handle(task, self.slug)}
        if questions:
            state = seal_state(task, self.visit.caller)
            return {
                "resultType": "input_required",
                "inputRequests": questions,
                "requestState": state,
            }
        again = f'call this tool again with task="{task.id}"'
        note = (
            f"To answer, {again}." if key_of(task) else f"Still working; {again} to get the answer."
        )
        return make_result(task, self.slug, "\n\n".join(filter(None, [fault, note])))

    async def _get(self, task: str) -> Task:
        request = requests.GetTaskRequest(id=read_task_id(task), history_length=0)
        found: Task = await self._run("GetTask", request)
        return found

    async def _run(self, operation: str, request: Any) -> Any:
        return await self.visit.context.table[operation](request, self._context)


def _read_parts(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of the message in the arguments of a call. Raises InvalidParams."""
    for name, kind in (("message", str), ("data", dict), ("context", str), ("task", str)):
        if name in given and not isinstance(given[name], kind):
            words = "a string" if kind is str else "an object"
            raise errors.InvalidParams.field(name, f"must be {words}")
    if "message" not in given:
        raise errors.InvalidParams.field("message", "is missing")
    text = [{"text": given["message"]}] if given["message"] else []
    return [*text, {"data": given["data"]}] if "data" in given else text


def _show_text(event: LogEvent) -> str:
    if event.kind is EventKind.ARTIFACT:
        return show_parts(part for part in _update(event.body).artifact.parts if part.text)
    message = read_status_body(event.body).message
    return show_message(message) if message else ""
