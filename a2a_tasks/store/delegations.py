"""Calls of agents by agents: their acceptance, and what parents and children learn of each other.

A call is accepted with its delegation and its step in one transaction, so that it has exactly one child. All else follows
from the rows: the process that ends a child calls `settle` at once, and each process looks once a second at what it may
have missed (`look`), by the tasks that have ended or asked in the last seconds (RECENT). Once a minute one process looks at
open calls, however long ago something happened, so many in one go (`look_at_all`).
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
from django.db import transaction
from django.db.models import Case, Max, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.agents.faults import CallRefused
from a2a_tasks.agents.wanted_call import ANSWER, WantedCall
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import AskPolicy, Delegation, EndPolicy, Event, Run, RunStatus, Step, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, LogEvent
from a2a_tasks.protocol.operators import ASKED_BY, CALLS
from a2a_tasks.protocol.values import Message, Part, Role, TaskState
from a2a_tasks.store import event_log
from a2a_tasks.store.backend import call_news
from a2a_tasks.store.hooks import TaskHooks
from a2a_tasks.store.records import ClaimedRun, LeaseLost

__all__ = [
    "AWAITED",
    "RECENT",
    "CallBegun",
    "CallCompanion",
    "CallNews",
    "CallTree",
    "DelegationHooks",
    "close",
    "find_news",
    "find_parent",
    "find_question",
    "find_tree",
    "has_open",
    "hides_question",
    "list_called_agents",
    "list_relayed",
    "note_waits",
    "settle_questions",
    "still_asks",
    "tell_waits",
]

#: The times that a look goes back: the first one if the process has looked a moment ago. Each is longer than a commit
#: takes, and PostgreSQL keeps a plan for each.
RECENT = datetime.timedelta(seconds=5), datetime.timedelta(seconds=30)
UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING)
#: The calls whose child goes on, for the turn that waits for it.
_GOES_ON = ~Q(child__state__in=TERMINAL) & ~Q(
    questions=AskPolicy.RETURN, child__state__in=INTERRUPTED
)
#: The calls of a run that it awaits, as long as their child goes on.
AWAITED = Delegation.objects.filter(
    _GOES_ON, parent=OuterRef("task"), input_number=OuterRef("input_number"), awaited=True
)

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CallTree(NamedTuple):
    """The place of a task among those that call each other: the root, and the agents from there down to the task."""

    root: int
    #: The public id of the root.
    root_id: str
    path: tuple[str, ...]


class CallBegun(Exception):
    """The call has a child already; `args` has the result of its step."""


def find_tree(run: ClaimedRun) -> CallTree:
    """Return the place of the task of a run."""
    own = run.scope.agent
    row = Delegation.objects.filter(child=run.task).values_list("root", "path").first()
    if row is None:
        return CallTree(run.task, run.task_id, (own,))
    names = Task.objects.filter(pk=row[0]).values_list("public_id", flat=True)
    return CallTree(row[0], names.first() or "", (*msgspec.json.decode(row[1]), own))


# --- acceptance -----------------------------------------------------------------------------


class CallCompanion:
    """Writes delegation and step of a call in the transaction that accepts its child.

    It raises LeaseLost if the run has lost its task, CallBegun, and CallRefused at the limits of turn and tree.
    """

    def __init__(self, run: ClaimedRun, wanted: WantedCall, tree: CallTree) -> None:
        self._run, self._wanted, self._tree = run, wanted, tree
        #: The result of the step, once it is written.
        self.result = ""

    def __call__(self, child: int) -> None:
        """Write the rows for the child with this key."""
        failpoint("call.accepting")
        run, wanted, tree = self._run, self._wanted, self._tree
        self.lock()
        turn = {"task_id": run.task, "input_number": run.input_number}
        steps = Step.objects.filter(Q(name=wanted.name) | Q(name__endswith=ANSWER), **turn)
        own = Case(
            When(name=wanted.name, then="result"), default=Value(""), output_field=TextField()
        )
        kept = dict(steps.values_list("name", own))
        if result := kept.pop(wanted.name, ""):
            raise CallBegun(result)
        _check_counts(run, tree, child, kept)
        values = {
            "parent_id": run.task,
            "input_number": run.input_number,
            "name": wanted.name,
            "root": tree.root,
            "depth": len(tree.path),
            "path": write(tree.path).decode(),
            "questions": wanted.questions,
            "at_end": wanted.at_end,
            "relayed": None,
            "open": True,
            "awaited": True,
            "created_at": Now(),
        }
        # One statement, since the tree is locked. The child may have been called before, and is continued.
        Delegation.objects.bulk_create(
            [Delegation(child_id=child, **values)],
            update_conflicts=True,
            unique_fields=["child"],
            update_fields=list(values),
        )
        self.result = _describe(child, wanted)
        Step.objects.create(**turn, name=wanted.name, result=self.result, run=run.key)

    def lock(self) -> None:
        """Lock the root, so that its tree is counted by one at a time, and the calling task, if the run still holds it."""
        run, root, rows = self._run, self._tree.root, Task.objects.select_for_update(no_key=True)
        root_first = Case(When(pk=root, then=0), default=1)
        both = rows.filter(pk__in={root, run.task}).order_by(root_first)
        tokens = dict(both.values_list("pk", "run_token"))
        if not run.token or tokens.get(run.task) != run.token:
            raise LeaseLost


def _check_counts(run: ClaimedRun, tree: CallTree, child: int, answers: Collection[str]) -> None:
    path = " → ".join(tree.path)
    others = Delegation.objects.filter(root=tree.root).exclude(child=child).count()
    most = int(conf.CALLS_PER_TURN)
    if others + len(answers) >= most and _count_calls(run, answers) >= most:
        raise CallRefused(f"A turn makes at most {most} calls: {path}.")
    most = int(conf.TREE_TASKS)
    if 1 + others >= most:
        raise CallRefused(f"Tasks that call each other are at most {most}: {path}.")


def _count_calls(run: ClaimedRun, answers: Collection[str]) -> int:
    """Count the calls of a turn. Those that continue one task have one row, but each has an answer."""
    begun = Delegation.objects.filter(parent=run.task, input_number=run.input_number)
    return len({name + ANSWER for name in begun.values_list("name", flat=True)} | {*answers})


def _describe(child: int, wanted: WantedCall) -> str:
    """Return the result of the step that begins a call."""
    columns = Task.objects.values_list("public_id", "context__public_id", Now())
    task, context, now = columns.get(pk=child)
    until = now.timestamp() + wanted.seconds
    return write({"task": task, "context": context, "key": child, "until": until}).decode()


# --- waiting --------------------------------------------------------------------------------


def note_waits(run: ClaimedRun, names: Collection[str]) -> bool:
    """Note the calls that a run awaits, in the transaction that parks it; False if all of them have ended."""
    calls = Delegation.objects.filter(parent=run.task, input_number=run.input_number, open=True)
    calls.filter(name__in=names).update(awaited=True)
    calls.exclude(name__in=names).update(awaited=False)
    return calls.filter(_GOES_ON, awaited=True).exists()


def tell_waits(run: ClaimedRun) -> list[LogEvent]:
    """Let the status of a task that is being parked name the called tasks that it awaits, so that its client can follow them."""
    task = event_log.lock_task(pk=run.task)
    if task is None or not task.is_task or task.state != TaskState.WORKING:
        return []
    turn = {"parent": run.task, "input_number": run.input_number, "awaited": True}
    rows = Delegation.objects.filter(_GOES_ON, **turn).order_by("pk")
    calls = [
        {"agent": agent, "taskId": name}
        for agent, name in rows.values_list("child__agent", "child__public_id")
    ]
    metadata = {CALLS: calls}
    if write(metadata).decode() in task.status_message:  # it was parked for them before
        return []
    text = f"Waits for {', '.join(dict.fromkeys(call['agent'] for call in calls))}."
    message = Message(
        message_id=str(uuid.uuid4()),
        context_id=run.context_id,
        task_id=run.task_id,
        role=Role.AGENT,
        parts=(Part(text=text),),
        metadata=metadata,
    )
    working, said, now = TaskState.WORKING, write(message).decode(), event_log.now()
    return [event_log.change_state(task, working, at=now, message=said, run=run.key)]


def has_open() -> bool:
    """Return whether there are calls of turns that go on, or tasks to cancel."""
    return Delegation.objects.filter(open=True).exists() or (
        Delegation.objects.filter(cancel=True).exists()
    )


def list_called_agents(task: int) -> list[str]:
    """Return the slugs of the agents that a task has called."""
    called = Delegation.objects.filter(parent=task).values_list("child__agent", flat=True)
    return list(called.distinct())


def find_parent(task: int) -> int | None:
    """Return the task that has called this one, and whose turn goes on."""
    calls = Delegation.objects.filter(child=task, open=True)
    return calls.values_list("parent", flat=True).first()


class CallNews(NamedTuple):
    """The callers of tasks that have ended or ask, those with a question to restate or to take back, and turns that have ended."""

    callers: list[int]
    asking: list[int]
    ended: list[tuple[int, int]]
    #: The key of the last call that was looked at, or whose question was; 0 = all were.
    looked_at: int


def find_news(recent: datetime.timedelta, *, after: int = 0) -> CallNews:
    """Find what has happened in this time. Of the questions that stand, it looks at some after a key."""
    return _sort(call_news.find(recent, after))


def find_next_news(after: int) -> CallNews:
    """Find what has happened at any time to the next open calls after a key."""
    return _sort(call_news.find_next(after))


def _sort(rows: Sequence[call_news.Row]) -> CallNews:
    return CallNews(
        sorted({parent for kind, parent, _ in rows if kind in call_news.CALLERS}),
        sorted({parent for kind, parent, _ in rows if kind in call_news.ASKING}),
        sorted({(parent, number) for kind, parent, number in rows if kind == call_news.OVER}),
        next((key for kind, key, _ in rows if kind == call_news.LOOKED_AT), 0),
    )


# --- questions ------------------------------------------------------------------------------


def settle_questions(parent: int) -> int | None:
    """Let the question of a child stand in its parent, or take it back; return the parent's parent if something changed.

    One question stands at a time, in the order in which they were asked.
    """
    if not _list_asking(parent).exists():
        return None
    recorded = _settle_questions(parent)
    if not recorded:
        return None
    failpoint("call.relayed")
    pubsub.publish(pubsub.Committed(parent, recorded[-1].number, recorded))
    return (
        Delegation.objects.filter(child=parent, open=True).values_list("parent", flat=True).first()
    )


def _list_asking(parent: int) -> QuerySet[Delegation]:
    asks = Q(relayed__isnull=False) | Q(child__state__in=sorted(INTERRUPTED))
    calls = Delegation.objects.filter(asks, parent=parent, open=True, questions=AskPolicy.RELAY)
    return calls.select_related("child").order_by("child__status_at", "pk")


@transaction.atomic
def _settle_questions(key: int) -> list[LogEvent]:
    parent = event_log.lock_task(pk=key)
    if parent is None or TaskState(parent.state) in TERMINAL:
        return []
    recorded: list[LogEvent] = []
    asking = list(_list_asking(key))
    for call in asking:
        if call.relayed is not None and not still_asks(call):
            call.relayed = None
            call.save(update_fields=["relayed"])
            if TaskState(parent.state) in INTERRUPTED:
                working, now = TaskState.WORKING, event_log.now()
                recorded.append(event_log.change_state(parent, working, at=now))
    for call in asking:
        if TaskState(parent.state) in INTERRUPTED:
            break
        question = find_question(call.child)
        runs = Run.objects.filter(
            task=parent, input_number=call.input_number, status__in=UNFINISHED
        )
        run = runs.values_list("pk", flat=True).first()
        if question is None or run is None:
            continue
        failpoint("call.relaying")
        text = _restate(call.child, parent)
        state, now = TaskState(call.child.state), event_log.now()
        recorded.append(event_log.change_state(parent, state, at=now, message=text, run=run))
        call.relayed = question
        call.save(update_fields=["relayed"])
    return recorded


def find_question(task: Task) -> int | None:
    """Return the number of the event with which a task asks its client; None if it does not ask."""
    if TaskState(task.state) not in INTERRUPTED:
        return None
    events = Event.objects.filter(task=task, kind=EventKind.STATUS)
    return events.aggregate(n=Max("number"))["n"] or task.last_event


def still_asks(call: Delegation) -> bool:
    """Return whether a call asks as it was relayed, or does so but for words of the child, which says that it works."""
    return call.relayed == find_question(call.child) or hides_question(call.child)


def hides_question(task: Task) -> bool:
    """Return whether a called task asks this one, whose words since then say that it works."""
    asked = list_relayed(task)
    return TaskState(task.state) not in INTERRUPTED | TERMINAL and asked.exists()


def list_relayed(task: Task) -> QuerySet[Delegation]:
    """Return the call whose question was relayed to this task, if there is one."""
    return Delegation.objects.filter(parent=task, open=True, relayed__isnull=False)


def _restate(child: Task, parent: Task) -> str:
    """Return the question of a child as the parent's message: it names the agent that asks."""
    asked: dict[str, Any] = {**_members(child.status_message or "{}")}
    metadata = msgspec.json.decode(asked.get("metadata") or b"{}")
    # A question that was relayed to the child names the agent that asked first.
    metadata.setdefault(ASKED_BY, {"agent": child.agent, "taskId": child.public_id})
    ids = {"taskId": parent.public_id, "contextId": parent.context.public_id}
    if not child.status_message:
        asked = {"messageId": f"{child.public_id}-question", "role": "ROLE_AGENT", "parts": []}
    return write({**asked, **ids, "metadata": metadata}).decode()


# --- ends -----------------------------------------------------------------------------------


def close(parent: int, input_number: int | None = None) -> None:
    """Close the calls of a turn, or of a task, that has ended: children that go on are cancelled, unless they may be left."""
    calls = Delegation.objects.filter(parent=parent, open=True)
    if input_number is not None:
        calls = calls.filter(input_number=input_number)
    failpoint("call.closing")
    with transaction.atomic():
        left = calls.filter(at_end=EndPolicy.CANCEL).exclude(child__state__in=TERMINAL)
        Delegation.objects.filter(pk__in=list(left.values_list("pk", flat=True))).update(
            cancel=True, open=False
        )
        calls.update(open=False)
    failpoint("call.closed")


class DelegationHooks(TaskHooks):
    """The hooks: a child is kept as long as its parent goes on, and successors take over the calls."""

    def on_succeed(self, old: int, new: int) -> None:
        """Let the successor of a child be the child."""
        Delegation.objects.filter(child=old).update(child=new)

    def find_needed(self, tasks: Collection[int]) -> set[int]:
        """Return the children of parents that go on."""
        calls = Delegation.objects.filter(child__in=tasks).exclude(parent__state__in=TERMINAL)
        return set(calls.values_list("child", flat=True))
