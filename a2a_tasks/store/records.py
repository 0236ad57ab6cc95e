"""What goes into the store and comes out of it, as values."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from django.db import IntegrityError

from a2a_tasks.audit import Action
from a2a_tasks.caller import Scope
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, Recorded
from a2a_tasks.protocol.values import UNSET, Raw, Task, TaskState, TaskStatus
from a2a_tasks.store.companions import Companion
from a2a_tasks.store.quarantine import Quarantine

__all__ = [
    "Accepted",
    "ArtifactRow",
    "Assignment",
    "Batch",
    "Fenced",
    "Hold",
    "NewEvent",
    "NewTask",
    "Question",
    "RunEnd",
    "TaskExists",
    "status_of",
]


class Fenced(Exception):
    """The run's token no longer holds the task; nothing was written."""


class TaskExists(IntegrityError):
    """The owner has a task of that id already; nothing was written."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A lease to be taken with the run itself, by the process that will carry it at once."""

    token: str
    worker: str
    lease_seconds: float
    #: When it was asked for, by the process's own clock: the lease is not older than that.
    asked: float = field(default_factory=time.monotonic, compare=False)


class Question(NamedTuple):
    """What somebody answers in the caller's place: the task by its primary key, and the number of its newest event then."""

    task: int
    event: int
    #: What the audit log calls the answer.
    action: Action = Action.TASK_ANSWER

    @property
    def by_operator(self) -> bool:
        """Is it an operator who answers?"""
        return self.action is Action.TASK_ANSWER


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTask:
    """A message that begins a task."""

    scope: Scope
    #: Who sends the message; empty = the owner.
    principal: str = ""
    id: str
    context_id: str
    #: The Message as JSON, with the ids of task and context in it.
    message: str
    role: str
    at: datetime.datetime
    dialect: str
    #: The binding it came by; empty = none, an operator had it run again.
    binding: str = ""
    #: The beginning of its text, for lists (`protocol/opening.py`).
    opening: str = ""
    queue: str
    #: Out of whose share of the slots its run comes.
    share: str = ""
    #: What the request said beside the message, as JSON, for the run.
    request: str = ""
    metadata: str = ""
    #: What the client or the proxy calls the request, for the audit log.
    request_id: str = ""
    #: Who sends it, for the audit log, if that is not the principal.
    sender: str = ""
    #: False if the agent may answer with a direct Message.
    is_task: bool = True
    hold: Hold | None = None
    #: If the task exists and has ended, begin it anew if it was made in one of these dialects.
    reopens: frozenset[str] = frozenset()
    #: An answer in the caller's place, to this question and to no other.
    answers: Question | None = None
    #: What other apps keep beside the task, written in the same transaction.
    companions: tuple[Companion, ...] = ()
    #: What its companions lock that another batch may want too: a batch takes these in order.
    lock: str = ""

    @property
    def maker(self) -> str:
        """Who makes the task, if that is not its owner."""
        return "" if self.principal == self.scope.owner else self.principal

    @property
    def actor(self) -> str:
        """Who sends the message."""
        return self.sender or self.principal or self.scope.owner

    def accompany(self, task: int) -> None:
        """Write what belongs beside the task with this primary key; call it inside the accepting transaction."""
        for write in self.companions:
            write(task)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A run in the hands of a process: everything needed to carry it."""

    run: int
    token: str
    attempt: int
    task: int
    scope: Scope
    task_id: str
    context_id: str
    state: TaskState
    is_task: bool
    last_event: int
    input_number: int
    input: str
    request: str
    memory: str
    share: str = ""
    #: How it is begun, because of how earlier attempts died.
    quarantine: Quarantine = Quarantine.NONE
    #: Longest that one of them lived, in seconds.
    longest_life: float = 0.0
    #: Artifacts that exist: (id, position, is it still growing?).
    artifacts: tuple[tuple[str, int, bool], ...] = ()
    #: When its lease was asked for, by this process's clock.
    asked: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """A message is in the log: which task, the task as it was then, and the run that will answer."""

    task: int
    number: int
    run: int
    view: Task
    assignment: Assignment | None = None


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended; see `protocol.lifecycle.Recorded` for the fields."""

    kind: EventKind
    body: str
    state: TaskState | None = None


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """An artifact that begins (body empty) or is whole in a batch; `offset` counts the batch's events from 0."""

    position: int
    artifact_id: str
    offset: int
    body: str = ""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: "ended" or "failed", and the trace of a failure."""

    status: Literal["ended", "failed"] = "ended"
    error: str = ""


@dataclass(kw_only=True, slots=True)
class Batch:
    """What one run appends in one transaction."""

    task: int
    run: int
    token: str
    events: list[NewEvent] = field(default_factory=list)
    #: State, moment and message (JSON) of the last status event.
    status: tuple[TaskState, datetime.datetime, str] | None = None
    artifacts: list[ArtifactRow] = field(default_factory=list)
    #: How many batches this acquisition of the run has written before; None = it is not counted.
    after: int | None = None
    #: Is it a repetition of a try whose outcome is unknown?
    again: bool = False
    #: Positions of artifacts that are whole with this batch, and are to be folded.
    closed: list[int] = field(default_factory=list)
    #: Positions of folded artifacts that grow again.
    reopened: list[int] = field(default_factory=list)
    #: A direct Message does not make a task of it; anything else does.
    reveal: bool = False
    memory: str | None = None
    end: RunEnd | None = None

    def come_again(self) -> None:
        """Mark it as a repetition."""
        self.again = True

    @property
    def size(self) -> int:
        """Roughly how many bytes it has."""
        messages = [e for e in self.events if e.kind is EventKind.MESSAGE]  # they are written twice
        texts = [event.body for event in [*self.events, *messages]]
        texts += [row.body for row in self.artifacts]
        texts += [self.memory or "", self.status[2] if self.status else ""]
        return sum(map(len, texts))

    @property
    def ends_task(self) -> bool:
        """Is the last status terminal?"""
        return self.status is not None and self.status[0] in TERMINAL

    def recorded(self, last: int) -> list[Recorded]:
        """The events as the log has them, the newest numbered `last`."""
        first = last - len(self.events) + 1
        return [
            Recorded(number=number, kind=e.kind, body=e.body, state=e.state, run=self.run)
            for number, e in enumerate(self.events, first)
        ]


def status_of(state: TaskState, at: datetime.datetime, message: str) -> TaskStatus:
    """The status value of a row."""
    stored = Raw(message.encode()) if message else None
    return TaskStatus(state=state, message=stored, timestamp=rfc3339(at))


def new_view(new: NewTask) -> Task:
    """The task as its first event shows it."""
    return Task(
        id=new.id,
        context_id=new.context_id,
        status=status_of(TaskState.SUBMITTED, new.at, ""),
        history=[Raw(new.message.encode())],
        artifacts=UNSET,
        metadata=Raw(new.metadata.encode()) if new.metadata else None,
    )
