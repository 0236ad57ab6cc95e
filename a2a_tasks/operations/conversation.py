"""Accepting a message and following what becomes of it: the common half of the two sends."""

from __future__ import annotations

import contextlib

from a2a_tasks.conf import conf
from a2a_tasks.execution import dispatch
from a2a_tasks.operations.acceptance import RACES, accept, check, makes_task
from a2a_tasks.operations.call import Call
from a2a_tasks.operations.line import place_in_line
from a2a_tasks.operations.patience import at_most
from a2a_tasks.operations.repeats import key_of, turnstile
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, Recorded, fold
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Raw, Task, TaskState
from a2a_tasks.store import log
from a2a_tasks.store.hop import hop
from a2a_tasks.store.idempotency import Key, KeyTaken, Recalled, recall
from a2a_tasks.store.records import Accepted
from a2a_tasks.store.tasks import reveal
from a2a_tasks.streaming.follow import EventsRemoved, Follower

__all__ = ["Conversation", "converse"]


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
        #: What the events heard are folded onto, and the number up to which they are in it.
        self._view, self._since = accepted.view, accepted.number
        #: The last events heard; beyond a slice of the log, earlier ones are forgotten and read again for the answer.
        self.heard: list[Recorded] = []

    async def close(self) -> None:
        """Follow no longer. The run goes on."""
        await self.follower.close()

    async def task(self) -> Task:
        """The task after everything heard so far; where its events are gone already, as it is. Raises TaskNotFound."""
        last, events = self.follower.number, self.heard
        if not events or events[0].number != self._since + 1:
            events = []
        while (number := events[-1].number if events else self._since) < last:
            read = await hop(log.read_after, self.accepted.task, number)
            if not read or read[0].number != number + 1:
                return (await self.follower.restart()).view
            events = events + [event for event in read if event.number <= last]
        return fold(self._view, events)

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
            self._keep(events)
        return await self.task()

    async def reach(self, number: int) -> list[Recorded]:
        """Hear everything up to an event that is in the log, or to the end of the turn; returns what came after it."""
        while self.follower.number < number and not self.follower.done:
            self._keep(await self.follower.next())
        return [event for event in self.heard if event.number > number]

    async def settled(self) -> Task:
        """The task once it has ended or waits for the client, or as it is when the client has waited too long."""
        async with at_most(float(conf.MAX_BLOCK_SECONDS)):
            while not self.follower.done:
                await self._hear()
        return await self.task()

    def _keep(self, events: list[Recorded]) -> None:
        if sum(event.size for event in self.heard) > log.SLICE_BYTES:
            self.heard = []
        self.heard += events

    async def _hear(self) -> None:
        """Take in what comes next; where events are gone already, the task as it is. Raises TaskNotFound."""
        try:
            self._keep(await self.follower.next())
        except EventsRemoved:
            found = await self.follower.restart()
            self._view, self._since, self.heard = found.view, found.last_event, []


async def converse(
    request: SendMessageRequest, call: Call, *, pauses: frozenset[TaskState]
) -> Conversation:
    """Accept the message, have it run, and follow the log to the end of its turn. Close the conversation.

    One that was accepted before, under the same key, is joined. `pauses`: the states at which the turn ends although
    the task goes on. Raises what the request deserves: TaskNotFound, TaskEnded, InvalidParams, IdempotencyConflict,
    ContentTypeNotSupported, PushNotificationNotSupported; Overloaded when too much is waiting, RateLimited when too
    much of it is the caller's.
    """
    check(request, call)
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
    accepted = await accept(request, call, key)
    run = accepted.assignment
    is_task = bool(request.message.task_id) or makes_task(request, call)
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
