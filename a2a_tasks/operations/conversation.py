"""Acceptance of a message and reading of its events: the common half of the two sends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar

from a2a_tasks import process_lifetime
from a2a_tasks.conf import conf
from a2a_tasks.execution import dispatch
from a2a_tasks.operations.accept_message import MAX_ATTEMPTS, accept, check, makes_task
from a2a_tasks.operations.backpressure import limit_waiting
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import Overloaded, TaskNotFound
from a2a_tasks.protocol.idempotency import fingerprint, name_of_key, name_of_message
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, LogEvent, fold
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import UNSET, Raw, Task, TaskState, replace
from a2a_tasks.store import event_log
from a2a_tasks.store.db import retry_until_answered, run_in_thread, run_large_read
from a2a_tasks.store.idempotency import IdempotencyKey, KeyTaken, PreviousSend, find_at, recall
from a2a_tasks.store.records import Accepted
from a2a_tasks.store.tasks import reveal
from a2a_tasks.streaming.stream import EventReader, EventsRemoved

__all__ = ["AcceptedSend", "at_most", "converse", "count_answer", "insist"]

T = TypeVar("T")
#: Seconds before the end of the drain at which a waiting client is answered; and those at which its wait for events ends:
#: the time between is for the reads that the answer needs, with READ_SPEED bytes per second for all waiting clients.
ANSWER_SECONDS, READ_SECONDS = 0.5, 1.0
READ_SPEED = 16 * 1024 * 1024
#: Seconds for which the answer to an accepted message waits for a database that is away: a client that gets 503 may send
#: the message once more.
AWAY_SECONDS = 30.0
#: The wait for a large task takes longer, since its read takes minutes over a slow link.
LARGE_SECONDS = 300.0
#: Bytes above which a task is not kept while its client waits.
LARGE = 64 * 1024
#: Bytes of the events that the answers of all waiting clients will have, as far as they were heard.
_heard = [0]
_turnstiles: weakref.WeakValueDictionary[tuple[int, IdempotencyKey], asyncio.Lock] = (
    weakref.WeakValueDictionary()
)


class TurnEnd:
    """The end of a message's turn: the event with which the task ends, or its own run asks for input.

    A reader keeps it as long as the answer goes on, so it has nothing of the message.
    """

    __slots__ = ("_pauses", "_run", "is_task")

    def __init__(self, run: int, pauses: frozenset[TaskState], *, is_task: bool) -> None:
        self._run, self._pauses = run, pauses
        #: True once it is certain that the client gets a task.
        self.is_task = is_task

    def __call__(self, event: LogEvent) -> bool:
        if event.state in TERMINAL or (event.kind is EventKind.MESSAGE and not self.is_task):
            return True
        return event.state in self._pauses and event.run == self._run


class AcceptedSend:
    """An accepted message, the run that answers it, and a reader of the log from there on."""

    def __init__(
        self,
        accepted: Accepted,
        caller: str,
        *,
        is_task: bool,
        pauses: frozenset[TaskState],
        recalled: PreviousSend | None = None,
    ) -> None:
        """`caller`: its `quota_key`, for the reads of a large task."""
        self.accepted = accepted
        self._caller = caller
        #: Set if the message had been accepted before: its answer is read from its beginning.
        self.recalled = recalled
        self.follower: EventReader
        self.ends = TurnEnd(accepted.run, pauses, is_task=is_task)
        self._decided = is_task
        #: The task onto which new events are folded, and the number of the last event it includes; None = it was large.
        self._view: Task | None = accepted.view if accepted.is_whole else None
        self._since = accepted.number
        #: The last events read; beyond a slice of the log, earlier ones are dropped and read again for the answer.
        self.events: list[LogEvent] = []

    async def close(self) -> None:
        """Stop reading. The run goes on."""
        await self.follower.close()

    async def task(self) -> Task:
        """Return the task after all events read so far; its present state if events were removed.

        Raises TaskNotFound.
        """
        last, events = self.follower.number, self.events
        if self._view is None:
            return await self._read_at(last)
        if not events or events[0].number != self._since + 1:
            events = []
        while (number := events[-1].number if events else self._since) < last:
            read = await insist(run_in_thread, event_log.read_after, self.accepted.task, number)
            if not read or read[0].number != number + 1:
                return (await insist(self.follower.restart)).view
            events = events + [event for event in read if event.number <= last]
        return fold(self._view, events)

    async def start(self) -> Task:
        """Return the task as it was accepted, also if it is large. Raises TaskNotFound."""
        view, number = self.accepted.view, self.accepted.number
        return view if self.accepted.is_whole else await self._read_at(number)

    async def _read_at(self, number: int) -> Task:
        found: Task | None
        asked = find_at, self.accepted.task, number
        if self.accepted.is_whole:
            found = await insist(run_in_thread, *asked)
        else:
            found = await insist(run_large_read, self._caller, *asked, seconds=LARGE_SECONDS)
        if found is None:
            raise TaskNotFound
        return found

    async def first(self, seconds: float) -> Task | Raw:
        """Return the accepted task, as `Accepted` has it, or the direct Message of an agent that answers with one.

        Waits at most `seconds` for the first output of an agent that may answer directly; then it has to be a task.
        """
        if self._decided:
            return self.accepted.view
        async with at_most(seconds):
            await self._hear()
        self._decided = True
        if self.events and self.events[0].kind is EventKind.MESSAGE:
            return Raw(self.events[0].body.encode())
        self.ends.is_task = True
        if not self.events:
            await insist(run_in_thread, reveal, self.accepted.task)
        return self.accepted.view

    async def current(self) -> Task:
        """Return the task as it is now; after the message's turn, as it was at the turn's end."""
        while events := await self.follower.next(0):
            self._keep(events)
        return await self.task()

    async def reach(self, number: int) -> list[LogEvent]:
        """Read up to an existing event, or to the end of the turn; return the events that came after it."""
        await insist(self._read_to, number)
        return [event for event in self.events if event.number > number]

    async def _read_to(self, number: int) -> None:
        while self.follower.number < number and not self.follower.done:
            self._keep(await self.follower.next())

    async def wait_settled(self) -> Task:
        """Return the task once it has ended or waits for the client, or its present state after the maximum wait."""
        with count_answer() as count:
            if not self.follower.done:
                self._forget_large()
                async with at_most(float(conf.MAX_BLOCK_SECONDS)):
                    while not self.follower.done:
                        count(await self._hear())
            return await self.task()

    def _forget_large(self) -> None:
        """Forget a large task, which is read again for the answer: thousands of clients may wait for minutes."""
        view = self.accepted.view
        size = sum(map(len, [*(view.history or ()), *(view.artifacts or ())]))
        if size > LARGE or not self.accepted.is_whole:
            bare = replace(view, history=UNSET, artifacts=UNSET)
            self.accepted = dataclasses.replace(self.accepted, view=bare, claimed_run=None)
            self._view = None

    def _keep(self, events: list[LogEvent]) -> list[LogEvent]:
        if self.events and sum(event.size for event in self.events) > event_log.SLICE_BYTES:
            self.events = []
        self.events += events
        return events

    async def _hear(self) -> list[LogEvent]:
        """Return the next events; where events were removed, read the task as it is. Raises TaskNotFound."""
        try:
            return self._keep(await self.follower.next())
        except EventsRemoved:
            found = await insist(self.follower.restart)
            self._view, self._since, self.events = found.view, found.last_event, []
            return []


async def insist(ask: Callable[..., Awaitable[T]], *args: Any, seconds: float = AWAY_SECONDS) -> T:
    """Ask until the database answers. Raises Overloaded after so many seconds, or in time before a drain is over."""
    try:
        async with _limit(seconds, lambda: ANSWER_SECONDS):
            return await retry_until_answered(lambda: ask(*args), repeatable=True)
    except TimeoutError as fault:
        raise Overloaded from fault


async def converse(
    request: SendMessageRequest, call: CallContext, *, pauses: frozenset[TaskState]
) -> AcceptedSend:
    """Accept the message, start its run, and follow the log to the end of its turn. The caller closes the result.

    A message that was accepted before, under the same key, continues the earlier conversation. `pauses`: the states at
    which the turn ends although the task goes on. Raises the errors of the request: TaskNotFound, TaskEnded,
    InvalidParams, IdempotencyConflict, ContentTypeNotSupported, PushNotificationNotSupported; Overloaded when too much
    is waiting, RateLimited when too much of it belongs to the caller.
    """
    check(request, call)
    key = _key_of(request, call)
    with limit_waiting(*request.message.parts):
        if key is None:
            return await _begin(request, call, pauses=pauses)
        async with _lock_key(key):
            for _ in range(MAX_ATTEMPTS):
                previous = await run_in_thread(recall, key, call.scope(request.tenant))
                if previous is not None:
                    return await _join(previous, call, pauses=pauses)
                with contextlib.suppress(KeyTaken):  # another process accepted it at this moment
                    return await _begin(request, call, pauses=pauses, key=key)
        raise Overloaded


async def _join(
    recalled: PreviousSend, call: CallContext, *, pauses: frozenset[TaskState]
) -> AcceptedSend:
    accepted, caller = recalled.accepted, call.caller.quota_key
    conversation = AcceptedSend(
        accepted, caller, is_task=recalled.is_task, pauses=pauses, recalled=recalled
    )
    conversation.follower = await EventReader.open(
        accepted.task, after=accepted.number, until=conversation.ends, over=recalled.over
    )
    return conversation


async def _begin(
    request: SendMessageRequest,
    call: CallContext,
    *,
    pauses: frozenset[TaskState],
    key: IdempotencyKey | None = None,
) -> AcceptedSend:
    accepted = await accept(request, call, key)
    run = accepted.claimed_run
    is_task = bool(request.message.task_id) or makes_task(request, call)
    caller = call.caller.quota_key
    conversation = AcceptedSend(accepted, caller, is_task=is_task, pauses=pauses)
    try:
        conversation.follower = await EventReader.open(
            accepted.task,
            after=accepted.number,
            until=conversation.ends,
            fresh=run is not None,
        )
    finally:
        # this process has claimed the run: it starts whatever happens to this request
        if run is not None:
            dispatch.start_run(run)
    return conversation


def _key_of(request: SendMessageRequest, call: CallContext) -> IdempotencyKey | None:
    """Return the key that identifies a repeated request; None if it has none. Raises InvalidParams for a bad header.

    The key belongs to the caller alone, also where the callers of a tenant share their tasks. The header takes
    precedence over the message's id. Where clients name their tasks, messages have no ids of their own.
    """
    if call.idempotency_key is not None:
        name = name_of_key(call.idempotency_key)
    elif call.agent.idempotent_message_ids and not request.named:
        name = name_of_message(request)
    else:
        return None
    return IdempotencyKey(
        call.caller.own(call.agent.slug, request.tenant),
        name,
        fingerprint(request, call.extensions),
    )


def _lock_key(key: IdempotencyKey) -> asyncio.Lock:
    """Return the lock of a key: in this process one request of a key at a time is looked up and accepted.

    The lock only saves work. Between processes the unique name decides.
    """
    place = (id(asyncio.get_running_loop()), key)
    found = _turnstiles.get(place)
    if found is None:
        found = _turnstiles[place] = asyncio.Lock()
    return found


@contextlib.contextmanager
def count_answer() -> Iterator[Callable[[Iterable[LogEvent]], None]]:
    """Count the events that the answer to a waiting client will have, until it has the answer: a drain leaves time for them."""
    mine = 0

    def count(events: Iterable[LogEvent]) -> None:
        nonlocal mine
        size = sum(event.size for event in events)
        mine, _heard[0] = mine + size, _heard[0] + size

    try:
        yield count
    finally:
        _heard[0] -= mine


@contextlib.asynccontextmanager
async def at_most(seconds: float) -> AsyncIterator[None]:
    """Leave the block after so many seconds, or in time before a drain is over; the work done so far is kept."""
    with contextlib.suppress(TimeoutError):
        async with _limit(seconds, lambda: READ_SECONDS + _heard[0] / READ_SPEED):
            yield


@contextlib.asynccontextmanager
async def _limit(seconds: float, spare: Callable[[], float]) -> AsyncIterator[None]:
    """Raise TimeoutError after so many seconds, or `spare` seconds, asked for when it begins, before a drain is over."""
    loop, over = asyncio.get_running_loop(), False
    async with asyncio.timeout(seconds) as limit:

        def hurry() -> None:
            left = max(0.0, process_lifetime.drain_seconds() - spare())
            if not (over or limit.expired()):
                limit.reschedule(min(limit.when() or math.inf, loop.time() + left))

        forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(hurry))
        try:
            yield
        finally:
            over = True
            forget()
