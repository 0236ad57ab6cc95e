"""Calling an agent's `run` of any kind: async generator, coroutine, generator or plain function; and the threads of a run.

All become one async iterator of the agent's values. Synchronous ones run in threads, one step at a time: the next step
starts only after its value was consumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from types import GeneratorType
from typing import Any

from django.db import connections

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.conf import conf
from a2a_tasks.execution.threads import ThreadJob, Threads
from a2a_tasks.protocol.lifecycle import INTERRUPTED

__all__ = ["RunThreads", "drive", "tell_of_cancel"]

logger = logging.getLogger(__name__)
#: Seconds until the next try to start a thread, if the machine had no memory for it.
AGAIN_SECONDS = 1.0
_END = object()
_threads = Threads()


class RunThreads:
    """The threads that work for one run, and whether the run was started and stopped. It belongs to the event loop."""

    def __init__(self, agent: str = "") -> None:
        #: The agent's slug, for the log.
        self.agent = agent
        #: True if the run was stopped before its end.
        self.stopped = False
        #: True once the agent's `run` was called: it may have acted.
        self.begun = False
        self._jobs: set[ThreadJob] = set()

    async def in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a thread. If the caller is cancelled, the call goes on until the run is stopped."""
        context = contextvars.copy_context()  # it names the log of the run
        job = None
        while job is None:
            try:
                job = _threads.submit(lambda: context.run(_call_and_close, work, *args), self.agent)
            except RuntimeError as fault:  # not the run's fault
                logger.warning("a run of agent %s waits for a thread: %s", self.agent, fault)
                await asyncio.sleep(AGAIN_SECONDS)
        self._jobs.add(job)
        job.future.add_done_callback(lambda _: self._jobs.discard(job))
        if self.stopped:
            self._abandon_later(job)
        return await asyncio.wrap_future(job.future)

    @staticmethod
    def spare(count: int) -> None:
        """Count so many threads more, or less, that wait for other tasks."""
        if count:
            _threads.spare(count)

    def check(self) -> None:
        """Raise CancelledError if the run was stopped: its further output does not count."""
        if self.stopped:
            raise asyncio.CancelledError

    def stop(self) -> None:
        """Stop the run: its threads get A2A_STOP_SECONDS to end, and are abandoned then."""
        self.stopped = True
        for job in tuple(self._jobs):
            self._abandon_later(job)

    def _abandon_later(self, job: ThreadJob) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(float(conf.STOP_SECONDS), _threads.abandon, job)

    async def wait_idle(self) -> None:
        """Wait until all threads of the run have ended."""
        while self._jobs:
            jobs = [asyncio.wrap_future(job.future) for job in self._jobs]
            await asyncio.gather(*jobs, return_exceptions=True)


def _call_and_close(work: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and close the database connections that an agent's own queries opened in this thread."""
    try:
        return work(*args)
    except StopIteration as end:  # a future takes any exception but this one
        raise RuntimeError("the agent raised StopIteration") from end
    finally:
        connections.close_all()


def _step(generator: GeneratorType[Any, None, Any], threads: RunThreads) -> Any:
    """Return the generator's next value. If the run was stopped meanwhile, close the generator in its own thread."""
    value = next(generator, _END)
    if threads.stopped:
        generator.close()
    return value


async def _steps(
    generator: GeneratorType[Any, None, Any], turn: Turn, threads: RunThreads
) -> AsyncGenerator[Any, None]:
    try:
        while (value := await threads.in_thread(_step, generator, threads)) is not _END:
            _note(turn, value, generator)
            yield value
    finally:
        if not generator.gi_running:
            await asyncio.shield(threads.in_thread(generator.close))


def _call(agent: Agent, turn: Turn, threads: RunThreads) -> Any:
    threads.begun = True
    return agent.run(turn)


async def _synchronous(agent: Agent, turn: Turn, threads: RunThreads) -> AsyncGenerator[Any, None]:
    answer = await threads.in_thread(_call, agent, turn, threads)
    if isinstance(answer, GeneratorType):
        values = _steps(answer, turn, threads)
    else:
        values = _asynchronous(answer, turn)
    async with contextlib.aclosing(values):
        async for value in values:
            yield value


async def _asynchronous(answer: Any, turn: Turn) -> AsyncGenerator[Any, None]:
    """Yield the values of an async generator, the result of a coroutine, or a plain value; None is skipped."""
    try:
        if inspect.isasyncgen(answer):
            async with contextlib.aclosing(answer) as values:
                async for value in values:
                    _note(turn, value, values)
                    yield value
            return
        value = await answer if inspect.isawaitable(answer) else answer
        if value is not None:
            _note(turn, value, None)
            yield value
    finally:
        await turn._close()  # noqa: SLF001 - private to agents, not to the host


def _note(turn: Turn, value: Any, where: Any) -> None:
    """Note that the agent yielded a value, and from which generator: an error about the value names its line."""
    turn._unused.note_use(value)  # noqa: SLF001 - private to agents, not to the host
    turn.conversation.note_word(asks=isinstance(value, StatusUpdate) and value.state in INTERRUPTED)
    turn._source = where  # noqa: SLF001


def drive(agent: Agent, turn: Turn, threads: RunThreads | None = None) -> AsyncGenerator[Any, None]:
    """Yield the agent's values for a turn, in order. The iterator must be closed, which closes the agent, too."""
    place = threads or RunThreads(agent.slug)
    if agent.synchronous:
        return _synchronous(agent, turn, place)
    return _asynchronous(_call(agent, turn, place), turn)


async def tell_of_cancel(agent: Agent, turn: Turn, threads: RunThreads) -> None:
    """Call an agent's `cancelled` of any kind. Raises its exceptions."""
    if inspect.iscoroutinefunction(agent.cancelled):
        await agent.cancelled(turn)
    else:
        await threads.in_thread(agent.cancelled, turn)
