"""POST /agents/<slug>/ag-ui: a run of AG-UI 1.0, answered by server-sent events."""

from __future__ import annotations

from typing import Any

from a2a_doors.ag_ui.events import Event, RunEvents, RunShapes
from a2a_doors.ag_ui.run_input import Resume, RunInput, open_run, read_input
from a2a_doors.hang_ups import serve_until_gone
from a2a_doors.texts import name_fields
from a2a_doors.visit import Visit, admit_bearer_keys, begin_stream, enter, read_document
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.http import ClientGone, Headers, Request, Send, respond
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.errors import A2AError, MethodNotAllowed, TaskNotCancelable
from a2a_tasks.protocol.jsontext import on_one_line, write
from a2a_tasks.protocol.requests import CancelTaskRequest, GetTaskRequest
from a2a_tasks.protocol.sse import KEEP_ALIVE
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.telemetry.observed_request import ObservedRequest

__all__ = ["serve"]

DRAINING = "This process stops and the task goes on: run again"


async def serve(request: Request, send: Send, table: OperationTable) -> None:
    """Answer one request of AG-UI."""
    admit_bearer_keys(request)
    shared = _share(request)
    if request.method == "OPTIONS" and shared:
        await respond(send, 204, b"", shared)
        return
    with ObservedRequest().by(Binding.AG_UI, request.headers) as observed:
        try:
            await _run(request, send, table, observed, shared)
        except ClientGone as gone:
            observed.note_fault(gone)
        except Exception as raised:  # noqa: BLE001 - after any failure the client gets an answer
            fault = to_a2a_error(raised)
            observed.note_fault(fault)
            body = write({"error": _describe(fault)})
            await respond(send, fault.http_status, body, [*headers_of(fault), *shared])


def _share(request: Request) -> Headers:
    """Return the headers for a page of an origin that the operator names; none for any other."""
    origin, allowed = request.header("origin"), str(conf.AG_UI_ORIGINS).replace(" ", "").split(",")
    if not origin or origin not in allowed:
        return [(b"vary", b"Origin")]
    names = f"content-type, accept, authorization, {conf.API_KEY_HEADER}"
    return [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", names.encode()),
        (b"access-control-expose-headers", b"retry-after"),
    ]


def _describe(fault: A2AError) -> dict[str, Any]:
    """Return an error as JSON: clients show it, but read no headers."""
    seconds = fault.metadata.get("retry_after")
    wait = {"retryAfterSeconds": int(seconds)} if seconds else {}
    return {"code": fault.reason or type(fault).__name__, "message": name_fields(fault), **wait}


async def _run(
    request: Request, send: Send, table: OperationTable, observed: ObservedRequest, shared: Headers
) -> None:
    if request.method != "POST":
        raise MethodNotAllowed(allow="POST")
    visit = await enter(request, request.segments[1], Binding.AG_UI, table, observed)
    run = read_input(await read_document(request))
    if run.resume and run.resume[0].status == "cancelled":
        await _cancel(visit, run, run.resume[0], send, shared)
        return
    tools = (TOOL_EVENTS.uri,) if visit.agent.reports_tools else ()
    stream = await open_run(visit, run, extensions=tools)
    events = RunEvents(run, visit.agent.slug, stream)
    del run  # its messages may be large, and the stream may last for hours

    async def answer() -> None:
        await begin_stream(send, shared)
        await _send(send, *events.begin())
        try:
            async for told in events.follow(float(conf.KEEPALIVE_SECONDS)):
                if events.over and stream.number == 1:  # RUN_ERROR has a place for it, too
                    told[-1].update(await _read_usage(visit, stream.subject.id))
                await _send(send, *told)
        except Exception as raised:  # noqa: BLE001 - after any failure the client is informed
            fault = to_a2a_error(raised)
            await _send(send, events.fail(fault.reason or "OVERLOADED", fault.message))
        await send({"type": "http.response.body", "body": b""})

    async def say_drained() -> None:
        await _send(send, events.fail("DRAINING", DRAINING), more=False)

    await serve_until_gone(visit, stream, answer(), say_drained)


async def _read_usage(visit: Visit, task_id: str) -> Event:
    """Return the usage as a member of the last event, of a run that began its task: runs count for themselves."""
    usage = [
        {
            "model": model,
            "inputTokens": used.input_tokens,
            "outputTokens": used.output_tokens,
            "totalTokens": used.input_tokens + used.output_tokens,
        }
        for model, used in (await visit.read_usage(task_id)).items()
    ]
    return {"usage": usage} if usage else {}


async def _cancel(visit: Visit, run: RunInput, entry: Resume, send: Send, shared: Headers) -> None:
    """Cancel the task of an interrupt that is not to be answered.

    Raises TaskNotFound; TaskNotWaiting and TaskNotCancelable if it was answered meanwhile.
    """
    request = CancelTaskRequest(id=entry.task_id, history_length=0)
    try:
        task = await visit.run("CancelTask", request, question=entry.question)
    except TaskNotCancelable:
        task = await visit.run("GetTask", GetTaskRequest(id=entry.task_id, history_length=0))
        if task.status.state is not TaskState.CANCELED:
            raise
    shapes = RunShapes(run, visit.agent.slug, task.id, task.context_id)
    await begin_stream(send, shared)
    await _send(send, *shapes.begin(), shapes.finish({"type": "cancelled"}), more=False)


async def _send(send: Send, *events: Event, more: bool = True) -> None:
    """Send events, each on one line; a comment if there are none. Line ends are LF: the client takes no CRLF."""
    body = b"".join(b"data: %b\n\n" % on_one_line(write(event)) for event in events)
    await send({"type": "http.response.body", "body": body or KEEP_ALIVE, "more_body": more})
