"""The one runner: it claims runs, drives their agents, records what they say, and keeps their leases.

One a process, on one event loop: the web process's own (local runs) or that of a worker (`worker`). Heartbeats
come from a thread of their own, so that a busy loop does not lose its leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import traceback
from collections.abc import AsyncIterator, Sequence
from typing import Any

from a2a_tasks import wakeups
from a2a_tasks.agents import AgentError, Turn, registry
from a2a_tasks.agents.emission import Status, emission
from a2a_tasks.conf import conf
from a2a_tasks.execution.drive import drive
from a2a_tasks.execution.journal import StoredJournal
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.turns import turn_of
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import TERMINAL, IllegalTransition
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import runs
from a2a_tasks.store.hop import hang_up, hop, in_thread
from a2a_tasks.store.records import Assignment, Fenced, Hold, RunEnd

__all__ = ["Runner"]

logger = logging.getLogger(__name__)

#: Between so many words of one agent the others get the loop.
BREATH = 50


#: Characters of a trace that are kept, the last ones.
LONGEST_TRACE = 20_000

#: What a client reads of an agent with `after_crash = "fail"`.
NOT_AGAIN = "The process carrying this task died, and the agent does not want to be run again: it may have acted already."


def _sendable(text: str) -> str:
    """The text without what no database and no peer takes: half surrogates and NUL."""
    return text.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")


class _Carried:
    """A run in this process's hands."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.task: asyncio.Task[None]
        self.turn: Turn | None = None
        #: Its last words are being written, and with them it lets go of its lease.
        self.ending = False


class Runner:
    """Carries up to `slots` runs of the given queues. Make it in the loop it is to run on, then `start`."""

    def __init__(self, queues: Sequence[str] | None = None, *, slots: int | None = None) -> None:
        #: The queues served: those asked for, or those of all agents.
        self.queues = sorted(queues or {agent.queue for agent in registry.agents()} | {"agents"})
        self._slots = int(conf.RUN_SLOTS) if slots is None else slots
        self._loop = asyncio.get_running_loop()
        self._carried: dict[int, _Carried] = {}
        self._due = asyncio.Event()
        self._beat_stop = threading.Event()
        self._stack = contextlib.ExitStack()
        self._elsewhere = wakeups.Subscriber(self._hear)
        self._claimer: asyncio.Task[None] | None = None
        self._draining = False
        self.worker = f"{socket.gethostname()}:{os.getpid()}"

    def start(self) -> None:
        """Begin to listen, beat and claim."""
        self._stack.enter_context(wakeups.listen(self._heard))
        self._elsewhere.start()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        self._claimer = asyncio.create_task(self._claim_for_ever())

    # --- taking runs ------------------------------------------------------------------------

    def hold(self, queue: str) -> Hold | None:
        """A lease for a run about to be accepted, if this process has room to carry it at once."""
        if self._draining or len(self._carried) >= self._slots or queue not in self.queues:
            return None
        return Hold(runs.new_token(), self.worker, float(conf.LEASE_SECONDS))

    def carry(self, assignment: Assignment) -> None:
        """Start a run this process holds."""
        self._stop(assignment.run)  # an attempt of it that this very process has lost
        carried = self._carried[assignment.run] = _Carried(assignment)
        carried.task = self._loop.create_task(self._carry(carried))
        carried.task.add_done_callback(lambda _: self._forget(carried))

    def _forget(self, carried: _Carried) -> None:
        if self._carried.get(carried.assignment.run) is carried:
            del self._carried[carried.assignment.run]

    def wake(self) -> None:
        """There may be due runs: look now. Thread-safe."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._due.set)

    def _heard(self, hint: wakeups.Hint) -> None:
        if isinstance(hint, wakeups.Due):
            self.wake()
        elif isinstance(hint, wakeups.Stop):
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hear, hint)

    def _hear(self, hint: wakeups.Hint) -> None:
        if isinstance(hint, wakeups.Stop):
            self._stop(hint.run)

    def _stop(self, run: int) -> None:
        carried = self._carried.get(run)
        if carried is None:
            return
        if carried.turn is not None:
            carried.turn._stop()  # noqa: SLF001 - ours to say, the agent's to notice
        carried.task.cancel()

    async def _claim_for_ever(self) -> None:
        while not self._draining:
            try:
                await self._claim()
            except Overloaded as fault:  # the database is away: look again
                logger.warning("no look at due runs: %s", fault.__cause__)
            except Exception:
                logger.exception("a look at due runs failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(float(conf.POLL_SECONDS)):
                    await self._due.wait()

    async def _claim(self) -> None:
        if not self._due.is_set():  # a quiet moment: see to the dead
            await hop(runs.rescue, max_attempts=int(conf.MAX_ATTEMPTS))
        self._due.clear()
        while (room := self._slots - len(self._carried)) > 0 and not self._draining:
            taken = await hop(
                runs.claim,
                self.queues,
                registry.slugs(),
                worker=self.worker,
                limit=room,
                lease_seconds=float(conf.LEASE_SECONDS),
            )
            for assignment in taken:
                self.carry(assignment)
            if len(taken) < min(room, runs.BATCH):
                return

    # --- carrying one ---------------------------------------------------------------------

    async def _carry(self, carried: _Carried) -> None:
        run = carried.assignment
        recorder = Recorder(run)
        turn = carried.turn = turn_of(run, StoredJournal(run, recorder))
        try:
            end = await self._listen_to(run, turn, recorder)
            carried.ending = True
            recorder.finish(end)
            await recorder.written()
        except Fenced:
            logger.info("run %s lost its task; its agent was stopped", run.run)
        except Overloaded as fault:  # nothing is lost: the lease ends and the run is rescued
            logger.warning("run %s could not write: %s", run.run, fault.__cause__)
        except asyncio.CancelledError:
            logger.info("run %s was stopped", run.run)
        except (
            Exception
        ):  # what it said cannot be written: another attempt, and in the end a failed task
            logger.exception("run %s could not be recorded", run.run)
            await self._note(run, traceback.format_exc())
        finally:
            turn._stop()  # noqa: SLF001 - its threads wait for nothing any more
            if len(self._carried) >= self._slots:  # others may have been waiting for this slot
                self._due.set()

    async def _listen_to(self, run: Assignment, turn: Turn, recorder: Recorder) -> RunEnd:
        """Record what the agent says, to its end."""
        agent = registry.hosted(run.scope.agent)
        try:
            if agent is None:
                raise AgentError("The agent is no longer hosted here.")
            if run.attempt > 1 and agent.after_crash == "fail":
                return await self._not_again(run, recorder)
            async with contextlib.aclosing(drive(agent, turn)) as words:
                await self._record(words, recorder, replies=agent.replies_directly)
            recorder.remember(turn.memory)
        except (Fenced, Overloaded):
            raise
        except BaseException as fault:
            task = asyncio.current_task()
            if isinstance(fault, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # it was we who stopped it
            return self._failed(run, recorder, fault)
        return RunEnd()

    async def _not_again(self, run: Assignment, recorder: Recorder) -> RunEnd:
        """Fail the task of an agent that must not act twice. (A run handed back at a deploy has no attempt more.)"""
        recorder.say(Status(TaskState.FAILED, (Part(text=NOT_AGAIN),)))
        return RunEnd("failed", await hop(runs.deaths, run.run))

    async def _note(self, run: Assignment, trace: str) -> None:
        """Keep why this attempt ends without a word, for whoever asks why the run was given up."""
        with contextlib.suppress(Overloaded):
            await hop(runs.note, run.token, _sendable(trace)[-LONGEST_TRACE:])

    async def _record(
        self, words: AsyncIterator[Any], recorder: Recorder, *, replies: bool
    ) -> None:
        count = 0
        if not replies and recorder.state is TaskState.SUBMITTED:
            recorder.say(Status(TaskState.WORKING))
        async for word in words:
            recorder.say(emission(word, answer=recorder.answer, begun=recorder.answer_begun))
            count += 1
            if recorder.full or count % BREATH == 0:
                await recorder.room()
            if recorder.state in TERMINAL:
                return

    def _failed(self, run: Assignment, recorder: Recorder, fault: BaseException) -> RunEnd:
        text = _sendable(str(fault)) if isinstance(fault, AgentError) else "The agent failed."
        if not isinstance(fault, AgentError):
            logger.error("run %s of %s failed", run.run, run.scope.agent, exc_info=fault)
        with contextlib.suppress(IllegalTransition):  # it had ended its task already
            recorder.say(Status(TaskState.FAILED, (Part(text=text),)))
        trace = "".join(traceback.format_exception(fault))
        return RunEnd("failed", _sendable(trace)[-LONGEST_TRACE:])

    # --- keeping and giving back ------------------------------------------------------------

    def _beat(self) -> None:
        """The heartbeat thread: extend every lease; stop the agents of those that are gone."""
        try:
            while not self._beat_stop.wait(float(conf.BEAT_SECONDS)):
                self._beat_once()
        finally:
            hang_up()

    def _beat_once(self) -> None:
        held = {c.assignment.token: run for run, c in list(self._carried.items())}
        if not held:
            return
        try:
            alive = in_thread(runs.heartbeat, list(held))
        except Exception as fault:  # noqa: BLE001 - the thread must outlive whatever it is
            logger.warning("no heartbeat: %r", fault.__cause__ or fault)
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for token in held.keys() - alive:
                self._loop.call_soon_threadsafe(self._lost, held[token])

    def _lost(self, run: int) -> None:
        carried = self._carried.get(run)
        if carried is not None and not carried.ending:
            self._stop(run)

    def stop_claiming(self) -> None:
        """Take no more runs. Thread-safe."""
        self._draining = True
        self.wake()

    async def drain(self, seconds: float) -> None:
        """Stop claiming, let runs finish for that long, then hand the rest back for others to start."""
        self.stop_claiming()
        tasks = [carried.task for carried in self._carried.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        if self._claimer:
            self._claimer.cancel()
        await self._hand_back()
        self._beat_stop.set()
        self._stack.close()
        await self._elsewhere.close()

    async def _hand_back(self) -> None:
        left = [carried for carried in self._carried.values() if not carried.task.done()]
        tokens = [carried.assignment.token for carried in left]
        for carried in left:
            carried.task.cancel()
        if left:
            await asyncio.wait([carried.task for carried in left], timeout=0.5)
            await hop(runs.hand_back, tokens)
