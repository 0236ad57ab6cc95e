"""The turn for an agent, made from a claimed run, and the request data that is stored with a run."""

from __future__ import annotations

import asyncio
import functools
import time
from typing import Any

import msgspec

from a2a_tasks.agents import registry
from a2a_tasks.agents.conversation import Conversation
from a2a_tasks.agents.faults import AgentError
from a2a_tasks.agents.memory import Memory
from a2a_tasks.agents.security import is_shared
from a2a_tasks.agents.sources import Files, Secrets
from a2a_tasks.agents.steps import Journal
from a2a_tasks.agents.turn import Later, Turn
from a2a_tasks.caller import Caller, OwnerScope, scope_in
from a2a_tasks.conf import conf
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import UNSET, Message, Task, TaskState
from a2a_tasks.store.db import retry_until_answered, run_in_thread
from a2a_tasks.store.delegations import CallTree
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.tasks import ReferencesTooLarge, brief, find, find_before, references
from a2a_tasks.telemetry import log_context, tracing
from a2a_tasks.telemetry.log_context import LogContext
from a2a_tasks.telemetry.trace_context import NONE, AttemptBefore, TraceContext

__all__ = [
    "RunRequest",
    "bind_log_context",
    "find_reach",
    "find_task",
    "request_of",
    "run_request",
    "read_run_request",
    "turn_of",
]

_message = msgspec.json.Decoder(Message).decode


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of a request without its message, as stored with the run."""

    accepted_output_modes: tuple[str, ...] = ()
    return_immediately: bool = False
    history_length: int | None = None
    metadata: dict[str, Any] = {}
    extensions: tuple[str, ...] = ()
    #: The headers that the agent reads (`a2a_tasks/agents/forwarded_headers.py`).
    headers: dict[str, str] = {}
    principal: str = ""
    tenant: str = ""
    scopes: tuple[str, ...] = ()
    #: True if an operator sent the message in the caller's place.
    by_operator: bool = False
    #: The id that the client or the proxy gave the request, for the log.
    request_id: str = ""
    #: The trace context of the send, and its time in seconds since the epoch, if traces are on (`a2a_tasks.telemetry`).
    trace: TraceContext = NONE
    sent_at: float = 0.0
    #: If an agent has called this one: the key of the first task, and the agents from there down to the caller.
    root: int = 0
    path: tuple[str, ...] = ()
    #: The attempt before this one, if it died, or was parked or handed back.
    before: AttemptBefore | None = None


read_run_request = msgspec.json.Decoder(RunRequest).decode


def run_request(
    request: SendMessageRequest,
    caller: Caller,
    extensions: tuple[str, ...],
    *,
    headers: dict[str, str] | None = None,
    by_operator: bool = False,
    request_id: str = "",
    tree: CallTree | None = None,
) -> str:
    """Return the data of a request without its message, as JSON for the run's row."""
    trace = tracing.current()
    return write(
        RunRequest(
            accepted_output_modes=request.accepted_output_modes,
            return_immediately=request.return_immediately,
            history_length=request.history_length,
            metadata=dict(request.metadata or {}),
            extensions=extensions,
            headers=headers or {},
            principal=caller.principal,
            tenant=caller.tenant,
            scopes=tuple(sorted(caller.scopes)),
            by_operator=by_operator,
            request_id=request_id,
            root=tree.root if tree else 0,
            path=tree.path if tree else (),
            trace=trace,
            sent_at=time.time() if trace.traceparent else 0.0,
        )
    ).decode()


def find_reach(run: ClaimedRun, slug: str = "") -> OwnerScope:
    """Return the scope of the objects that the sender of the message may see now, in the tenant of the task.

    They are those of the agent with this slug, or of the run's own.
    """
    slug = slug or run.scope.agent
    agent, request = registry.find_hosted(slug), request_of(run)
    shares = agent is not None and is_shared(agent)
    return scope_in(run.scope.tenant, request.principal, slug, shared=shares)


def request_of(run: ClaimedRun) -> RunRequest:
    """Return the data of the request that the run answers, decoded."""
    return read_run_request(run.request or "{}")


def bind_log_context(run: ClaimedRun, request: RunRequest) -> None:
    """Let log lines of the present task, and of what it starts, name the run."""
    scope = run.scope
    log_context.current.set(
        LogContext(request.request_id, run.task_id, scope.agent, run.key, run.attempt, scope.tenant)
    )


async def find_task(run: ClaimedRun) -> Task | None:
    """Return the task of a run as it stands; None if it is gone. Raises Overloaded."""
    asked = functools.partial(run_in_thread, find, run.scope, run.task_id)
    found = await retry_until_answered(asked, repeatable=True)
    return None if found is None else found.view


def turn_of(
    run: ClaimedRun,
    journal: Journal | None,
    files: Files | None = None,
    secrets: Secrets | None = None,
    conversation: Conversation | None = None,
    request: RunRequest | None = None,
) -> Turn:
    """Make the turn of a run; history and references are read when the agent asks for them.

    `request` is that of the run, if it is decoded already.
    """
    request = request or request_of(run)
    message = _message(run.input)
    loop = asyncio.get_running_loop()

    async def history() -> list[Message]:
        found = await retry_until_answered(
            functools.partial(run_in_thread, find, run.scope, run.task_id), repeatable=True
        )
        stored = [] if found is None or found.view.history is UNSET else found.view.history
        return [_message(text) for text in stored] or [message]

    async def refers_to() -> list[Task]:
        reach, most = find_reach(run), int(conf.MAX_ARTIFACT_BYTES)
        find = functools.partial(run_in_thread, references, reach, message.reference_task_ids, most)
        try:
            return await retry_until_answered(find, repeatable=True)
        except ReferencesTooLarge as fault:
            text = f"The tasks that the message refers to have {fault.size} bytes; an agent reads at most {most}."
            raise AgentError(text) from fault

    async def find_task_before() -> Task | None:
        asked = functools.partial(run_in_thread, find_before, run)
        return await retry_until_answered(asked, repeatable=True)

    async def is_cancelled() -> bool:
        asked = functools.partial(run_in_thread, brief, run.scope, run.task_id)
        found = await retry_until_answered(asked, repeatable=True)
        return found is not None and found.state is TaskState.CANCELED

    return Turn(
        message=message,
        task_id=run.task_id,
        context_id=run.context_id,
        caller=Caller(
            principal=request.principal,
            tenant=request.tenant,
            scopes=frozenset(request.scopes),
            path=request.path,
        ),
        history=Later(history, loop),
        references=Later(refers_to, loop),
        memory=Memory(msgspec.json.decode(run.memory) if run.memory else {}),
        attempt=run.attempt,
        accepted_output_modes=request.accepted_output_modes,
        return_immediately=request.return_immediately,
        history_length=request.history_length,
        metadata=request.metadata,
        extensions=request.extensions,
        headers=request.headers,
        by_operator=request.by_operator,
        journal=journal,
        files=files,
        secrets=secrets,
        task=Later(find_task_before, loop),
        task_cancelled=Later(is_cancelled, loop),
        conversation=conversation,
        seed=f"{run.task}/{run.input_number}",
    )
