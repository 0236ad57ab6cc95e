"""Clients that close their connection while they wait: at these doors they have no other way to stop an agent.

A proxy that gives up and a client that tries again look the same at first. So the task goes on for some seconds, and is
cancelled only if then nobody follows it, in any process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from a2a_doors.visit import Visit
from a2a_tasks import process_lifetime
from a2a_tasks.bindings.http import Receive
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import A2AError, Overloaded
from a2a_tasks.protocol.requests import CancelTaskRequest
from a2a_tasks.streaming.event_buffer import hub
from a2a_tasks.streaming.stream import EventStream

__all__ = ["cancel_later", "cancel_now", "serve_until_gone"]

logger = logging.getLogger(__name__)
#: Most looks after a task whose followers Redis did not tell, or whose database was away.
MAX_LOOKS = 10
#: Most seconds for which the answer to a client that cancels its call waits for the cancel.
NOW_SECONDS = 2.0
#: The tasks of clients that have left: the event loop keeps no tasks alive.
_waiting: set[asyncio.Task[Any]] = set()
T = TypeVar("T")


async def serve_until_gone(
    visit: Visit,
    stream: EventStream,
    answer: Coroutine[Any, Any, None],
    at_drain: Callable[[], Awaitable[None]],
) -> None:
    """Let `answer` answer the client from a stream, until it ends, the client leaves or the process drains.

    After a drain, `at_drain` says the last words instead. The stream is closed at the end. Raises what `answer` raises.
    """
    loop, drained = asyncio.get_running_loop(), asyncio.Event()
    serving = asyncio.create_task(answer)
    others: list[asyncio.Task[Any]] = [
        asyncio.create_task(_leave(visit.context.request.receive)),
        asyncio.create_task(drained.wait()),
    ]
    forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(drained.set))
    try:
        await asyncio.wait({serving, *others}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        forget()
        gone = not serving.done() and not drained.is_set()
        task = await _end(stream, serving, *others)
    if serving.cancelled():
        if drained.is_set():
            await at_drain()
        elif gone and task is not None:
            cancel_later(visit, stream.subject.id, task)
        return
    serving.result()


async def _leave(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(stream: EventStream, *work: asyncio.Task[Any]) -> int | None:
    """End everything about a stream. Returns the key of its task if the turn goes on; the log is closed after the last read."""
    for one in work:
        one.cancel()
    await asyncio.wait(work)
    follower = stream.follower
    key = follower.feed.task if follower.feed and not follower.done else None
    await stream.close()
    return key


def cancel_later(visit: Visit, task_id: str, task: int) -> None:
    """Cancel the task of a client that has left, after HANG_UP_SECONDS, unless somebody follows it then.

    Nothing happens if the agent goes on (`Agent.on_hangup`), or if this process drains. `task` is the key of the task.
    """
    if visit.agent.on_hangup != "go on" and not process_lifetime.is_draining():
        _begin(_cancel(visit, task_id, task))


async def cancel_now(visit: Visit, task_id: str, task: int) -> None:
    """Cancel the task of a client that says so; if somebody else follows it, look again after HANG_UP_SECONDS.

    It goes on by itself if the caller is cancelled, or if Redis or the database does not answer within NOW_SECONDS.
    """

    async def insist() -> None:
        followed = await hub().is_followed(task)
        if followed is not False or not await _cancel_once(visit, task_id):
            await _cancel(visit, task_id, task)

    await asyncio.wait({_begin(insist())}, timeout=NOW_SECONDS)


def _begin(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    begun = asyncio.create_task(work)
    _waiting.add(begun)
    begun.add_done_callback(_waiting.discard)
    return begun


async def _cancel(visit: Visit, task_id: str, task: int) -> None:
    loop, drained = asyncio.get_running_loop(), asyncio.Event()
    forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(drained.set))
    try:
        for _ in range(MAX_LOOKS):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(drained.wait(), float(conf.HANG_UP_SECONDS))
            if process_lifetime.is_draining() or await _try(visit, task_id, task):
                return
    finally:
        forget()


async def _try(visit: Visit, task_id: str, task: int) -> bool:
    """Cancel the task unless somebody follows it; return False if Redis or the database did not answer."""
    followed = await hub().is_followed(task)
    return bool(followed) if followed is not False else await _cancel_once(visit, task_id)


async def _cancel_once(visit: Visit, task_id: str) -> bool:
    try:
        await visit.run("CancelTask", CancelTaskRequest(id=task_id, history_length=0))
    except Overloaded:
        return False
    except A2AError as fault:  # it has ended
        logger.debug("task %s goes on without its client: %s", task_id, fault.message)
    else:
        logger.info("task %s was cancelled: its client waits no longer", task_id)
    return True
