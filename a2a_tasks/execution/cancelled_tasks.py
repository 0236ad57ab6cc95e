"""Telling agents that a task was cancelled while no process worked on it: a short call of `Agent.cancelled`."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback

from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents.turn import Later, Turn
from a2a_tasks.execution.agent_call import RunThreads, tell_of_cancel
from a2a_tasks.execution.processes import Processes
from a2a_tasks.execution.run_log import RunLog, RunLogWriter
from a2a_tasks.execution.run_log_handler import LogLine, current
from a2a_tasks.execution.sources import StoredConversation, StoredFiles
from a2a_tasks.execution.turns import bind_log_context, find_task, request_of, turn_of
from a2a_tasks.store import cancel_notices
from a2a_tasks.store.db import run_to_completion
from a2a_tasks.store.records import ClaimedRun

__all__ = ["CancelledTasks"]

logger = logging.getLogger(__name__)
#: Most of these calls at once in a process.
AT_ONCE = 10
#: Most calls that wait for their turn, and the bytes of their runs at which no more are taken; further notices wait in the
#: database.
MOST_WAITING, MOST_BYTES = 200, 32 * 1024 * 1024
CALLED = "The task was cancelled while it waited: cancelled() is called."


class CancelledTasks:
    """The calls of one process, on its event loop."""

    def __init__(self, processes: Processes) -> None:
        """Make the calls of a process; `processes` are those of its agents."""
        self._processes = processes
        self._room = asyncio.Semaphore(AT_ONCE)
        #: The calls, with the bytes of their runs.
        self._calls: dict[asyncio.Task[None], int] = {}
        #: True if the last notices could not be read. Then one of them is taken, whichever: others do not wait behind it.
        self._careful = False

    async def look(self, notebook: RunLogWriter) -> None:
        """Take the notices for agents of this process, and begin the calls; `notebook` has the logs of runs. Raises Overloaded."""
        if len(self._calls) >= MOST_WAITING or sum(self._calls.values()) >= MOST_BYTES:
            return
        hearing, deaf = list[str](), list[str]()
        for own in registry.list_own():
            hears = own._hears_of_cancels  # noqa: SLF001 - private to agents
            (hearing if hears else deaf).append(own.slug)
        careful, self._careful = self._careful, True
        runs = await run_to_completion(cancel_notices.take, hearing, deaf, any_one=careful)
        self._careful = False
        for run in runs:
            agent = registry.find_own(run.scope.agent)
            if agent is not None and run.input:
                call = asyncio.create_task(self._tell(agent, run, notebook.open(run)))
                self._calls[call] = run.size
                call.add_done_callback(self._calls.pop)

    async def close(self) -> None:
        """Stop the calls that are under way."""
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)

    async def _tell(self, agent: Agent, run: ClaimedRun, log: RunLog) -> None:
        """Call the agent. Nothing that it does or raises matters to the task, which has ended."""
        request = request_of(run)
        bind_log_context(run, request)
        current.set(log)
        conversation = StoredConversation(run)
        turn = turn_of(run, None, StoredFiles(run), conversation=conversation, request=request)
        turn.task = Later(lambda: find_task(run), turn.history.loop)
        try:
            await self._call(agent, turn, log)
        except TimeoutError:
            seconds = f"{agent.cancel_seconds:g} s"
            _note(log, logging.ERROR, f"cancelled() did not end within {seconds}, and was stopped.")
        except Exception as fault:  # noqa: BLE001 - it is the agent's
            logger.info("cancelled() of %s: %r", agent.slug, fault)
            _note(log, logging.ERROR, f"cancelled() failed.\n{traceback.format_exc()}")
        finally:
            turn._stop()  # noqa: SLF001 - private to agents
            await turn._close()  # noqa: SLF001
            log.close()

    async def _call(self, agent: Agent, turn: Turn, log: RunLog) -> None:
        """Call the agent in its place. Raises its exceptions, and TimeoutError."""
        if agent.runs_in == "process":
            _note(log, logging.INFO, CALLED)
            await self._processes.tell_of_cancel(agent, turn)
            return
        async with self._room:
            _note(log, logging.INFO, CALLED)
            async with asyncio.timeout(agent.cancel_seconds):
                await tell_of_cancel(agent, turn, RunThreads(agent.slug))


def _note(log: RunLog, level: int, text: str) -> None:
    log.take(LogLine(time.time(), level, __name__, text))
