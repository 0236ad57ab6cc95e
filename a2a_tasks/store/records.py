"""Arguments and results of the store's functions."""

from __future__ import annotations

import datetime
import enum
import secrets
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from django.db import IntegrityError

from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conversation_changes import ConversationChanges
from a2a_tasks.protocol.chats import ChatPlace
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, LogEvent
from a2a_tasks.protocol.values import UNSET, Raw, Task, TaskState, TaskStatus
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.quarantine import Quarantine

__all__ = [
    "Accepted",
    "ArtifactRow",
    "ChatMove",
    "FoundChat",
    "PlaceTaken",
    "REPEAT_SECONDS",
    "ClaimedRun",
    "Batch",
    "CLAIM_BYTES",
    "EventRow",
    "InsertedTask",
    "LeaseLost",
    "LogPosition",
    "PreclaimedLease",
    "NewEvent",
    "NewTask",
    "StoredQuestion",
    "RunEnd",
    "StatusRow",
    "Spender",
    "StepResult",
    "StepConflict",
    "TaskExists",
    "StoredTask",
    "WantedEvents",
    "WantedRuns",
    "make_recorded",
    "status_of",
]

#: The most bytes of messages, requests and memory after which a claim takes no more runs.
CLAIM_BYTES = 2 * 1024 * 1024
#: Seconds in which the same message of a chat may be the repetition of one that was accepted.
REPEAT_SECONDS = 60.0


class LeaseLost(Exception):
    """The run's token no longer holds the task; nothing was written."""


class TaskExists(IntegrityError):
    """The owner already has a task of that id; nothing was written."""


class PlaceTaken(Exception):
    """Another message has continued the conversation at this moment; nothing was written."""


class StepConflict(IntegrityError):
    """The step is stored already, with another result."""

    def __init__(self) -> None:
        super().__init__("the step was kept before, with another result")


def new_token() -> str:
    """Return a token for one lease. The name of a worker is no token, since it would outlive the lease."""
    return secrets.token_urlsafe(18)


@dataclass(frozen=True, slots=True)
class PreclaimedLease:
    """A lease that is taken when the run is written, by the process that starts it at once."""

    token: str
    worker: str
    lease_seconds: float
    #: Time of the request, by the process's own clock: the lease began at this time or later.
    requested_at: float = field(default_factory=time.monotonic, compare=False)


class StoredQuestion(NamedTuple):
    """A question that is answered in place of the client: the primary key of its task, and the newest event at that time."""

    task: int
    event: int
    #: The action of the answer in the audit log.
    action: Action = Action.TASK_ANSWER

    @property
    def by_operator(self) -> bool:
        """True if an operator answers."""
        return self.action is Action.TASK_ANSWER


@dataclass(frozen=True, kw_only=True, slots=True)
class NewTask:
    """A message that begins a task."""

    scope: OwnerScope
    #: The principal that sends the message; empty = the owner.
    principal: str = ""
    id: str
    context_id: str
    #: The Message as JSON, including the ids of task and context.
    message: str
    role: str
    at: datetime.datetime
    dialect: str
    #: The binding that received it; empty = none, an operator ran it again.
    binding: str = ""
    #: The beginning of its text, for lists (`title_of`, `protocol/titles.py`).
    opening: str = ""
    queue: str
    #: The key whose share of the slots its run takes from (`Caller.quota_key`).
    quota_key: str = ""
    #: The rest of the request as JSON, for the run.
    request: str = ""
    metadata: str = ""
    #: The request id of the client or the proxy, for the audit log.
    request_id: str = ""
    #: The detail of its entry in the audit log.
    detail: Mapping[str, Any] | None = None
    #: The sender in the audit log, if that is not the principal.
    sender: str = ""
    #: False if the agent may answer with a direct Message.
    is_task: bool = True
    #: True if its run waits for the earlier ones of its context.
    ordered: bool = False
    lease: PreclaimedLease | None = None
    #: If the task has ended and was created in a dialect whose tasks begin anew, a successor begins.
    reopens: bool = False
    #: The question that the message answers in place of the client; it answers no other one.
    answers: StoredQuestion | None = None
    #: The number of the event with the question that the client answers; 0 = whatever the task asks.
    question: int = 0
    #: Functions that write rows of other apps for the task, in the same transaction.
    companions: tuple[Companion, ...] = ()
    #: Its place in a conversation whose history the client keeps.
    place: ChatPlace | None = None
    #: The name of the row that its companions lock. A batch locks these in order, so that two batches do not deadlock.
    lock: str = ""

    @property
    def created_by(self) -> str:
        """The principal that creates the task, if it is not the owner; else empty."""
        return "" if self.principal == self.scope.owner else self.principal

    @property
    def actor(self) -> str:
        """The sender of the message, for the audit log."""
        return self.sender or self.principal or self.scope.owner

    def lock_above(self) -> None:
        """Let companions lock their rows before the task is locked: trees are locked from the root down."""
        for companion in self.companions:
            if lock := getattr(companion, "lock", None):
                lock()

    def accompany(self, task: int) -> None:
        """Write the companions' rows for the task with this primary key. Call it in the accepting transaction."""
        for write in self.companions:
            write(task)


@dataclass(frozen=True, slots=True)
class FoundChat:
    """A conversation whose history the client keeps, with its last task."""

    row: int
    digest: str
    task_id: str
    context_id: str
    state: TaskState
    #: The number of the event after which the answer to its last message begins.
    number: int
    #: True if its last message may be repeated.
    recent: bool


#: The id of a conversation's task, its digest, and the digest that it comes to.
ChatMove = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedRuns:
    """The conditions of a claim, and the worker that claims."""

    queues: Sequence[str]
    agents: Sequence[str]
    worker: str
    lease_seconds: float
    #: Number of runs that the worker holds already.
    runs_in_process: int = 0
    #: Quota keys whose runs are not claimed: they have all slots that they may have.
    full: Collection[str] = ()
    quarantine: Quarantine = Quarantine.NONE
    #: Further agents that this process knows. Their runs are not claimed, not even to be failed.
    known: Collection[str] = ()
    #: True if runs that no process hosts are claimed, to be failed.
    orphans: bool = True
    #: The beginning of their tokens, at most 8 characters.
    mark: str = ""
    #: Bytes of messages, requests and memory after which no more runs are claimed.
    most: int = CLAIM_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimedRun:
    """A run that this process has claimed, with all values needed to execute it, but large texts."""

    key: int
    token: str
    attempt: int
    task: int
    scope: OwnerScope
    task_id: str
    context_id: str
    state: TaskState
    is_task: bool
    last_event: int
    input_number: int
    input: str
    request: str
    memory: str
    #: Bytes of these three if they are large. Then they are empty, and the run reads them itself.
    unread: int = 0
    quota_key: str = ""
    #: The quarantine that follows from earlier deaths.
    quarantine: Quarantine = Quarantine.NONE
    #: Longest life of an attempt that died, in seconds.
    longest_life: float = 0.0
    #: True if an earlier attempt was begun. It does not count in `attempt` if its process handed it back, or parked it.
    begun_before: bool = False
    #: True if later runs of its context wait for it.
    ordered: bool = False
    #: The step in which it was parked last, and the number of values that its agent had yielded then.
    parked_in: str = ""
    said: int = 0
    #: Existing artifacts: (id, position, true if it is still growing).
    artifacts: tuple[tuple[str, int, bool], ...] = ()
    #: Time of the request for its lease, by this process's clock.
    requested_at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def size(self) -> int:
        """The bytes of its message, request and memory in this process. One emoji makes a text four times as large."""
        return sum(map(sys.getsizeof, (self.input, self.request, self.memory)), self.unread)


class InsertedTask(NamedTuple):
    """The keys of a new task and its run, and true if the run waits for an earlier one of its context."""

    task: int
    run: int
    behind: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """A message that was written to the log: its task, the task's value at that time, and the run that answers."""

    task: int
    number: int
    run: int
    view: Task
    #: False if the task is large: then the value has no history and no artifacts.
    is_whole: bool = True
    claimed_run: ClaimedRun | None = None


class StepResult(NamedTuple):
    """The result of a step to store: the run, the step's name, the result as JSON, and the seconds of its work."""

    run: ClaimedRun
    name: str
    result: str
    seconds: float | None = None


class Spender(NamedTuple):
    """The caller and the agent whose work is counted. The tenant is that of the credentials: one that a request names is no authority."""

    agent: str
    tenant: str
    #: The principal whose message the agent answers; None = it was erased with the task.
    caller: str | None
    #: The key of the task; None = the message has none yet.
    task: int | None = None
    #: The key of the run, and the token of its lease; 0 = the message has no run yet.
    run: int = 0
    token: str = ""

    def forget_caller(self) -> Spender:
        """Return the spender without the name of its caller."""
        return self._replace(caller=None)


class UsageEntry(NamedTuple):
    """A report of usage to store: the run that made it, and whose work it is."""

    run: ClaimedRun
    spender: Spender
    report: UsageReport


class StoredTask(NamedTuple):
    """The rows of a task, consistent at event `last_event`."""

    key: int
    public_id: str
    last_event: int
    context_id: str
    state: str
    status_at: datetime.datetime
    #: JSON, as are metadata and messages.
    status_message: str
    metadata: str
    messages: Sequence[str] | None
    #: (artifact id, number of its first event, JSON) of each; the JSON is empty while the artifact grows.
    artifacts: Sequence[tuple[str, int | str, str]] | None
    #: Bytes of its messages and artifacts, with its status and the pieces of growing ones; 0 = not counted.
    size: int


class StatusRow(NamedTuple):
    """The last status of a batch; the message is JSON, and the text is what lists show."""

    state: TaskState
    at: datetime.datetime
    message: str
    text: str = ""


class WantedEvents(enum.IntEnum):
    """The events of a page: all, changes of the status, or those that end the task or wait for the client."""

    ALL = 0
    STATES = 1
    ENDS = 2


class EventRow(NamedTuple):
    """The columns of an event, in the order of the statements that read them."""

    number: int
    kind: int
    state: str
    run: int | None
    body: str


class LogPosition(NamedTuple):
    """The place in the log of a task after which a page of events begins."""

    task: int
    number: int
    which: WantedEvents = WantedEvents.ALL


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be appended; see `protocol.lifecycle.LogEvent` for the fields."""

    kind: EventKind
    body: str
    state: TaskState | None = None


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """An artifact that begins in a batch (body empty), or is complete in it; `offset` counts the batch's events from 0."""

    position: int
    artifact_id: str
    offset: int
    body: str = ""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run: "ended" or "failed", with the traceback of a failure, and its exception in a line for lists."""

    status: Literal["ended", "failed"] = "ended"
    error: str = ""
    line: str = ""


@dataclass(kw_only=True, slots=True)
class Batch:
    """The events and rows that one run appends in one transaction."""

    task: int
    run: int
    token: str
    #: True if later runs of its context wait for it.
    ordered: bool = False
    events: list[NewEvent] = field(default_factory=list)
    #: The last status among the events.
    status: StatusRow | None = None
    artifacts: list[ArtifactRow] = field(default_factory=list)
    #: The number of batches written since the run was claimed; None = it is not counted.
    after: int | None = None
    #: True if it repeats a write whose outcome is unknown.
    again: bool = False
    #: Positions of artifacts that this batch completes, to be folded.
    closed: list[int] = field(default_factory=list)
    #: Positions of folded artifacts that grow again.
    reopened: list[int] = field(default_factory=list)
    #: True if the events make it visible as a task: a direct Message alone does not.
    reveal: bool = False
    memory: str | None = None
    end: RunEnd | None = None
    #: The changes of its conversation; only a batch that ends its run has some.
    conversation: ConversationChanges | None = None

    def come_again(self) -> None:
        """Mark the batch as a repetition."""
        self.again = True

    @property
    def size(self) -> int:
        """The approximate number of its bytes."""
        size = len(self.memory or "") + (len(self.status.message) if self.status else 0)
        for event in self.events:  # a message is written twice
            size += len(event.body) * (2 if event.kind is EventKind.MESSAGE else 1)
        for row in self.artifacts:
            size += len(row.body)
        return size + (self.conversation.size if self.conversation else 0)

    @property
    def ends_task(self) -> bool:
        """True if the last status is terminal."""
        return self.status is not None and self.status.state in TERMINAL

    def to_recorded(self, last: int) -> list[LogEvent]:
        """Return the events as the log stores them, the newest with number `last`."""
        first = last - len(self.events) + 1
        return [
            LogEvent(number=number, kind=e.kind, body=e.body, state=e.state, run=self.run)
            for number, e in enumerate(self.events, first)
        ]


def make_recorded(row: EventRow) -> LogEvent:
    """Return the event of a row."""
    return LogEvent(
        number=row.number,
        kind=EventKind(row.kind),
        state=TaskState(row.state) if row.state else None,
        run=row.run,
        body=row.body,
    )


def status_of(state: TaskState, at: datetime.datetime, message: str) -> TaskStatus:
    """Return the status value for the columns of a row."""
    stored = Raw(message.encode()) if message else None
    return TaskStatus(state=state, message=stored, timestamp=rfc3339(at))


def new_view(new: NewTask) -> Task:
    """Return the value of a new task after its first event."""
    return Task(
        id=new.id,
        context_id=new.context_id,
        status=status_of(TaskState.SUBMITTED, new.at, ""),
        history=[Raw(new.message.encode())],
        artifacts=UNSET,
        metadata=Raw(new.metadata.encode()) if new.metadata else None,
    )
