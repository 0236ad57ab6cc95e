"""One call of an executor of the a2a-sdk: its context, its queue, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from typing import Any

from a2a.auth.user import User
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue

from a2a_frameworks.executor.values import ExecutorEventReader, make_request, make_task, sdk
from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.agents.emission import Emission
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.values import TaskState

__all__ = ["ExecutorCall", "cancel_waiting"]

logger = logging.getLogger(__name__)
#: Most events that wait for the host; with more, the executor waits too.
ROOM = 16


class CallerUser(User):
    """The caller as the user of a call."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def is_authenticated(self) -> bool:
        """Return whether there is a principal."""
        return not self._caller.anonymous

    @property
    def user_name(self) -> str:
        """Return the principal; empty for anonymous callers."""
        return self._caller.principal


class BoundedQueue(EventQueue):
    """The queue of one call. An executor that is faster than the database waits in `enqueue_event`."""

    def __init__(self, reader: ExecutorEventReader) -> None:
        self._reader = reader
        self._said: deque[list[Emission]] = deque()
        self._room, self._changed = asyncio.Semaphore(ROOM), asyncio.Event()
        #: True if it has no reader any more: further events are dropped.
        self.closed = False
        #: True if the executor has ended.
        self._over = False
        self._dropped = False

    async def enqueue_event(self, event: Any) -> None:
        """Add an event. It is converted at once, so that a mistake raises where it was made."""
        said = [] if self.closed else self._reader.read(event)
        if said:
            await self._room.acquire()
        if self.closed:
            self._room.release()  # to the next that waits
            self._note_drop(event)
        elif said:
            self._said.append(said)
            self._changed.set()
        await asyncio.sleep(0)  # an executor that waits for nothing else can be cancelled here

    def _note_drop(self, event: Any) -> None:
        if not self._dropped:
            logger.info("a %s after the end of the turn was dropped", type(event).__name__)
        self._dropped = True

    async def next(self) -> list[Emission] | None:
        """Wait for the emissions of the next event; None after the last."""
        while not self._said:
            if self._over:
                return None
            self._changed.clear()
            await self._changed.wait()
        self._room.release()
        return self._said.popleft()

    def finish(self) -> None:
        """Note that the executor has ended."""
        self._over = True
        self._changed.set()

    def close(self) -> None:
        """Drop further events, and let waiting ones go on."""
        self.closed = True
        self._room.release()


class ExecutorCall:
    """An executor at work for a turn."""

    def __init__(
        self,
        executor: AgentExecutor,
        turn: Turn,
        context: RequestContext,
        reader: ExecutorEventReader,
    ) -> None:
        self._executor, self._turn, self._context = executor, turn, context
        self._queue = BoundedQueue(reader)
        self._left: deque[Emission] = deque()
        #: True if its end was noticed, and with it its exception.
        self._noticed = False
        self._work = asyncio.create_task(self._execute())
        self._work.add_done_callback(lambda _: self._queue.finish())

    @classmethod
    async def begin(cls, executor: AgentExecutor, turn: Turn, *, may_reply: bool) -> ExecutorCall:
        """Call the executor with the message of a turn. `may_reply`: its answer may be a Message."""
        task = await make_task(turn)
        request = await make_request(turn)
        context = _make_context(turn, _call_context(turn), request=request, task=task)
        state = None if may_reply and task is None else TaskState.WORKING
        return cls(executor, turn, context, ExecutorEventReader(state, has_task=task is not None))

    async def _execute(self) -> None:
        try:
            await self._executor.execute(self._context, self._queue)
        except (KeyboardInterrupt, SystemExit) as fault:  # of a task they would end the process
            raise RuntimeError(f"the executor raised {fault!r}") from fault
        except Exception as fault:
            if advice := sdk.advise(fault):
                raise TypeError(advice) from fault
            if words := sdk.find_error_text(fault):
                raise AgentError(words) from fault
            raise

    async def next(self) -> Emission | None:
        """Wait for the next emission; None at the end of the executor. Raises its exceptions."""
        while not self._left:
            said = await self._queue.next()
            if said is None:
                self._noticed = True
                self._work.result()
                return None
            self._left.extend(said)
        return self._left.popleft()

    async def end(self, cleanup: float, seconds: float) -> None:
        """Let the executor clean up for some seconds, then cancel it and wait for its end."""
        self._queue.close()
        try:
            await asyncio.wait([self._work], timeout=cleanup)
        finally:
            self._work.cancel()
        await asyncio.wait([self._work], timeout=seconds)
        if not self._work.done():
            logger.error("the executor does not end; it is left to itself")
        elif not (self._noticed or self._work.cancelled()) and (fault := self._work.exception()):
            logger.warning("the executor raised after the end of its turn", exc_info=fault)

    async def cancel(self, seconds: float) -> None:
        """Call the executor's `cancel` if the task was cancelled. Its events and exceptions do not matter."""

        async def cancel() -> None:
            if await self._turn.task_cancelled:
                await self._executor.cancel(self._cancel_context(), self._queue)

        try:
            # Not asyncio.timeout: early releases of Python 3.11 let it raise CancelledError in a cancelled task (gh-102780).
            await asyncio.wait_for(cancel(), seconds)
        except Exception as fault:  # noqa: BLE001 - many executors cannot cancel
            logger.info("cancel of the executor: %r", fault)

    def _cancel_context(self) -> RequestContext:
        """Return a context with the task, which a first turn's own context lacks."""
        ids = {"id": self._turn.task_id, "contextId": self._turn.context_id}
        working = {"state": TaskState.WORKING, "timestamp": rfc3339(datetime.now(UTC))}
        task = self._context.current_task or sdk.make_task({**ids, "status": working})
        return _make_context(self._turn, self._context.call_context, task=task)


def _make_context(turn: Turn, call: ServerCallContext, **about: Any) -> RequestContext:
    """Return the context for a method of an executor."""
    return RequestContext(
        call_context=call, task_id=turn.task_id, context_id=turn.context_id, **about
    )


def _call_context(turn: Turn) -> ServerCallContext:
    """Return the circumstances of the call, with the headers that the agent names in `forwarded_headers`."""
    return ServerCallContext(
        state={"headers": dict(turn.headers), "turn": turn},
        user=CallerUser(turn.caller),
        tenant=turn.caller.tenant,
        requested_extensions=set(turn.extensions),
    )


async def cancel_waiting(executor: AgentExecutor, turn: Turn) -> None:
    """Call `cancel` for a task that waited; its events are dropped."""
    queue = BoundedQueue(ExecutorEventReader(None, has_task=True))
    queue.close()
    task = await make_task(turn, TaskState.WORKING)
    await executor.cancel(_make_context(turn, _call_context(turn), task=task), queue)
