"""Accepting a message, whoever gives it: what it must be like, its files, and the one transaction that has it."""

from __future__ import annotations

import contextlib
import uuid

from a2a_tasks.agents import switches
from a2a_tasks.execution import dispatch
from a2a_tasks.execution.turns import run_request
from a2a_tasks.operations.bounds import check_message, check_size
from a2a_tasks.operations.call import Call
from a2a_tasks.operations.files import put_away
from a2a_tasks.operations.line import backlog, unfinished
from a2a_tasks.protocol.errors import (
    ContentTypeNotSupported,
    InvalidParams,
    Overloaded,
    PushNotificationNotSupported,
    TaskNotFound,
)
from a2a_tasks.protocol.files import SCHEME
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.opening import opening_of
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, replace
from a2a_tasks.store import companions, log
from a2a_tasks.store.accept import accepting
from a2a_tasks.store.companions import Companion
from a2a_tasks.store.files import is_large
from a2a_tasks.store.hop import hop
from a2a_tasks.store.idempotency import Key, remembering
from a2a_tasks.store.records import Accepted, Hold, NewTask, TaskExists
from a2a_tasks.store.reply import reply

__all__ = ["RACES", "accept", "check", "makes_task"]

#: How often requests for one task, or under one key, may cross each other before the host gives up.
RACES = 50
#: Characters of a media type that are said back to who sent it.
LONGEST_SHOWN = 100
#: Seconds after which a client should try again to begin a task with an agent that takes none.
DRAINED = "60"


def check(request: SendMessageRequest, call: Call) -> None:
    """Raise what the message deserves before anything is written: InvalidParams, ContentTypeNotSupported, PushNotificationNotSupported."""
    if request.push_config is not None and not call.agent.push_notifications:
        raise PushNotificationNotSupported
    check_message(request, by_operator=_by_operator(call))
    for index, part in enumerate(request.message.parts):
        _check_part(part, index, call)


def _check_part(part: Part, index: int, call: Call) -> None:
    media_type = media_type_of(part)
    if not call.agent.accepts(media_type):
        shown = media_type[:LONGEST_SHOWN]
        raise ContentTypeNotSupported(f"The agent does not take {shown}", mediaType=shown)
    if isinstance(part.url, str) and part.url.lower().startswith(SCHEME):
        raise InvalidParams.field(f"message.parts[{index}]", f"must not have a URL of {SCHEME}")


def makes_task(request: SendMessageRequest, call: Call) -> bool:
    """Is it settled before the agent speaks that the client gets a task?"""
    return request.wants_task or not call.agent.replies_directly


async def accept(
    request: SendMessageRequest, call: Call, key: Key | None = None, *beside: Companion
) -> Accepted:
    """Accept the message, with files that are too large for a row put away.

    Raises TaskNotFound, TaskEnded, ContextMismatch, InvalidParams; TaskNotWaiting for an operator's answer that comes
    too late; KeyTaken; Overloaded and RateLimited.
    """
    if not any(map(is_large, request.message.parts)):
        return await _accept(request, call, key, *beside)
    async with put_away(request, call.scope(request.tenant)) as (slim, take):
        return await _accept(slim, call, key, take, *beside)


async def _accept(
    request: SendMessageRequest, call: Call, key: Key | None, *beside: Companion
) -> Accepted:
    await unfinished.admit(call.caller.share)
    hold = _hold(call)
    if hold is None:
        await backlog.admit(switches.queue_of(call.agent))
    asked = request.message
    if request.named:
        return await _accept_named(request, call, hold, key, *beside)
    if not asked.task_id:
        _check_open(call)
    if asked.task_id and "\x00" in asked.task_id:
        raise TaskNotFound(taskId=asked.task_id)
    task_id = asked.task_id or str(uuid.uuid4())
    context_id = asked.context_id or ("" if asked.task_id else str(uuid.uuid4()))
    new = _new(request, call, hold, task_id, context_id, key, *beside)
    if asked.task_id:
        return await hop(reply, new)
    return await accepting(new)


def _by_operator(call: Call) -> bool:
    return call.answers is not None and call.answers.by_operator


def _hold(call: Call) -> Hold | None:
    """A lease of this process, if it has room.

    None for pages, which are served by loops that end with their answer, and for an agent with a limit, whose runs are
    counted where they are claimed.
    """
    if call.answers:
        return None
    held = dispatch.hold(switches.queue_of(call.agent), call.caller.share)  # begins the runner, too
    return None if call.agent.slug in switches.limits() else held


def _check_open(call: Call) -> None:
    """Raise Overloaded if the agent takes no new tasks."""
    if switches.draining(call.agent.slug):
        raise Overloaded("The agent takes no new tasks at the moment", retry_after=DRAINED)


async def _accept_named(
    request: SendMessageRequest,
    call: Call,
    hold: Hold | None,
    key: Key | None,
    *beside: Companion,
) -> Accepted:
    """A message for the task of a name the client chose: continued if there is one, begun if not."""
    context_id = request.message.context_id
    for _ in range(RACES):
        with contextlib.suppress(TaskNotFound):
            new = _new(request, call, hold, request.named, context_id or "", key, *beside)
            return await hop(reply, new)
        with contextlib.suppress(TaskExists):  # somebody else began it at this moment
            _check_open(call)
            begun_in = context_id or str(uuid.uuid4())
            new = _new(request, call, hold, request.named, begun_in, key, *beside)
            return await accepting(new)
    raise Overloaded


def _new(
    request: SendMessageRequest,
    call: Call,
    hold: Hold | None,
    task_id: str,
    context_id: str,
    key: Key | None,
    *beside: Companion,
) -> NewTask:
    stored: Message = replace(request.message, task_id=task_id, context_id=context_id or None)
    message = write(stored)
    check_size(message)
    beside = (*companions.of(request, task_id, call.dialect), *beside)
    return NewTask(
        scope=call.scope(request.tenant),
        principal=call.caller.principal,
        id=task_id,
        context_id=context_id,
        message=message.decode(),
        role=stored.role.value,
        at=log.now(),
        dialect=call.dialect,
        binding=call.binding or "",
        opening=opening_of(stored),
        queue=switches.queue_of(call.agent),
        share=call.caller.share,
        request=run_request(request, call.caller, call.extensions, by_operator=_by_operator(call)),
        request_id=call.request_id,
        is_task=makes_task(request, call),
        reopens=request.reopens,
        companions=(*beside, remembering(key)) if key else beside,
        lock=key.name if key else "",
        hold=hold,
        answers=call.answers,
    )
