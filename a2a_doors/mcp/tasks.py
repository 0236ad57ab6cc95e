"""The extension of tasks: handles of long calls, which clients poll, answer and cancel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import mcp_types as mcp
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import decode_header_value

from a2a_doors.mcp.answers import make_handle, make_result
from a2a_doors.mcp.calls import make_message
from a2a_doors.mcp.clients import TASKS, Abilities
from a2a_doors.mcp.questions import ask, key_of, read_reply
from a2a_doors.mcp.request import REQUEST
from a2a_doors.texts import name_fields
from a2a_doors.visit import Visit, read_task_id
from a2a_tasks.bindings.errors import to_a2a_error
from a2a_tasks.protocol import errors
from a2a_tasks.protocol.requests import CancelTaskRequest, GetTaskRequest
from a2a_tasks.protocol.values import Task, TaskState

__all__ = ["TaskParams", "UpdateParams", "cancel_task", "get_task", "update_task"]

NO_TASK = "Unknown task"
#: The code of errors of this host.
BUSY = -32000


class TaskParams(mcp.RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateParams(TaskParams):
    """The parameters of `tasks/update`: answers by the keys of their questions."""

    input_responses: dict[str, Any]


async def get_task(ctx: Any, params: TaskParams) -> dict[str, Any]:
    """Return a task as it is: with its result, if it has ended, and with its question, if it waits."""
    visit, task = await _find(ctx, params)
    slug, state = visit.agent.slug, task.status.state
    told = make_handle(task, slug)
    if questions := ask(task, Abilities.of(ctx)):
        return {**told, "status": "input_required", "inputRequests": questions}
    if state is TaskState.INPUT_REQUIRED:
        # The client cannot ask its user, so its model gets the question.
        again = f'To answer, call this tool again with task="{task.id}".'
        return {**told, "status": "completed", "result": make_result(task, slug, again)}
    if told["status"] == "completed":
        told["result"] = make_result(task, slug)
    return told


async def update_task(ctx: Any, params: UpdateParams) -> dict[str, Any]:
    """Give the answer to the question that the task waits with. Answers to older questions are ignored."""
    visit, task = await _find(ctx, params)
    key = key_of(task)
    given = params.input_responses.get(key) if key else None
    if given is None or task.status.state is TaskState.AUTH_REQUIRED:
        return {}
    reply = mcp.ElicitResult.model_validate(given, by_name=False)
    if reply.action == "accept":
        request = make_message(read_reply(task, reply.content or {}), task.id)
        with _tell_faults(ctx), contextlib.suppress(errors.IdempotencyConflict, errors.TaskEnded):
            await visit.run(
                "SendMessage",
                replace(request, return_immediately=True),
                idempotency_key=f"mcp answer {key}",
            )
    return {}


async def cancel_task(ctx: Any, params: TaskParams) -> dict[str, Any]:
    """Cancel a task; one that has ended is acknowledged as well."""
    visit, task = await _find(ctx, params)
    with _tell_faults(ctx), contextlib.suppress(errors.TaskNotCancelable):
        await visit.run("CancelTask", CancelTaskRequest(id=task.id))
    return {}


async def _find(ctx: Any, params: TaskParams) -> tuple[Visit, Task]:
    """Return the task of a handle. Raises MCPError, the same for every task that is not there for the caller."""
    can = Abilities.of(ctx)
    if not can.modern:
        raise MCPError(mcp.METHOD_NOT_FOUND, "Method not found", ctx.method)
    if not can.tasks:
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, f"This needs {TASKS}", needed)
    named = ctx.request.headers.get("mcp-name")  # some clients leave it out
    if named is not None and decode_header_value(named) != params.task_id:
        raise MCPError(mcp.HEADER_MISMATCH, "Mcp-Name is not the taskId")
    slug, _, task_id = params.task_id.partition("/")
    with _tell_faults(ctx):
        request = GetTaskRequest(id=read_task_id(task_id), history_length=0)
        visit = await ctx.request.scope[REQUEST].enter(slug)
        return visit, await visit.run("GetTask", request)


@contextlib.contextmanager
def _tell_faults(ctx: Any) -> Iterator[None]:
    """Raise the errors of operations as those of the protocol."""
    try:
        yield
    except (errors.MethodNotFound, errors.Forbidden, errors.Unauthenticated, errors.TaskNotFound):
        raise MCPError(mcp.INVALID_PARAMS, NO_TASK) from None
    except (errors.Overloaded, errors.RateLimited) as busy:
        ctx.request.scope[REQUEST].observed.note_fault(busy)
        seconds = busy.metadata.get("retry_after", "1")
        raise MCPError(BUSY, f"Busy; call again in {seconds} seconds") from None
    except errors.InvalidParams as fault:
        raise MCPError(mcp.INVALID_PARAMS, name_fields(fault)) from None
    except Exception as raised:  # noqa: BLE001 - the library would tell what it says
        error = to_a2a_error(raised)
        ctx.request.scope[REQUEST].observed.note_fault(error)
        raise MCPError(error.code, error.message) from None
