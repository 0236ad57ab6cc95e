"""The runner: it claims runs, calls their agents, records their events, and hands unfinished runs back at the end.

A process has one runner, on one event loop: that of the web process (local runs) or of a worker (`worker`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Sequence
from contextvars import Context
from secrets import token_hex
from typing import Any

from django.conf import settings

from a2a_tasks import process, pubsub
from a2a_tasks.access import switch_cache
from a2a_tasks.agents import Agent, AgentError, Turn, registry, switches
from a2a_tasks.agents.author_errors import definition
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.conf import conf
from a2a_tasks.execution.active_run import ActiveRun
from a2a_tasks.execution.agent_call import drive
from a2a_tasks.execution.attempt_span import AttemptSpan, with_output
from a2a_tasks.execution.cancelled_tasks import CancelledTasks
from a2a_tasks.execution.journal import StoredJournal
from a2a_tasks.execution.leases import Leases
from a2a_tasks.execution.meter import Meter
from a2a_tasks.execution.presence import WorkerLoad
from a2a_tasks.execution.processes import ProcessDied, Processes
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.run_log import RunLogWriter
from a2a_tasks.execution.run_log_handler import current, install
from a2a_tasks.execution.slots import AgentKind, Place, SlotLender, Slots
from a2a_tasks.execution.sources import StoredConversation, StoredFiles, StoredSecrets
from a2a_tasks.execution.turns import bind_log_context, turn_of
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import IllegalTransition
from a2a_tasks.protocol.titles import title_of
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import behind, call_trees, parking, runs, workers
from a2a_tasks.store.db import (
    TransactionRefused,
    retry_until_answered,
    run_in_thread,
    run_to_completion,
)
from a2a_tasks.store.quarantine import GROUP, Quarantine
from a2a_tasks.store.records import (
    ClaimedRun,
    LeaseLost,
    PreclaimedLease,
    RunEnd,
    WantedRuns,
    new_token,
)
from a2a_tasks.store.versions import fail_tasks_of
from a2a_tasks.telemetry import tracing
from a2a_tasks.telemetry.redaction import redact
from a2a_tasks.telemetry.run_counters import OTHERS, attempts, run_seconds

__all__ = ["Runner"]

logger = logging.getLogger(__name__)
_blind = ThrottledLogger(logger, "due runs could not be read")

#: Seconds that a running claim gets beyond the drain.
CLAIM_SECONDS = 0.5

#: Seconds until the next try to give up a run, after a failure to do so.
REST_SECONDS = 30.0

#: Characters of a trace that are stored, from its end.
MAX_TRACE_LENGTH = 20_000

#: Text for the client when the process of an agent with `after_crash = "fail"` died.
NOT_AGAIN = "The process carrying this task died or was stopped, and the agent does not want to be run again: it may have acted already."


def _sendable(text: str) -> str:
    """Return the text without characters that databases and peers refuse: lone surrogates and NUL."""
    return text.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")


def _why(run: ClaimedRun) -> str:
    """Return why an attempt begins, for the metrics."""
    if run.attempt > 1:
        return "crash" if run.quarantine is Quarantine.NONE else "quarantine"
    if run.begun_before:
        return "woken" if run.parked_in else "handed_back"
    return "first"


def _make_journal(active: ActiveRun, recorder: Recorder, meter: Meter) -> StoredJournal:
    """Return the journal of a run that this process executes."""
    journal = StoredJournal(
        active.run,
        recorder,
        active.threads,
        meter=meter,
        holds=active.holds,
        leave=active.park,
        leaving=active.give_up_lease,
        acts_once=active.acts_once,
    )
    journal.lender = active.lender
    return journal


class Runner:
    """A runner of up to `slots` runs from the given queues. Must be made in its event loop, then started."""

    def __init__(self, queues: Sequence[str] | None = None, *, slots: int | None = None) -> None:
        #: The requested queues; None = those of all agents.
        self._requested_queues = queues
        self.queues = self._list_queues()
        self._processes = Processes()
        self._slots = Slots(
            int(conf.RUN_SLOTS) if slots is None else slots,
            {
                AgentKind.THREAD: lambda: int(conf.AGENT_THREADS),
                AgentKind.PROCESS: lambda: self._processes.count,
            },
        )
        self._loop = asyncio.get_running_loop()
        self._active: dict[int, ActiveRun] = {}
        #: The slots of runs that are being accepted, by the tokens of their leases: key, kind and size.
        self._reserved: dict[str, Place] = {}
        self._due = asyncio.Event()
        #: Time of the next claim of suspects, however many hints come; and end of the pause of rescues.
        self._suspects_at = self._patient_until = 0.0
        #: Time from which an agent can count as not hosted: until then, its processes may not have reported yet.
        self._judging_from = time.monotonic() + workers.absence().total_seconds()
        #: Time of the last search for lost runs, by the wall clock, which goes on while the machine is suspended.
        self._looked_at = time.time()
        #: Runs that could not be given up, with the time of the next try.
        self._resting: dict[int, float] = {}
        #: Lost runs with locked rows, and the time until which they are not rescued: their processes could not beat.
        self._locked: dict[int, float] = {}
        #: The last run behind another that was looked at, in case that its release was missed.
        self._swept = 0
        #: Marks of claims, and tokens of accepted runs, without an answer of the database: they may have been committed.
        self._unanswered: list[str] = []
        #: Large texts of runs are read one after the other.
        self._reading = asyncio.Lock()
        #: The kinds of agents of which runs in the table may wait for a slot. Newly accepted runs wait behind them.
        self._behind = set[AgentKind]()
        #: Set after the first query for due runs: this process can work.
        self.ready = asyncio.Event()
        self._leases = Leases(self._active, self._on_lease_lost)
        self._stack = contextlib.ExitStack()
        self._subscriber = pubsub.Subscriber(self._hear)
        self._claimer: asyncio.Task[None] | None = None
        self._rescuer: asyncio.Task[None] | None = None
        self._draining = False
        #: Processes for runs in quarantine: each run gets a new one.
        self._isolation = Processes(used_again=False)
        self._notebook: RunLogWriter
        self._cancelled = CancelledTasks(self._processes)
        self.worker = process.name()

    @property
    def runs_in_process(self) -> int:
        """Return the number of runs that this process executes."""
        return len(self._active)

    @property
    def has_room(self) -> bool:
        """True while this process could execute one more run of some agent. Any thread."""
        return not self._draining and self._slots.find_room(AgentKind.LOOP) > 0

    def _list_queues(self) -> list[str]:
        if self._requested_queues or conf.ENVIRONMENT:
            return sorted(self._requested_queues or registry.own_queues())
        return sorted(registry.own_queues() | switches.queues())

    def load(self) -> WorkerLoad:
        """Return the queues and slots of this process, and its number of runs."""
        return WorkerLoad(self.queues, self._slots.count, self.runs_in_process)

    def start(self) -> None:
        """Start to listen for hints, to send heartbeats and to claim runs."""
        install()
        self._notebook = RunLogWriter()
        self._stack.enter_context(pubsub.listen(self._on_hint, pubsub.RunQueued, pubsub.Stop))
        self._subscriber.start()
        self._leases.start()
        self._claimer = asyncio.create_task(self._claim_for_ever())
        self._rescuer = asyncio.create_task(self._rescue_for_ever())

    # --- taking runs ------------------------------------------------------------------------

    def preclaim(
        self, queue: str, quota_key: str = "", agent: Agent | None = None, size: int = 0
    ) -> PreclaimedLease | None:
        """Return a lease for a run that is about to be accepted, if this process has a free slot for it.

        Slot and bytes are reserved until `start_run` or `give_back`: others may be accepted meanwhile.
        """
        kind = AgentKind.of(agent)
        if self._draining or kind in self._behind or queue not in self.queues:
            return None
        if self._slots.find_room(kind) <= 0 or quota_key in self._slots.full():
            return None
        lease = PreclaimedLease(new_token(), self.worker, float(conf.LEASE_SECONDS))
        place = self._reserved[lease.token] = (quota_key, kind, size)
        self._slots.take(*place)
        return lease

    def give_back(self, lease: PreclaimedLease) -> None:
        """Give back the slot of a lease with which no run was accepted."""
        if self._slots.free(*self._reserved.pop(lease.token)):
            self._due.set()

    def take_back(self, mark: str) -> None:
        """Queue the runs again that were perhaps claimed under this mark, once the database answers."""
        self._unanswered.append(mark)
        self._due.set()

    def start_run(self, run: ClaimedRun) -> None:
        """Start a run whose lease this process has; give it back if the lease may have ended before the answer came."""
        reserved = self._reserved.pop(run.token, None)
        if time.monotonic() - run.requested_at >= float(conf.LEASE_SECONDS):
            self._leases.give_back(run.token)
            if reserved and self._slots.free(*reserved):
                self._due.set()
            return
        # An earlier attempt of the run in this same process has lost its lease.
        if lost := self._active.get(run.key):
            # A run that was parked goes on with the same attempt: it was woken before its agent had stopped.
            lost.parked = lost.parked or run.attempt == lost.run.attempt
            lost.fenced = not lost.parked
            lost.stop()
            lost.lender.end()
            self._slots.free(*lost.place)
        active = self._active[run.key] = ActiveRun(run, self._forget)
        self._take_slot(active, reserved)
        # In a context of its own: an agent that has called this one may have set variables.
        active.task = self._loop.create_task(self._execute_counted(active), context=Context())
        active.task.add_done_callback(lambda _: self._forget(active))

    def _take_slot(self, active: ActiveRun, reserved: Place | None = None) -> None:
        """Take the slot of a run, or the `reserved` one with the bytes that it has now."""
        quota_key, _, size = active.place
        if reserved is None:
            self._slots.take(*active.place)
        elif self._slots.resize(quota_key, reserved[2], size):
            self._due.set()
        freed, spare = self._due.set, active.threads.spare
        active.lender = SlotLender(self._slots, *active.place, freed=freed, spare=spare)

    def _forget(self, active: ActiveRun) -> None:
        if self._active.get(active.run.key) is active:
            active.lender.end()
            limited = active.run.scope.agent in switches.limits()
            # Due runs may have waited for this slot.
            if self._slots.free(*active.place) or limited:
                self._due.set()
            del self._active[active.run.key]

    def wake(self) -> None:
        """Query for due runs now. Thread-safe."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._due.set)

    def _on_hint(self, hint: pubsub.Hint) -> None:
        if isinstance(hint, pubsub.RunQueued):
            self.wake()
        elif isinstance(hint, pubsub.Stop):
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hear, hint)

    def _hear(self, hint: pubsub.Hint) -> None:
        if isinstance(hint, pubsub.Stop):
            self._stop(hint.run)

    def _stop(self, run: int) -> None:
        active = self._active.get(run)
        if active is not None:
            failpoint("worker.stopping")
            active.stop()

    def _on_lease_lost(self, active: ActiveRun) -> None:
        run = active.run.key
        if self._active.get(run) is active and not active.ending and not active.parked:
            active.fenced = True
            self._stop(run)

    async def _claim_for_ever(self) -> None:
        while not self._draining:
            try:
                await self._claim()
                self.ready.set()
            except Overloaded as fault:  # the database is away: try again
                self._be_patient(fault)
            except Exception:
                logger.exception("the search for due runs failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(float(conf.POLL_SECONDS)):
                    await self._due.wait()

    async def _claim(self) -> None:
        await switch_cache.fresh()
        while self._unanswered:
            await run_in_thread(runs.unclaim, self.worker, self._unanswered[0])
            del self._unanswered[0]
        self.queues = self._list_queues()
        now = time.monotonic()
        if now >= self._suspects_at:
            self._suspects_at = now + float(conf.POLL_SECONDS)
            await self._claim_suspects()
        self._due.clear()
        await self._claim_due()

    async def _claim_due(self) -> None:
        """Claim what can be executed: of all kinds of agents together, then, if there may be more, kind by kind."""
        kinds = dict[AgentKind, list[str]]()
        for agent in registry.list_own():
            kinds.setdefault(AgentKind.of(agent), []).append(agent.slug)
        free = {kind: room for kind in kinds if (room := self._find_room(kind)) > 0}
        if len(free) > 1:
            agents = [slug for kind in free for slug in kinds[kind]]
            if not await self._take(min(free.values()), agents):
                self._behind = set(kinds) - set(free)
                return
        for kind, agents in kinds.items() or [(AgentKind.LOOP, [])]:
            self._behind.add(kind)
            while (limit := self._find_room(kind)) > 0 and not self._draining:
                if not await self._take(limit, agents):
                    self._behind.discard(kind)
                    break

    def _find_room(self, kind: AgentKind) -> int:
        return min(self._slots.at_once(), self._slots.find_room(kind))

    async def _claim_suspects(self) -> None:
        """Claim runs in quarantine, as many as this process may execute at once."""
        active = self._active.values()
        isolated = sum(one.run.quarantine is Quarantine.PROCESS for one in active)
        room = {
            Quarantine.GROUP: GROUP - sum(one.on_probation for one in active),
            Quarantine.PROCESS: self._isolation.count - isolated,
        }
        for quarantine, free in room.items():
            if (limit := min(free, self._slots.at_once())) > 0 and not self._draining:
                await self._take(limit, [agent.slug for agent in registry.list_own()], quarantine)

    async def _take(
        self, limit: int, agents: Sequence[str], quarantine: Quarantine = Quarantine.NONE
    ) -> bool:
        """Claim up to `limit` runs of these agents and start them; return whether there may be more."""
        mark, most = token_hex(4), self._slots.bytes_at_once()
        try:
            taken = await run_to_completion(
                runs.claim,
                WantedRuns(
                    queues=self.queues,
                    agents=agents,
                    known=[agent.slug for agent in registry.list_own()],
                    worker=self.worker,
                    lease_seconds=float(conf.LEASE_SECONDS),
                    runs_in_process=self.runs_in_process,
                    full=self._slots.full(),
                    quarantine=quarantine,
                    orphans=time.monotonic() >= self._judging_from,
                    mark=mark,
                    most=most,
                ),
                limit=limit,
                limits=switches.limits(),
            )
        except Overloaded as fault:
            if not fault.undone:
                self._unanswered.append(mark)
            raise
        if taken:
            failpoint("worker.claimed")
        for run in taken:
            self.start_run(run)
        return runs.has_more(taken, limit, most)

    # --- rescuing runs ------------------------------------------------------------------------

    @property
    def patient(self) -> bool:
        """True while rescues are paused: for one lease after an outage, other processes can extend their leases."""
        return time.monotonic() < self._patient_until

    @property
    def spared(self) -> list[int]:
        """Return the runs that this process does not rescue: its own, and those that are skipped now. Any thread."""
        return [*list(self._active), *list(self._resting), *list(self._locked)]

    def _be_patient(self, fault: Overloaded | None = None) -> None:
        if fault is not None:
            _blind.warning(fault.__cause__ or fault)
        now, signs = time.monotonic(), workers.patience().total_seconds()
        self._patient_until = now + float(conf.LEASE_SECONDS)
        self._judging_from = max(self._judging_from, now + signs)

    async def _rescue_for_ever(self) -> None:
        """Search for lost runs, and for parked ones to wake, independently of the claims: neither waits for the other."""
        look: Callable[[], None] = (
            call_trees.look_at_all
        )  # tasks may have ended while no process looked
        while not self._draining:
            try:
                while await run_in_thread(parking.wake):
                    pass
                await run_in_thread(look)
                look = call_trees.look
                self._swept = await run_in_thread(behind.release_missed, self._swept)
                await run_in_thread(runs.name_agents, self.queues)
                await self._rescue()
            except Overloaded as fault:
                self._be_patient(fault)
            except Exception:
                logger.exception("the search for lost runs failed")
            await self._hear_of_cancels()
            await asyncio.sleep(float(conf.POLL_SECONDS))

    async def _hear_of_cancels(self) -> None:
        """Begin the calls of `cancelled()`; a message that cannot be read delays no rescue."""
        try:
            await self._cancelled.look(self._notebook)
        except Overloaded as fault:
            _blind.warning(fault.__cause__ or fault)
        except Exception:
            logger.exception("the notices of cancelled tasks could not be taken")

    async def _rescue(self) -> None:
        before, self._looked_at = self._looked_at, time.time()
        if self._looked_at - before > 2 * float(conf.LEASE_SECONDS):  # the machine was suspended
            self._be_patient()
        if (jump := self._looked_at - before) < 0:  # the clock was set back
            await run_in_thread(parking.shift_waits, jump)
        if self.patient:
            return
        limit, now = int(conf.MAX_ATTEMPTS), time.monotonic()
        self._resting = {run: until for run, until in self._resting.items() if until > now}
        self._locked = {run: until for run, until in self._locked.items() if until > now}
        others = [*self._active, *self._resting]
        if gone := registry.list_failing_versions():
            await run_in_thread(fail_tasks_of, gone)
        found = await run_in_thread(
            runs.queue_again, max_attempts=limit, without=others, watched=list(self._locked)
        )
        beat = float(conf.BEAT_SECONDS) + float(conf.POLL_SECONDS)
        self._locked |= dict.fromkeys(found.locked, time.monotonic() + beat)
        for run in found.spent:
            try:
                await run_in_thread(runs.give_up, run, max_attempts=limit)
            except Exception as fault:  # noqa: BLE001 - one failure must not keep other runs waiting
                logger.warning("run %s could not be given up: %r", run, fault.__cause__ or fault)
                self._resting[run] = time.monotonic() + REST_SECONDS

    # --- executing a run ------------------------------------------------------------------

    async def _execute_counted(self, active: ActiveRun) -> None:
        """Execute a run, and count the attempt."""
        bind_log_context(active.run, active.request)
        slug = active.run.scope.agent
        agent = slug if active.agent else OTHERS
        attempts.labels(agent, _why(active.run)).inc()
        outcome = await self._read_texts(active) if active.run.unread else ""
        outcome = outcome or await self._execute(active)
        run_seconds.labels(agent, outcome).observe(active.age)

    async def _read_texts(self, active: ActiveRun) -> str:
        """Read the large texts of a run, one run at a time; return the outcome of one that does not get them."""
        run, reserved = active.run, active.place
        try:
            async with self._reading:
                read = functools.partial(run_in_thread, runs.read_texts, run)
                active.take_texts(await retry_until_answered(read, repeatable=True))
        except LeaseLost:
            return "canceled"
        except asyncio.CancelledError:
            return "handed_back" if self._draining else "canceled"
        except Exception:  # it is tried again, or fails
            logger.exception("the texts of run %s could not be read", run.key)
            await self._note(run, traceback.format_exc())
            await self._surrender(run, "its message could not be read")
            return "crashed"
        self._take_slot(active, reserved)
        bind_log_context(active.run, active.request)
        return ""

    async def _execute(self, active: ActiveRun) -> str:
        """Execute a run; return the outcome for the metrics."""
        run = active.run
        conversation = StoredConversation(run)
        meter = Meter(run, active.request)
        recorder = Recorder(run, conversation, meter)
        journal = _make_journal(active, recorder, meter)
        secrets = StoredSecrets(run)
        turn = active.turn = turn_of(
            run, journal, StoredFiles(run), secrets, conversation, active.request
        )
        log = self._notebook.open(run)
        current.set(log)  # for this task, and for tasks and threads that the agent starts
        try:
            with AttemptSpan(active, turn.message.message_id, recorder):
                end = await self._listen_to(active, turn, recorder, journal)
                failpoint("worker.agent_returned")
                active.ending = True
                recorder.finish(end)
                await recorder.wait_written()
                await secrets.wipe()
            await self._end_calls(active, journal)
            return "failed" if recorder.state is TaskState.FAILED else end.status
        except LeaseLost:
            logger.info("run %s lost its task; its agent was stopped", run.key)
            return "canceled"
        except Overloaded as fault:
            logger.warning("run %s could not write: %s", run.key, fault.__cause__)
            self._leases.give_back(run.token, active)
            return "handed_back"
        except asyncio.CancelledError:
            logger.info("run %s was stopped", run.key)
            stopped = "handed_back" if self._draining else "canceled"
            return "parked" if active.parked else stopped
        except ProcessDied as fault:
            await self._surrender(run, str(fault), recorder=recorder)
        except Exception:  # its events cannot be written: it is tried again, or fails
            logger.exception("run %s could not be recorded", run.key)
            await self._note(run, traceback.format_exc())
            await self._surrender(run, "the agent's output could not be stored")
        finally:
            turn._stop()  # noqa: SLF001 - wake its waiting threads
            log.close()
            with contextlib.suppress(TransactionRefused, Overloaded):
                await meter.close()  # it was spent, however the run ended
        return "crashed"

    async def _end_calls(self, active: ActiveRun, journal: StoredJournal) -> None:
        """Close the calls of a run that has ended, and tell the task that has called its own. A look does what is missed."""
        run = active.run
        with contextlib.suppress(Overloaded):
            if journal.has_called:
                await run_in_thread(call_trees.end_turn, run.task, run.input_number)
            if active.request.path:
                await run_in_thread(call_trees.settle, run.task)

    async def _listen_to(
        self, active: ActiveRun, turn: Turn, recorder: Recorder, journal: StoredJournal
    ) -> RunEnd:
        """Record the agent's values to its end, or until a budget stops it.

        Raises CancelledError if the run was stopped, however the agent reacted.
        """
        run, agent = active.run, active.agent
        try:
            if agent is None:
                raise AgentError("The agent is no longer hosted here.")
            if run.attempt > 1 and agent.after_crash == "fail":
                return self._not_again(recorder)
            await journal.admit("")
            values = self._run_agent(agent, turn, active)
            heard = with_output(values)
            async with journal.meter.limit, contextlib.aclosing(values), contextlib.aclosing(heard):
                await recorder.record(heard, agent, turn, active.threads)
            active.threads.check()
            turn._unused.tell(type(agent).__module__, agent.run)  # noqa: SLF001 - warnings for the author
            try:
                recorder.remember(turn.memory, definition(agent.run))
            except TypeError as fault:
                fault.add_note(f"It is the memory that the agent has left: {definition(agent.run)}")
                raise
        except (LeaseLost, Overloaded, TransactionRefused):
            raise
        except BaseException as fault:
            task = asyncio.current_task()
            if isinstance(fault, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the runner stopped it
            if active.threads.stopped:
                logger.info("run %s raised when it was stopped", run.key, exc_info=fault)
                raise asyncio.CancelledError from fault
            if isinstance(fault, ProcessDied):
                raise
            return self._fail(run, recorder, journal.meter.refusal or fault)
        return RunEnd()

    def _run_agent(self, agent: Agent, turn: Turn, active: ActiveRun) -> AsyncGenerator[Any, None]:
        if active.run.quarantine is Quarantine.PROCESS:
            return self._isolation.drive(agent, turn, active.threads)
        if agent.runs_in == "process":
            return self._processes.drive(agent, turn, active.threads)
        return drive(agent, turn, active.threads)

    async def _surrender(
        self, run: ClaimedRun, how: str, *, recorder: Recorder | None = None
    ) -> None:
        """End an attempt by its own fault, which counts. Events in its recorder stay."""
        logger.warning("run %s of %s: %s", run.key, run.scope.agent, how)
        # After one of these the run is rescued, or was cancelled.
        with contextlib.suppress(LeaseLost, Overloaded, TransactionRefused):
            if recorder is not None:
                await recorder.wait_written()
            await run_in_thread(runs.report_crash, run, how, max_attempts=int(conf.MAX_ATTEMPTS))

    def _not_again(self, recorder: Recorder) -> RunEnd:
        """Fail the task of an agent that must not act twice; a run that was handed back at a deploy may start again."""
        recorder.emit(StatusUpdate(TaskState.FAILED, (Part(text=NOT_AGAIN),)))
        return RunEnd("failed")

    async def _note(self, run: ClaimedRun, trace: str) -> None:
        """Store why this attempt ends without events, for operators who ask why the run was given up."""
        with contextlib.suppress(Overloaded):
            await run_in_thread(runs.note, run.token, _sendable(trace)[-MAX_TRACE_LENGTH:])

    def _fail(self, run: ClaimedRun, recorder: Recorder, fault: BaseException) -> RunEnd:
        tracing.fail_current(type(fault).__name__)
        text = _sendable(str(fault)[:MAX_TRACE_LENGTH])
        trace = _sendable("".join(traceback.format_exception(fault)))[-MAX_TRACE_LENGTH:]
        if isinstance(fault, AgentError):
            said, line = [Part(text=text)], text
        else:
            logger.error("run %s of %s failed", run.key, run.scope.agent, exc_info=fault)
            said, line = [Part(text="The agent failed.")], redact(f"{type(fault).__name__}: {text}")
            if settings.DEBUG:  # the client is the author
                said.append(Part(text=trace))
        with contextlib.suppress(IllegalTransition):  # the agent had ended its task already
            recorder.emit(StatusUpdate(TaskState.FAILED, tuple(said)))
        return RunEnd("failed", trace, title_of([Part(text=line)]))

    # --- handing back --------------------------------------------------------------------

    def stop_claiming(self) -> None:
        """Claim no more runs. Thread-safe."""
        self._draining = True
        self.wake()

    async def drain(self, seconds: float) -> None:
        """Stop claiming, let runs finish for `seconds`, then hand the others back for other processes."""
        self.stop_claiming()
        end = self._loop.time() + seconds
        if self._rescuer:
            self._rescuer.cancel()
        if self._claimer:  # a running claim may bring runs, which must be handed back too
            await asyncio.wait([self._claimer], timeout=seconds + CLAIM_SECONDS)
            self._claimer.cancel()
        tasks = [active.task for active in self._active.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, end - self._loop.time()))
        try:
            await self._hand_back()
        finally:
            await self._cancelled.close()
            await self._notebook.close()
            self._leases.stop()
            self._stack.close()
            await self._subscriber.close()

    async def _hand_back(self) -> None:
        left = [active for active in self._active.values() if not active.task.done()]
        for active in left:
            active.stop()
        if left:
            await asyncio.wait([active.task for active in left], timeout=0.5)
        await asyncio.gather(self._processes.kill(), self._isolation.kill())
        owed = dict(self._leases.owed)
        tokens = {*owed, *(active.run.token for active in left)}
        acted = [one for one in (*left, *owed.values()) if one is not None and one.acted]
        if tokens:
            await run_in_thread(runs.hand_back, tokens, tried=[one.run.token for one in acted])
        with contextlib.suppress(Overloaded):
            for mark in self._unanswered:
                await run_in_thread(runs.unclaim, self.worker, mark)
