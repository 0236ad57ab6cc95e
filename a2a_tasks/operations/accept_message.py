"""Acceptance of a message from a client or an operator: its checks, its files, and the transaction that stores it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from a2a_tasks.agents import switches
from a2a_tasks.agents.forwarded_headers import pick
from a2a_tasks.conf import conf
from a2a_tasks.execution import dispatch
from a2a_tasks.execution.turns import run_request
from a2a_tasks.operations.agent_versions import MessageRoute, find_route
from a2a_tasks.operations.backpressure import (
    check_budgets,
    count_unheard,
    queue_limit,
    tenant_limit,
    weigh,
)
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.capabilities import require_capability
from a2a_tasks.protocol.errors import (
    ContentTypeNotSupported,
    InvalidParams,
    Overloaded,
    TaskNotFound,
)
from a2a_tasks.protocol.files import SCHEME
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.operators import RESERVED
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.titles import title_of
from a2a_tasks.protocol.values import UNSET, Message, Part, replace
from a2a_tasks.store import event_log, hooks
from a2a_tasks.store.accept import accept_batched
from a2a_tasks.store.db import run_to_completion
from a2a_tasks.store.files import store_large_files
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.idempotency import IdempotencyKey, remember
from a2a_tasks.store.records import Accepted, NewTask, PreclaimedLease, TaskExists
from a2a_tasks.store.replies import reply
from a2a_tasks.store.versions import VersionMoved

__all__ = ["MAX_ATTEMPTS", "accept", "check", "check_limits", "check_size", "makes_task"]

#: Maximum number of attempts when requests for one task, or under one key, collide.
MAX_ATTEMPTS = 50
#: Maximum length of a media type that is repeated in an error message.
MAX_SHOWN_LENGTH = 100
#: Seconds after which a client may retry to begin a task with an agent that takes no new ones.
DRAIN_RETRY_SECONDS = "60"


def check(request: SendMessageRequest, call: CallContext) -> None:
    """Raise the error of an invalid message before anything is written.

    Raises InvalidParams, ContentTypeNotSupported, PushNotificationNotSupported.
    """
    if request.push_config is not None:
        require_capability(call.agent, "push_notifications")
    check_limits(request, by_host=bool((call.answers and call.answers.by_operator) or call.tree))
    # A message to a task of an agent that calls others may answer a form of theirs.
    takes_data = bool(call.agent.calls and (request.message.task_id or request.named))
    for index, part in enumerate(request.message.parts):
        _check_part(part, index, call, takes_data=takes_data)


def check_limits(request: SendMessageRequest, *, by_host: bool = False) -> None:
    """Raise InvalidParams for fields that are too large, and for metadata that only operators and the host may set."""
    found = list(_too_much(request))
    if not by_host:
        metadata = request.message.metadata or {}
        found += [
            ("message.metadata", f"must not have {key}: only the host sets it")
            for key in RESERVED
            if key in metadata
        ]
    if found:
        raise InvalidParams(violations=found)


def _too_much(request: SendMessageRequest) -> Iterator[tuple[str, str]]:
    message = request.message
    if len(message.parts) > conf.MAX_PARTS:
        yield "message.parts", f"must have at most {conf.MAX_PARTS} parts"
        return
    for name, named in (
        ("extensions", message.extensions),
        ("referenceTaskIds", message.reference_task_ids),
    ):
        if len(named) > conf.MAX_REFERENCES:
            yield f"message.{name}", f"must name at most {conf.MAX_REFERENCES}"
    for path, metadata in _metadata(request):
        if len(metadata) > conf.MAX_METADATA_KEYS:
            yield path, f"must have at most {conf.MAX_METADATA_KEYS} keys"
        elif len(write(metadata)) > conf.MAX_METADATA_BYTES:
            yield path, f"must have at most {conf.MAX_METADATA_BYTES} bytes"


def _metadata(request: SendMessageRequest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    message = request.message
    if request.metadata:
        yield "metadata", request.metadata
    if message.metadata:
        yield "message.metadata", message.metadata
    for number, part in enumerate(message.parts):
        if part.metadata:
            yield f"message.parts[{number}].metadata", part.metadata


def _check_part(part: Part, index: int, call: CallContext, *, takes_data: bool) -> None:
    media_type = media_type_of(part)
    if not (call.agent.accepts(media_type) or (takes_data and part.data is not UNSET)):
        short = media_type[:MAX_SHOWN_LENGTH]
        raise ContentTypeNotSupported(f"The agent does not take {short}", mediaType=short)
    if isinstance(part.url, str) and part.url.lower().startswith(SCHEME):
        raise InvalidParams.field(f"message.parts[{index}]", f"must not have a URL of {SCHEME}")


def makes_task(request: SendMessageRequest, call: CallContext) -> bool:
    """Return whether the client gets a task whatever the agent answers."""
    return request.wants_task or not call.agent.replies_directly


async def accept(
    request: SendMessageRequest,
    call: CallContext,
    key: IdempotencyKey | None = None,
    *companions: Companion,
) -> Accepted:
    """Accept the message: for a new task, or for an existing one. `companions` are written in the same transaction.

    Raises TaskNotFound, TaskEnded, ContextMismatch, InvalidParams; TaskNotWaiting for an operator's answer that comes
    too late; KeyTaken; Overloaded and RateLimited. If the caller is cancelled, the message may be accepted all the same.
    """
    if call.tree is None:  # of a tree its first task was admitted, which waits for the others
        await tenant_limit.admit(call.caller.quota_key)
    await check_budgets(call.agent.slug, call.caller)
    new_context = request.message.context_id or str(uuid.uuid4())
    for _ in range(MAX_ATTEMPTS):
        accepting = asyncio.ensure_future(_accept(request, call, key, companions, new_context))
        try:
            return await asyncio.shield(accepting)
        except VersionMoved:
            continue
        except asyncio.CancelledError:
            accepting.add_done_callback(_start_unheard)
            accepting.add_done_callback(count_unheard(request.message.parts))
            raise
    raise Overloaded


def _start_unheard(accepting: asyncio.Future[Accepted]) -> None:
    """Start the run that this process has claimed for a caller who has left."""
    heard = not accepting.cancelled() and not accepting.exception()
    if heard and (run := accepting.result().claimed_run):
        dispatch.start_run(run)


async def _accept(
    request: SendMessageRequest,
    call: CallContext,
    key: IdempotencyKey | None,
    companions: tuple[Companion, ...],
    new_context: str,
) -> Accepted:
    """Accept it once. Raises VersionMoved if its conversation goes to another version at this moment."""
    scope = call.scope(request.tenant)
    task_id = request.named or request.message.task_id or ""
    route = await find_route(call.agent, scope, task_id=task_id, context_id=new_context)
    # Workers start their runs themselves, and the event loop of a page ends with its answer.
    may_start_here = not (call.answers or dispatch.by_workers())
    if not may_start_here:
        await queue_limit.admit(route.queue)
    async with store_large_files(request, scope) as (request, files):
        lease, accepted = _claim_slot(request, call, route) if may_start_here else None, None
        try:
            if may_start_here and lease is None:
                await queue_limit.admit(route.queue)
            make = functools.partial(
                _make_new_task,
                request,
                call,
                route=route,
                lease=lease,
                key=key,
                companions=(*files, *companions, *route.companions),
            )
            accepted = await _write(request, call, make, task_id, new_context)
            return accepted
        except Overloaded as away:
            # It may have been accepted, and nobody else starts its run.
            if lease and not away.undone:
                dispatch.take_back(lease.token)
            raise
        finally:
            if lease is not None and (accepted is None or accepted.claimed_run is None):
                dispatch.give_back(lease)


async def _write(
    request: SendMessageRequest,
    call: CallContext,
    make: Callable[[str, str], NewTask],
    task_id: str,
    new_context: str,
) -> Accepted:
    """Write the message that `make` returns for a task and a context."""
    context_id = request.message.context_id or ""
    if request.named:
        # The client names its tasks: continue the one of that name, or begin it. Between the two attempts, another
        # request may begin it, or retention remove it.
        for _ in range(MAX_ATTEMPTS):
            with contextlib.suppress(TaskNotFound):
                return await run_to_completion(reply, make(request.named, context_id))
            with contextlib.suppress(TaskExists):
                _check_takes_tasks(call)
                return await accept_batched(make(request.named, new_context))
        raise Overloaded

    if task_id:
        if "\x00" in task_id:
            raise TaskNotFound(taskId=task_id)
        return await run_to_completion(reply, make(task_id, context_id))

    _check_takes_tasks(call)
    return await accept_batched(make(str(uuid.uuid4()), new_context))


def _claim_slot(
    request: SendMessageRequest, call: CallContext, route: MessageRoute
) -> PreclaimedLease | None:
    """Return a lease of this process, if it has a free slot; this is reserved.

    None for an agent with a limit, whose runs are counted when they are claimed; and for a message that may have to wait
    for the earlier ones of its context.
    """
    # `preclaim` also starts the runner of this process. So it is called even if its lease is not used.
    size = weigh(request.message.parts)
    lease = dispatch.preclaim(route.queue, call.caller.quota_key, route.agent, size)
    joins = bool(request.message.context_id or request.message.task_id or request.named)
    waits = route.agent.one_at_a_time == "context" and joins
    if lease is None or not (waits or call.agent.slug in switches.limits()):
        return lease
    dispatch.give_back(lease)
    return None


def _name_lock(key: IdempotencyKey | None, call: CallContext) -> str:
    """Return the name of the row that a message locks; empty = none."""
    if key is not None:
        return key.name
    return f"tree {call.tree.root:020}" if call.tree is not None else ""


def _check_takes_tasks(call: CallContext) -> None:
    if switches.is_draining(call.agent.slug):
        raise Overloaded(
            "The agent takes no new tasks at the moment", retry_after=DRAIN_RETRY_SECONDS
        )


def check_size(message: bytes) -> None:
    """Check the message as it will be stored. Raises InvalidParams."""
    if len(message) > conf.MAX_MESSAGE_BYTES:
        raise InvalidParams.field("message", f"must have at most {conf.MAX_MESSAGE_BYTES} bytes")


def _make_new_task(
    request: SendMessageRequest,
    call: CallContext,
    task_id: str,
    context_id: str,
    *,
    route: MessageRoute,
    lease: PreclaimedLease | None,
    key: IdempotencyKey | None,
    companions: tuple[Companion, ...],
) -> NewTask:
    stored: Message = replace(request.message, task_id=task_id, context_id=context_id or None)
    message = write(stored)
    check_size(message)
    companions = (*hooks.companions(request, task_id, call.dialect), *companions)
    return NewTask(
        scope=call.scope(request.tenant),
        principal=call.caller.principal,
        id=task_id,
        context_id=context_id,
        message=message.decode(),
        role=stored.role.value,
        at=event_log.now(),
        dialect=call.dialect,
        binding=call.binding or "",
        opening=title_of(stored.parts),
        queue=route.queue,
        quota_key=call.caller.quota_key,
        request=run_request(
            request,
            call.caller,
            call.extensions,
            headers=pick(route.agent, call.headers),
            by_operator=bool(call.answers and call.answers.by_operator),
            request_id=call.request_id,
            tree=call.tree,
        ),
        request_id=call.request_id,
        detail={"via": call.tree.path} if call.tree else None,
        is_task=makes_task(request, call),
        ordered=route.agent.one_at_a_time == "context",
        reopens=request.reopens,
        companions=(*companions, remember(key)) if key else companions,
        place=call.chat,
        lock=_name_lock(key, call),
        lease=lease,
        answers=call.answers,
        question=call.question,
    )
