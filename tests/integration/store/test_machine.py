"""Any interleaving of clients, agents, dying processes and rescuers, against a model that is a dictionary.

The agents speak through the recorder, as real ones do; what the log says is folded and compared with what is read
(law 6) after every step.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import TransactionTestCase
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from a2a_tasks.agents.emission import Chunk, StatusUpdate
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import TaskNotCancelable, UnsupportedOperation
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import cancel, parking, runs
from a2a_tasks.store.accept import accept
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import ClaimedRun, LeaseLost, RunEnd
from a2a_tasks.store.replies import reply
from a2a_tasks.store.tasks import list_tasks
from tests.support.store.world import ALICE, claim, everything, expire, found, new, replayed
from tests.support.thorough import examples

ATTEMPTS = 3


@dataclass
class Model:
    """What we believe of one task."""

    view: values.Task
    state: TaskState = TaskState.SUBMITTED
    events: int = 1
    #: True while its oldest run is parked.
    parked: bool = False
    #: Token of the run at work.
    holder: str | None = None
    #: Attempts of each run that has not ended, oldest first.
    waiting: list[int] = field(default_factory=list)
    attempts: dict[int, int] = field(default_factory=dict)
    #: Of each run: the task's newest event when it began or died last, the most events of an attempt, the deaths that count.
    since: dict[int, int] = field(default_factory=dict)
    furthest: dict[int, int] = field(default_factory=dict)
    deaths: dict[int, int] = field(default_factory=dict)

    def dies(self, run: int) -> int:
        """The run's process dies, and carried nothing else. How many deaths count now?"""
        written, self.since[run] = self.events - self.since[run], self.events
        got_further = written > self.furthest.get(run, 0)
        self.furthest[run] = max(written, self.furthest.get(run, 0))
        self.deaths[run] = 1 if got_further else self.deaths.get(run, 0) + 1
        return self.deaths[run]


@dataclass
class Agent:
    """A process's idea of a run: it may have lost it without knowing."""

    run: ClaimedRun
    state: TaskState
    artifacts: set[str] = field(default_factory=set)


class Store(RuleBasedStateMachine):
    agents = Bundle("agents")

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, Model] = {}
        self.keys: dict[str, int] = {}

    @initialize()
    def empty(self) -> None:
        Task.objects.all().delete()

    def drawn(self, n: int) -> str:
        return sorted(self.model)[n % len(self.model)]

    # --- clients -----------------------------------------------------------------------

    @precondition(lambda self: len(self.model) < 3)
    @rule(hold=st.booleans(), target=agents)
    def a_client_sends(self, hold: bool) -> Any:
        name = f"task-{len(self.model)}"
        result = accept(new(name, held=hold))
        self.model[name] = Model(
            result.view,
            waiting=[result.run],
            attempts={result.run: int(hold)},
            since={result.run: 1},
        )
        self.keys[name] = result.task
        if result.claimed_run is None:
            return multiple()
        self.model[name].holder = result.claimed_run.token
        return Agent(result.claimed_run, TaskState.SUBMITTED)

    @precondition(lambda self: self.model)
    @rule(n=st.integers(0, 5), hold=st.booleans(), target=agents)
    def a_client_replies(self, n: int, hold: bool) -> Any:
        name = self.drawn(n)
        task = self.model[name]
        if task.state in TERMINAL:
            with pytest.raises(UnsupportedOperation):
                reply(new(name, text="more"))
            return multiple()
        result = reply(new(name, text="more", held=hold))
        task.events += 1
        if task.state in INTERRUPTED:
            task.state = TaskState.WORKING
            task.events += 1
        assert result.number == task.events
        ours = hold and not task.waiting
        assert (result.claimed_run is not None) == ours
        task.waiting.append(result.run)
        task.attempts[result.run], task.since[result.run] = int(ours), result.number
        if result.claimed_run is None:
            return multiple()
        task.holder = result.claimed_run.token
        return self.agent(result.claimed_run)

    @precondition(lambda self: self.model)
    @rule(n=st.integers(0, 5))
    def a_client_cancels(self, n: int) -> None:
        name = self.drawn(n)
        task = self.model[name]
        if task.state in TERMINAL:
            with pytest.raises(TaskNotCancelable):
                cancel.cancel(ALICE, name)
            return
        cancel.cancel(ALICE, name)
        self.ended(task, TaskState.CANCELED)

    def ended(self, task: Model, state: TaskState) -> None:
        task.state, task.holder, task.waiting, task.parked = state, None, [], False
        task.events += 1

    # --- processes ---------------------------------------------------------------------

    @rule(target=agents)
    def a_process_claims(self) -> Any:
        due = [
            task
            for task in self.model.values()
            if task.waiting and task.holder is None and not task.parked
        ]
        if not due:
            assert claim() == []
            return multiple()
        # What came back keeps its round, so that a younger run may have an earlier one (docs/decisions/0007).
        rounds = dict(Run.objects.values_list("pk", "round"))
        oldest = min(due, key=lambda task: (rounds[task.waiting[0]], task.waiting[0]))
        (taken,) = claim(1)
        assert taken.key == oldest.waiting[0]
        oldest.attempts[taken.key] += 1
        oldest.holder = taken.token
        assert taken.attempt == oldest.attempts[taken.key]
        assert (taken.state, taken.last_event) == (oldest.state, oldest.events)
        return self.agent(taken)

    def agent(self, run: ClaimedRun) -> Agent:
        return Agent(run, run.state, {artifact_id for artifact_id, _, _ in run.artifacts})

    @precondition(lambda self: any(task.holder for task in self.model.values()))
    @rule(n=st.integers(0, 5))
    def a_process_dies_and_its_run_is_rescued(self, n: int) -> None:
        held = [(name, task) for name, task in sorted(self.model.items()) if task.holder]
        name, task = held[n % len(held)]
        expire(task.waiting[0])
        Run.objects.filter(pk=task.waiting[0]).update(worker=task.holder)  # its process is its own
        assert runs.reclaim_expired(max_attempts=ATTEMPTS) == 1
        task.holder = None
        if task.dies(task.waiting[0]) >= ATTEMPTS:
            self.ended(task, TaskState.FAILED)
            Run.objects.filter(task__public_id=name, status=RunStatus.QUEUED).update(
                status=RunStatus.DROPPED  # as whoever looks next would do
            )

    @rule(agent=agents)
    def a_process_gives_back(self, agent: Agent) -> None:
        task = self.model[agent.run.task_id]
        runs.hand_back([agent.run.token])
        if task.holder == agent.run.token:
            task.holder = None
            task.attempts[agent.run.key] -= 1

    @rule(agent=agents)
    def a_process_parks(self, agent: Agent) -> None:
        task = self.model[agent.run.task_id]
        if task.holder != agent.run.token:
            with pytest.raises(LeaseLost):
                parking.park(parking.Parking(agent.run, "step", 0))
            return
        parking.park(parking.Parking(agent.run, "step", 0))
        task.holder, task.parked = None, True
        task.attempts[agent.run.key] -= 1

    @rule()
    def a_process_wakes_what_is_parked(self) -> None:
        parking.wake()
        for task in self.model.values():
            task.parked = False

    @rule(agent=agents)
    def a_process_beats(self, agent: Agent) -> None:
        alive = self.model[agent.run.task_id].holder == agent.run.token
        assert runs.heartbeat([agent.run.token]) == ({agent.run.token} if alive else set())

    # --- agents ------------------------------------------------------------------------

    WORDS = st.lists(
        st.one_of(
            st.builds(
                Chunk,
                artifact_id=st.sampled_from("ab"),
                parts=st.text(max_size=3).map(lambda text: (Part(text=text),)),
                append=st.sampled_from([True, True, False]),
                last=st.booleans(),
                name=st.sampled_from([None, "name"]),
            ),
            st.sampled_from(
                [TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED]
            ).map(StatusUpdate),
            st.just(None),  # a pause: what was said before is written
        ),
        max_size=8,
    )

    @rule(agent=agents, words=WORDS)
    def an_agent_speaks(self, agent: Agent, words: list[Any]) -> None:
        """And its process goes on, or dies after the last word."""
        self.heard(agent, words, end=None)

    @rule(
        agent=consumes(agents),
        words=WORDS,
        end=st.sampled_from([TaskState.COMPLETED, TaskState.FAILED, TaskState.REJECTED, None]),
    )
    def an_agent_comes_to_its_end(
        self, agent: Agent, words: list[Any], end: TaskState | None
    ) -> None:
        self.heard(agent, [*words, *([StatusUpdate(end)] if end else [])], end=RunEnd())

    def heard(self, agent: Agent, words: list[Any], end: RunEnd | None) -> None:
        task = self.model[agent.run.task_id]
        holds = task.holder == agent.run.token
        before = len(everything(agent.run.task))
        try:
            agent.run = asyncio.run(self.spoken(agent.run, words, end))
        except LeaseLost:
            assert not holds
        else:
            assert holds or not (any(words) or end), "a zombie was heard"
        events = everything(agent.run.task)[before:]
        if not holds:
            assert events == []
            return
        task.events += len(events)
        states = [event.state for event in events if event.kind is EventKind.STATUS and event.state]
        task.state = states[-1] if states else task.state
        if end is not None:
            task.holder = None
            task.waiting = [] if task.state in TERMINAL else task.waiting[1:]

    @staticmethod
    async def spoken(run: ClaimedRun, words: list[Any], end: RunEnd | None) -> ClaimedRun:
        """Record the words. Returns the run as a second pen of the same process would take it up."""
        recorder = Recorder(run)
        held = Task.objects.filter(pk=run.task)
        recorder._written = await run_in_thread(
            lambda: held.values_list("batches", flat=True).first() or 0
        )
        for word in words:
            if word is None:
                await recorder.wait_written()
            else:
                recorder.emit(word)
        if end is not None:
            recorder.finish(end)
        await recorder.wait_written()
        artifacts = sorted(
            (artifact.position, artifact_id, artifact.open)
            for artifact_id, artifact in recorder._artifacts.items()
        )
        changes = {
            "state": recorder.state,
            "artifacts": tuple(
                (artifact_id, position, open_) for position, artifact_id, open_ in artifacts
            ),
        }
        return ClaimedRun(**{name: getattr(run, name) for name in ClaimedRun.__slots__} | changes)

    # --- what holds at all times -------------------------------------------------------

    @invariant()
    def the_rows_are_what_the_model_says(self) -> None:
        for name, task in self.model.items():
            read = found(name)
            assert (read.state, read.last_event) == (task.state, task.events)
            row = Task.objects.get(pk=read.task)
            assert row.run_token == (task.holder or "")
            waiting = Run.objects.filter(task=row, status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
            assert list(waiting.order_by("pk").values_list("pk", flat=True)) == task.waiting

    @invariant()
    def the_log_has_no_gaps_and_one_end(self) -> None:
        for name, task in self.model.items():
            events = everything(self.keys[name])
            assert [event.number for event in events] == list(range(1, task.events + 1))
            ends = [event.number for event in events if event.state in TERMINAL]
            assert ends == ([task.events] if task.state in TERMINAL else [])

    @invariant()
    def replay_equals_read(self) -> None:
        for name, task in self.model.items():
            assert replayed(task.view, self.keys[name]) == found(name).view

    @invariant()
    def the_list_has_each_once(self) -> None:
        page = list_tasks(ALICE, ListTasksRequest(page_size=100))
        assert sorted(task.id for task in page.tasks) == sorted(self.model)
        assert page.total_size == len(page.tasks)


class TestStore(TransactionTestCase):
    def test_any_interleaving(self) -> None:
        run_state_machine_as_test(
            Store,
            settings=settings(
                max_examples=examples(40, quick=8),
                stateful_step_count=20,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
