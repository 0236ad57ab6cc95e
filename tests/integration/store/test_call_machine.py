"""Any sequence of calls, questions, answers, cancels, ends, looks and deaths in trees of tasks, against the laws of trees.

A process that dies does so at a failpoint: inside a transaction, or after its commit and before what comes next.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import TransactionTestCase
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import IS_PARKED, Delegation, Event, Run, RunStatus, Step, Task
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotWaiting
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import call_trees, cancel, delegations, parking, replies, runs
from a2a_tasks.store.accept import accept
from a2a_tasks.store.append import append
from a2a_tasks.store.delegations import CallBegun, CallCompanion, find_tree
from a2a_tasks.store.parking import Parking
from a2a_tasks.store.records import ClaimedRun, LeaseLost, RunEnd
from tests.support.store.world import Pen, claim, expire, held, new, status
from tests.support.thorough import examples

MODULES = (call_trees, cancel, delegations, parking, replies)
MAX_TASKS, MAX_DEPTH, LATER = 12, 3, 10_000_000_000.0
GOING = [RunStatus.QUEUED, RunStatus.RUNNING]
NUMBER = st.integers(0, 11)
#: What happens, by its share. One rule draws from it: Hypothesis would leave out rules in most examples.
ACTS = {
    "calls": 3,
    "claims": 4,
    "waits": 3,
    "asks": 3,
    "ends": 3,
    "answers": 3,
    "cancels": 1,
    "dies": 1,
    "looks": 2,
}
POINTS = (
    "call.accepting",
    "call.relaying",
    "call.relayed",
    "call.answering",
    "call.closing",
    "call.closed",
    "call.cancelling",
    "park.begins",
    "park.fenced",
    "park.parked",
    "park.waking",
)


class Died(BaseException):
    """The process is killed here."""


@contextmanager
def dying(point: str) -> Iterator[Counter[str]]:
    """Kill whoever passes this failpoint; none if it is empty. Yields how often somebody was killed."""
    died = Counter[str]()

    def strike(name: str) -> None:
        if name == point:
            died[name] += 1
            raise Died

    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            if hasattr(module, "failpoint"):
                patch.setattr(module, "failpoint", strike)
        with suppress(Died):
            yield died


@dataclass(frozen=True)
class Drawn:
    """What an act has to choose from."""

    n: int
    name: str
    questions: str
    at_end: str
    #: Is the process still there after the end of the turn?
    told: bool
    fails: bool
    #: The failpoint at which the process dies that does it.
    point: str


DRAWN = st.builds(
    Drawn,
    n=NUMBER,
    name=st.sampled_from("abc"),
    questions=st.sampled_from(["relay", "relay", "return"]),
    at_end=st.sampled_from(["cancel", "cancel", "leave"]),
    told=st.booleans(),
    fails=st.booleans(),
    point=st.sampled_from([""] * len(POINTS) + [*POINTS]),
)


class Trees(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        #: The children by calling task, number of the message of the turn, and name.
        self.children: dict[tuple[int, int, str], int] = {}
        self.roots: list[str] = []
        #: What processes believe to hold: some have lost it.
        self.runs: list[ClaimedRun] = []
        #: The number of answers that went to each task.
        self.answered = Counter[int]()
        self.count = 0

    @initialize(wide=st.booleans(), deep=st.booleans())
    def a_tree_is_there(self, wide: bool, deep: bool) -> None:
        """A client has sent one task or two, whose agents have called others, and some of these others again."""
        Task.objects.all().delete()
        for _ in range(1 + wide):
            self.roots.append(f"root-{self.number()}")
            self.runs.append(held(self.roots[-1], context_id=self.roots[-1]))
        for run in list(self.runs):
            for name in "ab":
                self.call(run, name)
        claimed = claim(3)
        for run in claimed if deep else []:
            self.call(run, "a")
        self.runs += [*claimed, *(claim(2) if deep else [])]

    def number(self) -> int:
        self.count += 1
        return self.count

    def holds(self, run: ClaimedRun) -> bool:
        return Run.objects.filter(pk=run.key, token=run.token, status=RunStatus.RUNNING).exists()

    @rule(
        act=st.sampled_from([act for act, share in ACTS.items() for _ in range(share)]), drawn=DRAWN
    )
    def happens(self, act: str, drawn: Drawn) -> None:
        if act == "claims":
            self.runs += claim(1)
        elif act in {"answers", "cancels", "looks"}:
            getattr(self, f"somebody_{act}")(drawn)
        elif self.runs:
            run = self.runs[drawn.n % len(self.runs)]
            getattr(self, f"one_{act}")(run, drawn)
            if not self.holds(run) and drawn.n % 3:  # else a process that does not know it yet
                self.runs.remove(run)

    # --- clients and looks -------------------------------------------------------------

    def somebody_answers(self, drawn: Drawn) -> None:
        """The task that asks may be a root, or one that was called: its owner sees it, too."""
        asking = Task.objects.filter(state__in=INTERRUPTED).order_by("pk")
        names = list(asking.values_list("public_id", "agent"))
        if not names:
            return
        name, agent = names[drawn.n % len(names)]
        before, text = self.count_inputs(), f"answer {self.number()}"
        scope = OwnerScope("", "user:alice", agent)
        try:
            with dying(drawn.point) as died:
                replies.reply(new(name, text=text, scope=scope, context_id=""))
        except TaskNotWaiting:
            assert self.count_inputs() == before
            return
        took = self.count_inputs() - before
        if died["call.answering"]:
            assert not took
            return
        assert set(took.values()) == {1}
        assert took[Task.objects.get(public_id=name).pk] == 1
        (below,) = [key for key in took if not self.passes(took, key)]
        assert Run.objects.filter(task=below, status__in=GOING).exists()
        self.answered += took

    def passes(self, took: Counter[int], key: int) -> bool:
        """Did the task pass the answer on?"""
        below = Delegation.objects.filter(parent=key).values_list("child", flat=True)
        return any(child in took for child in below)

    def count_inputs(self) -> Counter[int]:
        events = Event.objects.filter(kind=EventKind.INPUT).values_list("task", flat=True)
        return Counter(events)

    def somebody_cancels(self, drawn: Drawn) -> None:
        tasks = list(Task.objects.order_by("pk").values_list("pk", flat=True))
        with dying(drawn.point), suppress(TaskNotCancelable):
            cancel.cancel_by_key(tasks[drawn.n % len(tasks)])

    def somebody_looks(self, drawn: Drawn) -> None:
        with dying(drawn.point):
            call_trees.look()
            parking.wake()

    # --- agents and their processes ----------------------------------------------------

    def one_dies(self, run: ClaimedRun, drawn: Drawn) -> None:
        """A process dies, and its run is rescued."""
        if self.holds(run):
            expire(run.key)
            assert runs.reclaim_expired(max_attempts=1000) == 1

    def one_calls(self, run: ClaimedRun, drawn: Drawn) -> None:
        policies = {"questions": drawn.questions, "at_end": drawn.at_end}
        self.call(run, drawn.name, point=drawn.point, **policies)

    def call(self, run: ClaimedRun, name: str, *, point: str = "", **policies: Any) -> None:
        """Let the agent of a run make a call, which the store has to begin once, or to refuse."""
        tree = find_tree(run)
        if len(tree.path) > MAX_DEPTH or Task.objects.count() >= MAX_TASKS:
            return
        turn = (run.task, run.input_number, name)
        agent = f"agent-{len(tree.path)}"
        parts = (Part(text="x"),)
        wanted = WantedCall(agent=agent, name=name, parts=parts, seconds=60.0, **policies)
        child = f"child-{self.number()}"
        scope = OwnerScope("", "user:alice", agent)
        companion = CallCompanion(run, wanted, tree)
        holds = self.holds(run)
        try:
            with dying(point) as died:
                accept(new(child, scope=scope, context_id=child, companions=(companion,)))
        except LeaseLost:
            assert not holds
        except CallBegun:
            assert holds
            assert turn in self.children
        else:
            if not died:
                assert holds
                assert turn not in self.children
                self.children[turn] = Task.objects.get(public_id=child).pk
                return
        assert not Task.objects.filter(public_id=child).exists()

    def one_waits(self, run: ClaimedRun, drawn: Drawn) -> None:
        """The run is parked for all its calls, unless all of them have ended."""
        turn = (run.task, run.input_number)
        names = [name for *own, name in self.children if tuple(own) == turn]
        state = TaskState(Task.objects.get(pk=run.task).state)
        if not names or state in TERMINAL | INTERRUPTED:
            return
        holds = self.holds(run)
        try:
            with dying(drawn.point) as died:
                parked = parking.park(Parking(run, f"{names[0]}: answer", LATER, calls=names))
            calls = Delegation.objects.filter(parent=run.task, input_number=run.input_number)
            assert died or parked == any(map(self.goes_on, calls.filter(open=True)))
        except LeaseLost:
            assert not holds

    def one_asks(self, run: ClaimedRun, drawn: Drawn) -> None:
        self.end(run, TaskState.INPUT_REQUIRED, drawn)

    def one_ends(self, run: ClaimedRun, drawn: Drawn) -> None:
        self.end(run, TaskState.FAILED if drawn.fails else TaskState.COMPLETED, drawn)

    def end(self, run: ClaimedRun, state: TaskState, drawn: Drawn) -> None:
        """End the turn; if others are not told, the process has died right after that."""
        holds = self.holds(run)
        event, row = status(state, f"{state.word} {self.number()}")
        row = row._replace(at=datetime.datetime.now(datetime.UTC))
        try:
            append(Pen(run).batch(event, status=row, end=RunEnd()))
        except LeaseLost:
            assert not holds
            return
        assert holds
        if drawn.told:
            with dying(drawn.point):
                call_trees.end_turn(run.task, run.input_number)
                call_trees.settle(run.task)

    # --- laws --------------------------------------------------------------------------

    @invariant()
    def each_call_has_one_task_and_each_task_was_sent_or_called(self) -> None:
        rows = Delegation.objects.values_list("parent", "input_number", "name", "child")
        assert {(*turn, child) for *turn, child in rows} == {
            (*turn, child) for turn, child in self.children.items()
        }
        assert Task.objects.count() == len(self.roots) + len(self.children)
        steps = Step.objects.values_list("task", "input_number", "name")
        assert set(steps) == set(self.children)

    @invariant()
    def each_answer_went_down_once(self) -> None:
        assert self.count_inputs() - Counter(set(self.count_inputs())) == self.answered

    @invariant()
    def no_question_stands_twice(self) -> None:
        asked = Event.objects.filter(kind=EventKind.STATUS, state__in=INTERRUPTED)
        said = Counter(asked.values_list("task", "body"))
        assert all(count == 1 for count in said.values())

    def teardown(self) -> None:
        """After some looks, all has come to where it must."""
        for _ in range(MAX_TASKS):
            call_trees.look_at_all()
        self.each_call_has_one_task_and_each_task_was_sent_or_called()
        self.each_answer_went_down_once()
        self.no_question_stands_twice()
        for call in Delegation.objects.select_related("parent", "child"):
            self.has_come_to_rest(call)
        for run in Run.objects.filter(IS_PARKED, awaits_calls=True):
            awaited = Delegation.objects.filter(parent=run.task, input_number=run.input_number)
            going = [call for call in awaited.filter(awaited=True) if self.goes_on(call)]
            assert going, "a run waits for nothing"

    def goes_on(self, call: Delegation) -> bool:
        state = TaskState(call.child.state)
        asks = state in INTERRUPTED and call.questions == "return"
        return state not in TERMINAL and not asks

    def has_come_to_rest(self, call: Delegation) -> None:
        parent, child = TaskState(call.parent.state), TaskState(call.child.state)
        turn = Run.objects.filter(task=call.parent, input_number=call.input_number)
        waits = turn.filter(status__in=GOING).exists()
        assert not call.cancel
        if parent in TERMINAL:
            assert not call.open
            assert child in TERMINAL or call.at_end == "leave"
        elif call.relayed is not None:
            assert (parent in INTERRUPTED, child in INTERRUPTED) == (True, True)
        elif call.open and waits and call.questions == "relay" and child in INTERRUPTED:
            assert parent in INTERRUPTED, "a question is lost"


class TestTrees(TransactionTestCase):
    def test_any_sequence(self) -> None:
        run_state_machine_as_test(
            Trees,
            settings=settings(
                max_examples=examples(150, quick=5),
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
