"""The rows of the table of operations: the function of an operation, and its limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

from a2a_tasks.agents.host_extensions import USAGE
from a2a_tasks.operations.backpressure import limit_waiting, stream_limit
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.usage import add_usage
from a2a_tasks.protocol.catalogue import Operation
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.files import in_answer
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import UNSET, Task, replace
from a2a_tasks.streaming.stream import EventStream
from a2a_tasks.telemetry import attributes, tracing

__all__ = ["OperationHandler", "OperationTable"]


@dataclass(frozen=True, slots=True)
class OperationHandler:
    """An operation of A2A and its function, which is called with the decoded request and its context."""

    operation: Operation
    run: Callable[[Any, CallContext], Awaitable[Any]]
    #: The whole operation counts among the requests that wait for the database (`A2A_MAX_WAITING`).
    #: The two sends count themselves, until their message is accepted.
    waits_for_database: bool = False
    #: The answer may have tasks: their files get URLs to download them, their history has the length that the client
    #: asks for, and their usage is added if the client wants it.
    has_files: bool = False

    async def __call__(self, request: Any, call: CallContext) -> Any:
        """Execute the operation. `negotiate` has checked that the agent has the capability that it needs.

        Raises the errors of its function, and Overloaded or RateLimited at a limit.
        """
        with limit_waiting() if self.waits_for_database else nullcontext():
            if self.operation.streams:
                answer = await stream_limit.open(self.run, request, call)
            else:
                work = self.run(request, call)
                if isinstance(request, SendMessageRequest):
                    request = _forget_parts(request)
                answer = await work
        if tracing.is_on():
            _note_task(request, answer)
        if not self.has_files:
            return answer
        if USAGE.uri in call.extensions:
            answer = await add_usage(answer, request.tenant, call)
        length = getattr(request, "history_length", None)
        if isinstance(answer, EventStream):
            answer.link = call.link
            if length is not None:
                answer.first = _trim_history(answer.first, length)
            return answer
        if length is not None:
            answer = _trim_history(answer, length)
        return in_answer(answer, call.link)


def _forget_parts(request: SendMessageRequest) -> SendMessageRequest:
    """Return a request without the parts of its message: they may be large, and the answer may take minutes."""
    message = replace(request.message, parts=())
    return dataclasses.replace(request, message=message)


def _trim_history(answer: Any, length: int) -> Any:
    """Return a task with at most `length` newest messages, oldest first (A2A 1.0 §3.2.4); 0 = no history at all.

    Other answers are returned as they are: the tasks of a page are read with so many.
    """
    if not isinstance(answer, Task) or answer.history is UNSET or len(answer.history) <= length:
        return answer
    return replace(answer, history=answer.history[-length:] if length else UNSET)


def _note_task(request: Any, answer: Any) -> None:
    """Note the task of an answer, or of its stream, in the span of the operation; a name that a client invents is not noted."""
    about = answer.subject if isinstance(answer, EventStream) else answer
    if isinstance(about, Task | Subject):
        tracing.note(attributes.of_task(about.id, about.context_id))
    if isinstance(about, Task):
        tracing.note({"a2a.task.state": about.status.state.word})
    if isinstance(request, SendMessageRequest):
        tracing.note({"a2a.message.id": request.message.message_id[: attributes.MAX_ID]})
    if tenant := getattr(request, "tenant", ""):
        tracing.note({"a2a.tenant": tenant})


#: The operations by their names in A2A 1.0 (§3.1).
OperationTable: TypeAlias = Mapping[str, OperationHandler]
