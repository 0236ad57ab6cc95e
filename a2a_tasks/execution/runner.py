"""The one runner: it claims runs, drives their agents, records what they say, and in the end gives the rest back.

One a process, on one event loop: the web process's own (local runs) or that of a worker (`worker`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from a2a_tasks import process, wakeups
from a2a_tasks.access import switched
from a2a_tasks.agents import Agent, AgentError, Turn, registry, switches
from a2a_tasks.agents.emission import Status, emission
from a2a_tasks.agents.mistakes import definition, line_of
from a2a_tasks.conf import conf
from a2a_tasks.execution.carried import Carried
from a2a_tasks.execution.drive import drive
from a2a_tasks.execution.files import StoredFiles
from a2a_tasks.execution.hearing import current, install
from a2a_tasks.execution.journal import StoredJournal
from a2a_tasks.execution.leases import Leases
from a2a_tasks.execution.presence import Load
from a2a_tasks.execution.processes import ProcessDied, Processes
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.run_log import Notebook
from a2a_tasks.execution.secrets import StoredSecrets
from a2a_tasks.execution.slots import Slots
from a2a_tasks.execution.turns import turn_of
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outages import Outage
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import TERMINAL, IllegalTransition
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import runs, workers
from a2a_tasks.store.hop import Refused, hop, outcome
from a2a_tasks.store.quarantine import GROUP, Quarantine
from a2a_tasks.store.records import Assignment, Fenced, Hold, RunEnd

__all__ = ["Runner"]

logger = logging.getLogger(__name__)
_blind = Outage(logger, "no look at due runs")

#: Between so many words of one agent the others get the loop.
BREATH = 50

#: Seconds a claim under way gets beyond the drain.
CLAIM_SECONDS = 0.5

#: Seconds until it is tried again to give up a run that could not be given up.
REST_SECONDS = 30.0

#: Characters of a trace that are kept, the last ones.
LONGEST_TRACE = 20_000

#: What is raised for a word that cannot be recorded.
UNFIT = (AgentError, IllegalTransition, TypeError, ValueError)

#: What a client reads of an agent with `after_crash = "fail"`.
NOT_AGAIN = "The process carrying this task died or was stopped, and the agent does not want to be run again: it may have acted already."


def _sendable(text: str) -> str:
    """The text without what no database and no peer takes: half surrogates and NUL."""
    return text.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")


class Runner:
    """Carries up to `slots` runs of the given queues. Make it in the loop it is to run on, then `start`."""

    def __init__(self, queues: Sequence[str] | None = None, *, slots: int | None = None) -> None:
        #: The queues served: those asked for, or those of all agents.
        self._asked = queues
        self.queues = self._served()
        self._slots = Slots(int(conf.RUN_SLOTS) if slots is None else slots)
        self._loop = asyncio.get_running_loop()
        self._carried: dict[int, Carried] = {}
        self._due = asyncio.Event()
        #: When suspects are claimed next, however often the bell rings; and until when nothing is rescued.
        self._suspects_at = self._patient_until = 0.0
        #: From when it can be said that nobody hosts an agent: those that do have had the time to say so.
        self._judging_from = time.monotonic() + runs.unseen()
        #: When lost runs were last looked for, by the wall clock, which goes on in a suspended machine.
        self._looked_at = time.time()
        #: Until when a run is left alone that could not be given up.
        self._resting: dict[int, float] = {}
        #: Lost runs whose rows somebody had locked, and until when they are left alone: their processes could not beat.
        self._locked: dict[int, float] = {}
        #: Marks of claims whose answers were lost: they may have been committed.
        self._unanswered: list[str] = []
        #: May runs be waiting in the table for a slot? Then what is accepted here waits behind them.
        self._behind = False
        #: Set once the table was looked at: this process can work.
        self.looked = asyncio.Event()
        self._leases = Leases(self._carried, self._lost)
        self._stack = contextlib.ExitStack()
        self._elsewhere = wakeups.Subscriber(self._hear)
        self._claimer: asyncio.Task[None] | None = None
        self._rescuer: asyncio.Task[None] | None = None
        self._draining = False
        self._processes = Processes()
        #: For runs in quarantine: no run gets a process that another suspect has left.
        self._isolation = Processes(used_again=False)
        self._notebook: Notebook
        self.worker = process.name()

    @property
    def carrying(self) -> int:
        """How many runs are in this process's hands."""
        return len(self._carried)

    def _served(self) -> list[str]:
        agents = {agent.queue for agent in registry.agents()} | switches.queues() | {"agents"}
        return sorted(self._asked or agents)

    def load(self) -> Load:
        """What this process takes, and how much it carries."""
        return Load(self.queues, self._slots.count, self.carrying)

    def start(self) -> None:
        """Begin to listen, beat and claim."""
        install()
        self._notebook = Notebook()
        self._stack.enter_context(wakeups.listen(self._heard))
        self._elsewhere.start()
        self._leases.start()
        self._claimer = asyncio.create_task(self._claim_for_ever())
        self._rescuer = asyncio.create_task(self._rescue_for_ever())

    # --- taking runs ------------------------------------------------------------------------

    def hold(self, queue: str, share: str = "") -> Hold | None:
        """A lease for a run about to be accepted, if this process has room to carry it at once."""
        if self._draining or self._behind or queue not in self.queues:
            return None
        if self._slots.room <= 0 or share in self._slots.full():
            return None
        return Hold(runs.new_token(), self.worker, float(conf.LEASE_SECONDS))

    def carry(self, assignment: Assignment) -> None:
        """Start a run this process holds."""
        if lost := self._carried.get(
            assignment.run
        ):  # an attempt of it that this very process has lost
            lost.stop()
            self._slots.free(lost.assignment.share)
        carried = self._carried[assignment.run] = Carried(assignment, self._forget)
        self._slots.take(assignment.share)
        carried.task = self._loop.create_task(self._carry(carried))
        carried.task.add_done_callback(lambda _: self._forget(carried))

    def _forget(self, carried: Carried) -> None:
        if self._carried.get(carried.assignment.run) is carried:
            limited = carried.assignment.scope.agent in switches.limits()
            if (
                self._slots.free(carried.assignment.share) or limited
            ):  # others may have been waiting for it
                self._due.set()
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
        if carried is not None:
            failpoint("worker.stopping")
            carried.stop()

    def _lost(self, carried: Carried) -> None:
        run = carried.assignment.run
        if self._carried.get(run) is carried and not carried.ending:
            self._stop(run)

    async def _claim_for_ever(self) -> None:
        while not self._draining:
            try:
                await self._claim()
                self.looked.set()
            except Overloaded as fault:  # the database is away: look again
                self._be_patient(fault)
            except Exception:
                logger.exception("a look at due runs failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(float(conf.POLL_SECONDS)):
                    await self._due.wait()

    async def _claim(self) -> None:
        await switched.fresh()
        while self._unanswered:
            await hop(runs.unclaim, self.worker, self._unanswered[0])
            del self._unanswered[0]
        self.queues = self._served()
        now = time.monotonic()
        if now >= self._suspects_at:
            self._suspects_at = now + float(conf.POLL_SECONDS)
            await self._claim_suspects()
        self._due.clear()
        while (limit := self._slots.at_once()) > 0 and not self._draining:
            if not await self._take(limit):
                self._behind = False
                return
        self._behind = True

    async def _claim_suspects(self) -> None:
        """Take runs in quarantine, as many as may be in this process at once."""
        carried = self._carried.values()
        isolated = sum(one.assignment.quarantine is Quarantine.PROCESS for one in carried)
        room = {
            Quarantine.GROUP: GROUP - sum(one.on_probation for one in carried),
            Quarantine.PROCESS: self._isolation.count - isolated,
        }
        for quarantine, free in room.items():
            if (limit := min(free, self._slots.at_once())) > 0 and not self._draining:
                await self._take(limit, quarantine)

    async def _take(self, limit: int, quarantine: Quarantine = Quarantine.NONE) -> bool:
        """Claim up to `limit` runs and start them; may there be more? What comes too late is given back."""
        mark = token_hex(4)
        try:
            taken = await outcome(
                runs.claim,
                self.queues,
                registry.slugs(),
                worker=self.worker,
                limit=limit,
                lease_seconds=float(conf.LEASE_SECONDS),
                carrying=self.carrying,
                full=self._slots.full(),
                limits=switches.limits(),
                quarantine=quarantine,
                orphans=time.monotonic() >= self._judging_from,
                mark=mark,
            )
        except Overloaded as fault:
            if not fault.undone:
                self._unanswered.append(mark)
            raise
        if taken:
            failpoint("worker.claimed")
        for assignment in taken:
            if time.monotonic() - assignment.asked < float(conf.LEASE_SECONDS):
                self.carry(assignment)
            else:
                self._leases.give_back(assignment.token)
        return runs.has_more(taken, limit)

    # --- the dead -----------------------------------------------------------------------------

    @property
    def patient(self) -> bool:
        """Is nothing rescued now? For one lease after an outage those that could not beat get the time to do it."""
        return time.monotonic() < self._patient_until

    @property
    def spared(self) -> list[int]:
        """The runs that this process does not rescue: its own, and those that are left alone for a while. Any thread."""
        return [*list(self._carried), *list(self._resting), *list(self._locked)]

    def _be_patient(self, fault: Overloaded | None = None) -> None:
        if fault is not None:
            _blind.count(fault.__cause__ or fault)
        now, signs = time.monotonic(), workers.patience().total_seconds()
        self._patient_until = now + float(conf.LEASE_SECONDS)
        self._judging_from = max(self._judging_from, now + signs)

    async def _rescue_for_ever(self) -> None:
        """Look for lost runs, beside the claims: neither waits for the other."""
        while not self._draining:
            try:
                await self._rescue()
            except Overloaded as fault:
                self._be_patient(fault)
            except Exception:
                logger.exception("a look at lost runs failed")
            await asyncio.sleep(float(conf.POLL_SECONDS))

    async def _rescue(self) -> None:
        before, self._looked_at = self._looked_at, time.time()
        if self._looked_at - before > 2 * float(conf.LEASE_SECONDS):  # the machine was suspended
            self._be_patient()
        if self.patient:
            return
        most, now = int(conf.MAX_ATTEMPTS), time.monotonic()
        self._resting = {run: until for run, until in self._resting.items() if until > now}
        self._locked = {run: until for run, until in self._locked.items() if until > now}
        others = [*self._carried, *self._resting]
        found = await hop(
            runs.queue_again, max_attempts=most, without=others, watched=list(self._locked)
        )
        beat = float(conf.BEAT_SECONDS) + float(conf.POLL_SECONDS)
        self._locked |= dict.fromkeys(found.locked, time.monotonic() + beat)
        for run in found.spent:
            try:
                await hop(runs.give_up, run, max_attempts=most)
            except Exception as fault:  # noqa: BLE001 - one that cannot be given up keeps no other run waiting
                logger.warning("run %s could not be given up: %r", run, fault.__cause__ or fault)
                self._resting[run] = time.monotonic() + REST_SECONDS

    # --- carrying one ---------------------------------------------------------------------

    async def _carry(self, carried: Carried) -> None:
        run = carried.assignment
        recorder = Recorder(run)
        journal = StoredJournal(run, recorder, carried.workplace, holds=carried.holds)
        secrets = StoredSecrets(run)
        turn = carried.turn = turn_of(run, journal, StoredFiles(run), secrets)
        log = self._notebook.open(run)
        current.set(log)  # in this task, and in what the agent starts from it
        try:
            end = await self._listen_to(carried, turn, recorder)
            failpoint("worker.agent_returned")
            carried.ending = True
            recorder.finish(end)
            await recorder.written()
            await secrets.wipe()
        except Fenced:
            logger.info("run %s lost its task; its agent was stopped", run.run)
        except Overloaded as fault:
            logger.warning("run %s could not write: %s", run.run, fault.__cause__)
            self._leases.give_back(run.token, carried)
        except asyncio.CancelledError:
            logger.info("run %s was stopped", run.run)
        except ProcessDied as fault:
            await self._surrender(run, str(fault), said=recorder)
        except (
            Exception
        ):  # what it said cannot be written: another attempt, and in the end a failed task
            logger.exception("run %s could not be recorded", run.run)
            await self._note(run, traceback.format_exc())
            await self._surrender(run, "what it said could not be recorded")
        finally:
            turn._stop()  # noqa: SLF001 - its threads wait for nothing any more
            log.close()

    async def _listen_to(self, carried: Carried, turn: Turn, recorder: Recorder) -> RunEnd:
        """Record what the agent says, to its end. CancelledError if it was stopped, however it took that."""
        run = carried.assignment
        agent = registry.hosted(run.scope.agent)
        try:
            if agent is None:
                raise AgentError("The agent is no longer hosted here.")
            if run.attempt > 1 and agent.after_crash == "fail":
                return self._not_again(recorder)
            async with contextlib.aclosing(self._words(agent, turn, carried)) as words:
                await self._record(carried, turn, words, recorder, agent)
            carried.workplace.check()
            turn._unused.tell(type(agent).__module__)  # noqa: SLF001 - ours to tell, the author's to read
            try:
                recorder.remember(turn.memory)
            except TypeError as fault:
                fault.add_note(f"It is the memory that the agent has left: {definition(agent.run)}")
                raise
        except (Fenced, Overloaded, Refused):
            raise
        except BaseException as fault:
            task = asyncio.current_task()
            if isinstance(fault, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # it was we who stopped it
            if carried.workplace.stopped:
                logger.info("run %s raised when it was stopped", run.run, exc_info=fault)
                raise asyncio.CancelledError from fault
            if isinstance(fault, ProcessDied):
                raise
            return self._failed(run, recorder, fault)
        return RunEnd()

    def _words(self, agent: Agent, turn: Turn, carried: Carried) -> AsyncGenerator[Any, None]:
        if carried.assignment.quarantine is Quarantine.PROCESS:
            return self._isolation.words(agent, turn, carried.workplace)
        if agent.runs_in == "process":
            return self._processes.words(agent, turn, carried.workplace)
        return drive(agent, turn, carried.workplace)

    async def _surrender(self, run: Assignment, how: str, *, said: Recorder | None = None) -> None:
        """The attempt ended by a fault of its own, which counts. What was `said` before stays."""
        logger.warning("run %s of %s: %s", run.run, run.scope.agent, how)
        with contextlib.suppress(
            Fenced, Overloaded, Refused
        ):  # then it is rescued, or was cancelled
            if said is not None:
                await said.written()
            await hop(runs.surrender, run, how, max_attempts=int(conf.MAX_ATTEMPTS))

    def _not_again(self, recorder: Recorder) -> RunEnd:
        """Fail the task of an agent that must not act twice. (A run handed back at a deploy has no attempt more.)"""
        recorder.say(Status(TaskState.FAILED, (Part(text=NOT_AGAIN),)))
        return RunEnd("failed")

    async def _note(self, run: Assignment, trace: str) -> None:
        """Keep why this attempt ends without a word, for whoever asks why the run was given up."""
        with contextlib.suppress(Overloaded):
            await hop(runs.note, run.token, _sendable(trace)[-LONGEST_TRACE:])

    async def _record(
        self,
        carried: Carried,
        turn: Turn,
        words: AsyncIterator[Any],
        recorder: Recorder,
        agent: Agent,
    ) -> None:
        count, files = 0, StoredFiles(carried.assignment)
        secrets = StoredSecrets(carried.assignment)
        if not agent.replies_directly and recorder.state is TaskState.SUBMITTED:
            recorder.say(Status(TaskState.WORKING))
        async for word in words:
            carried.workplace.check()
            if count == 0:
                failpoint("worker.agent_started")
            try:
                said = emission(word, answer=recorder.answer, begun=recorder.answer_begun)
                if isinstance(said, Status) and said.hand_over:
                    said = await secrets.asked(said)
                if files.concern(said.parts):
                    said = replace(said, parts=await files.put_away(said.parts))
                recorder.say(said)
            except UNFIT as fault:  # the agent's own frames have no part in this trace
                fault.add_note(f"It was said at {line_of(turn._speaker) or definition(agent.run)}")  # noqa: SLF001
                raise
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

    # --- giving back ---------------------------------------------------------------------

    def stop_claiming(self) -> None:
        """Take no more runs. Thread-safe."""
        self._draining = True
        self.wake()

    async def drain(self, seconds: float) -> None:
        """Stop claiming, let runs finish for that long, then hand the rest back for others to start."""
        self.stop_claiming()
        end = self._loop.time() + seconds
        if self._rescuer:
            self._rescuer.cancel()
        if self._claimer:  # a claim under way brings runs that have to be handed back as well
            await asyncio.wait([self._claimer], timeout=seconds + CLAIM_SECONDS)
            self._claimer.cancel()
        tasks = [carried.task for carried in self._carried.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, end - self._loop.time()))
        try:
            await self._hand_back()
        finally:
            await self._notebook.close()
            self._leases.stop()
            self._stack.close()
            await self._elsewhere.close()

    async def _hand_back(self) -> None:
        left = [carried for carried in self._carried.values() if not carried.task.done()]
        for carried in left:
            carried.stop()
        if left:
            await asyncio.wait([carried.task for carried in left], timeout=0.5)
        await asyncio.gather(self._processes.kill(), self._isolation.kill())
        owed = dict(self._leases.owed)
        tokens = {*owed, *(carried.assignment.token for carried in left)}
        acted = [one for one in (*left, *owed.values()) if one is not None and one.acted]
        if tokens:
            await hop(runs.hand_back, tokens, tried=[one.assignment.token for one in acted])
