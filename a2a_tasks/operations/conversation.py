"""Accepting a message and following what becomes of it: the common half of the two sends."""

from __future__ import annotations

import contextlib
import uuid

from a2a_tasks.conf import conf
from a2a_tasks.execution import dispatch
from a2a_tasks.execution.turns import run_request
from a2a_tasks.operations.bounds import check_message, check_size
from a2a_tasks.operations.call import Call
from a2a_tasks.operations.files import put_away
from a2a_tasks.operations.line import backlog, place_in_line, unfinished
from a2a_tasks.operations.patience import at_most
from a2a_tasks.operations.repeats import key_of, turnstile
from a2a_tasks.protocol.errors import (
    ContentTypeNotSupported,
    InvalidParams,
    Overloaded,
    PushNotificationNotSupported,
    TaskNotFound,
)
from a2a_tasks.protocol.files import SCHEME
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, Recorded, fold
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, Raw, Task, TaskState, replace
from a2a_tasks.store import companions, log
from a2a_tasks.store.accept import accepting
from a2a_tasks.store.companions import Companion
from a2a_tasks.store.files import is_large
from a2a_tasks.store.hop import hop
from a2a_tasks.store.idempotency import Key, KeyTaken, Recalled, recall, remembering
from a2a_tasks.store.records import Accepted, NewTask, TaskExists
from a2a_tasks.store.reply import reply
from a2a_tasks.store.tasks import reveal
from a2a_tasks.streaming.follow import EventsRemoved, Follower

__all__ = ["Conversation", "converse"]

#: How often requests for one task, or under one key, may cross each other before the host gives up.
RACES = 50
#: Characters of a media type that are said back to who sent it.
LONGEST_SHOWN = 100


class Conversation:
    """An accepted message, the run that answers it, and a reader of the log from there on."""

    def __init__(
        self,
        accepted: Accepted,
        *,
        is_task: bool,
        pauses: frozenset[TaskState],
        recalled: Recalled | None = None,
    ) -> None:
        self.accepted = accepted
        #: Set if the message had been accepted before: its answer is joined, from its beginning.
        self.recalled = recalled
        self.follower: Follower
        #: Is it settled that the client gets a task?
        self._is_task = self._decided = is_task
        self._pauses = pauses
        #: What the events heard are folded onto.
        self._view = accepted.view
        self.heard: list[Recorded] = []

    async def close(self) -> None:
        """Follow no longer. The run goes on."""
        await self.follower.close()

    @property
    def task(self) -> Task:
        """The task after everything heard so far."""
        return fold(self._view, self.heard)

    async def first(self) -> Task | Raw:
        """The task as it was accepted, or the direct Message of an agent that answers with one.

        Waits for the first word of an agent that may; when that takes too long, it has to be a task.
        """
        if self._decided:
            return self.accepted.view
        async with at_most(float(conf.FIRST_WORD_SECONDS)):
            await self._hear()
        self._decided = True
        if self.heard and self.heard[0].kind is EventKind.MESSAGE:
            return Raw(self.heard[0].body.encode())
        self._is_task = True
        if not self.heard:
            await hop(reveal, self.accepted.task)
        return self.accepted.view

    def ends(self, event: Recorded) -> bool:
        """Is this the end of the message's turn: the task ended, or its own run asks something?"""
        if event.state in TERMINAL or (event.kind is EventKind.MESSAGE and not self._is_task):
            return True
        return event.state in self._pauses and event.run == self.accepted.run

    async def current(self) -> Task:
        """The task as it is now; after the message's turn, as it was then."""
        while events := await self.follower.next(0):
            self.heard += events
        return self.task

    async def reach(self, number: int) -> None:
        """Hear everything up to an event that is in the log, or to the end of the turn."""
        while self.follower.number < number and not self.follower.done:
            self.heard += await self.follower.next()

    async def settled(self) -> Task:
        """The task once it has ended or waits for the client, or as it is when the client has waited too long."""
        async with at_most(float(conf.MAX_BLOCK_SECONDS)):
            while not self.follower.done:
                await self._hear()
        return self.task

    async def _hear(self) -> None:
        """Take in what comes next; where events are gone already, the task as it is. Raises TaskNotFound."""
        try:
            self.heard += await self.follower.next()
        except EventsRemoved:
            self._view, self.heard = (await self.follower.restart()).view, []


async def converse(
    request: SendMessageRequest, call: Call, *, pauses: frozenset[TaskState]
) -> Conversation:
    """Accept the message, have it run, and follow the log to the end of its turn. Close the conversation.

    One that was accepted before, under the same key, is joined. `pauses`: the states at which the turn ends although
    the task goes on. Raises what the request deserves: TaskNotFound, TaskEnded, InvalidParams, IdempotencyConflict,
    ContentTypeNotSupported, PushNotificationNotSupported; Overloaded when too much is waiting, RateLimited when too
    much of it is the caller's.
    """
    _check(request, call)
    with place_in_line():
        return await _conversation(request, call, pauses)


async def _conversation(
    request: SendMessageRequest, call: Call, pauses: frozenset[TaskState]
) -> Conversation:
    key = key_of(request, call)
    if key is None:
        return await _begin(request, call, pauses=pauses)
    scope = call.scope(request.tenant)
    async with turnstile(key):
        for _ in range(RACES):
            recalled = await hop(recall, key, scope)
            if recalled is not None:
                break
            with contextlib.suppress(KeyTaken):  # by another process, at this moment
                return await _begin(request, call, pauses=pauses, key=key)
        else:
            raise Overloaded
    return await _join(recalled, pauses=pauses)


async def _join(recalled: Recalled, *, pauses: frozenset[TaskState]) -> Conversation:
    accepted = recalled.accepted
    conversation = Conversation(
        accepted, is_task=recalled.is_task, pauses=pauses, recalled=recalled
    )
    conversation.follower = await Follower.open(
        accepted.task, after=accepted.number, until=conversation.ends, over=recalled.over
    )
    return conversation


async def _begin(
    request: SendMessageRequest,
    call: Call,
    *,
    pauses: frozenset[TaskState],
    key: Key | None = None,
) -> Conversation:
    accepted = await _accept_with_files(request, call, key)
    run = accepted.assignment
    is_task = bool(request.message.task_id) or _makes_task(request, call)
    conversation = Conversation(accepted, is_task=is_task, pauses=pauses)
    try:
        conversation.follower = await Follower.open(
            accepted.task,
            after=accepted.number,
            until=conversation.ends,
            fresh=run is not None,
        )
    finally:
        if run is not None:  # it is ours already: whatever becomes of this request, it runs
            dispatch.carry(run)
    return conversation


def _check(request: SendMessageRequest, call: Call) -> None:
    if request.push_config is not None and not call.agent.push_notifications:
        raise PushNotificationNotSupported
    check_message(request)
    for index, part in enumerate(request.message.parts):
        _check_part(part, index, call)


def _check_part(part: Part, index: int, call: Call) -> None:
    media_type = media_type_of(part)
    if not call.agent.accepts(media_type):
        shown = media_type[:LONGEST_SHOWN]
        raise ContentTypeNotSupported(f"The agent does not take {shown}", mediaType=shown)
    if isinstance(part.url, str) and part.url.lower().startswith(SCHEME):
        raise InvalidParams.field(f"message.parts[{index}]", f"must not have a URL of {SCHEME}")


def _makes_task(request: SendMessageRequest, call: Call) -> bool:
    """Is it settled before the agent speaks that the client gets a task?"""
    return request.wants_task or not call.agent.replies_directly


async def _accept_with_files(request: SendMessageRequest, call: Call, key: Key | None) -> Accepted:
    """Accept the message, with files that are too large for a row put away."""
    if not any(map(is_large, request.message.parts)):
        return await _accept(request, call, key)
    async with put_away(request, call.scope(request.tenant)) as (slim, take):
        return await _accept(slim, call, key, take)


async def _accept(
    request: SendMessageRequest, call: Call, key: Key | None, *beside: Companion
) -> Accepted:
    await unfinished.admit(call.caller.share)
    if dispatch.hold(call.agent.queue, call.caller.share) is None:
        await backlog.admit(call.agent.queue)
    asked = request.message
    if request.named:
        return await _accept_named(request, call, key, *beside)
    if asked.task_id and "\x00" in asked.task_id:
        raise TaskNotFound(taskId=asked.task_id)
    task_id = asked.task_id or str(uuid.uuid4())
    context_id = asked.context_id or ("" if asked.task_id else str(uuid.uuid4()))
    new = _new(request, call, task_id, context_id, key, *beside)
    if asked.task_id:
        return await hop(reply, new)
    return await accepting(new)


async def _accept_named(
    request: SendMessageRequest, call: Call, key: Key | None, *beside: Companion
) -> Accepted:
    """A message for the task of a name the client chose: continued if there is one, begun if not."""
    context_id = request.message.context_id
    for _ in range(RACES):
        with contextlib.suppress(TaskNotFound):
            new = _new(request, call, request.named, context_id or "", key, *beside)
            return await hop(reply, new)
        with contextlib.suppress(TaskExists):  # somebody else began it at this moment
            begun_in = context_id or str(uuid.uuid4())
            return await accepting(_new(request, call, request.named, begun_in, key, *beside))
    raise Overloaded


def _new(
    request: SendMessageRequest,
    call: Call,
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
        queue=call.agent.queue,
        share=call.caller.share,
        request=run_request(request, call.caller, call.extensions),
        request_id=call.request_id,
        is_task=_makes_task(request, call),
        reopens=request.reopens,
        companions=(*beside, remembering(key)) if key else beside,
        lock=key.name if key else "",
        hold=dispatch.hold(call.agent.queue, call.caller.share),
    )
