"""Reads of tasks as clients see them: single tasks, and pages of lists."""

from __future__ import annotations

import datetime
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.core import signing
from django.db.models import Exists, Min, OuterRef, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber

from a2a_tasks.caller import OwnerScope, ScopePart
from a2a_tasks.models import Artifact, Event, Message, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.fields import parse_rfc3339
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, read_status_body
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import UNSET, Raw, TaskPage, TaskState
from a2a_tasks.store import task_counter
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.backend.statements import LARGE_READ, Bytes, allow_rows
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.db import run_large_read, run_list_query
from a2a_tasks.store.folding import assemble_growing
from a2a_tasks.store.records import ClaimedRun, StoredTask, status_of
from a2a_tasks.store.scoping import on, visible_to

__all__ = [
    "PAGE_BYTES",
    "FoundTask",
    "ReferencesTooLarge",
    "TaskStatusRow",
    "brief",
    "find",
    "find_before",
    "find_by_key",
    "find_batched",
    "find_state",
    "key_of",
    "list_in_turn",
    "list_tasks",
    "origin",
    "references",
    "reveal",
    "read_positions",
    "read_states",
    "read_status",
    "view",
    "view_small",
]

#: Maximum bytes of the tasks on a page of a list. A larger task is alone on its page.
PAGE_BYTES = 4 * 1024 * 1024
#: Maximum number of tasks that are counted for a filter; `totalSize` is this number if there are more.
MAX_COUNTED = 10_000


class ReferencesTooLarge(Exception):
    """The tasks that a message refers to are too large to be read at once."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the tasks have {size} bytes")
        self.size = size


class _LargePage(Exception):
    """A page of a list is to be read in the caller's turn."""


class FoundTask:
    """A task that was read consistently: its key, the number of its newest event, and its value."""

    __slots__ = ("last_event", "state", "task", "view")

    def __init__(self, task: int, last_event: int, view: values.Task) -> None:
        self.task, self.last_event, self.view = task, last_event, view
        self.state = view.status.state


def find_by_key(task: int) -> FoundTask | None:
    """Return the task with this primary key, without a check of access; None if it is gone."""
    row = backend().find_task(task)
    return None if row is None else _make_found(row)


#: The scope and the public id of a task.
Key = tuple[OwnerScope, str]


def find(scope: OwnerScope, public_id: str) -> FoundTask | None:
    """Return the task with this id in the scope; None for missing and for other callers' tasks."""
    (found,) = _find_many([(scope, public_id)])
    return find_by_key(found) if isinstance(found, int) else found


def find_before(run: ClaimedRun) -> values.Task | None:
    """Return the task as it stood before the message of a run; None for the first message.

    A question of the agent is in its status, not yet in its history. Artifacts of earlier attempts are left out.
    """
    found = find(run.scope, run.task_id) if run.input_number > 1 else None
    if found is None:
        return None
    resumed = Q(number=run.input_number + 1, run=None)  # by the message
    before = Event.objects.filter(~resumed, ~Q(run=run.key), task=run.task, kind=EventKind.STATUS)
    status = before.order_by("-number").values_list("number", "body").first()
    if status is None:  # retention has removed it
        number, standing = 0, found.view.status
    else:
        number, standing = status[0], read_status_body(status[1])
    messages = Message.objects.filter(~Q(number=number), task=run.task, number__lt=run.input_number)
    rows = messages.order_by("number").values_list("body", flat=True)
    with allow_rows(sum(map(len, found.view.history or ()))):
        history = [Raw(text.encode()) for text in rows]
    event = Event.objects.filter(task=run.task, run=run.key, number=OuterRef("first_event"))
    own = Artifact.objects.filter(task=run.task).order_by("position").values_list(Exists(event))
    artifacts = zip(found.view.artifacts or (), own, strict=False)
    return values.replace(
        found.view,
        status=standing,
        history=history,
        artifacts=[artifact for artifact, (is_own,) in artifacts if not is_own] or UNSET,
    )


def brief(scope: OwnerScope, public_id: str) -> FoundTask | None:
    """Find a task like `find`, but without history and artifacts: cheap for a large task, too."""
    if "\x00" in public_id:
        return None
    task = (
        Task.objects.filter(visible_to(scope), public_id=public_id)
        .select_related("context")
        .first()
    )
    return None if task is None else FoundTask(task.pk, task.last_event, view(task))


def find_state(scope: OwnerScope, public_id: str) -> tuple[int, str] | None:
    """Return the key and the state of a task in this scope."""
    if "\x00" in public_id:
        return None
    found = Task.objects.filter(visible_to(scope), public_id=public_id)
    return found.order_by("pk").values_list("pk", "state").first()


def read_states(keys: Collection[int]) -> dict[int, str]:
    """Return the states of tasks by their primary keys; those that are gone count as failed."""
    gone = dict.fromkeys(keys, TaskState.FAILED.value)
    return gone | dict(Task.objects.filter(pk__in=keys).values_list("pk", "state"))


def read_positions(keys: Collection[int]) -> dict[int, tuple[TaskState, int]]:
    """Return the states of tasks, and the numbers of their last events, by their primary keys; without those that are gone."""
    rows = Task.objects.filter(pk__in=keys).values_list("pk", "state", "last_event")
    return {key: (TaskState(state), last) for key, state, last in rows}


def _find_many(keys: Sequence[Key]) -> list[FoundTask | int | None]:
    """Find tasks; of a large one only its primary key."""
    valid = [key for key in dict.fromkeys(keys) if "\x00" not in key[1]]  # no text column holds NUL
    found = {
        key: row.key if row.size > LARGE_READ else _make_found(row)
        for key, row in backend().find_tasks(valid).items()
    }
    return [found.get(key) for key in keys]


_find_together: BatchedCall[Key, FoundTask | int | None] = BatchedCall(
    lambda keys: list(_find_many(keys)), again=needs_no_mark
)


async def find_batched(key: Key) -> FoundTask | None:
    """Find `(scope, id)` in one query with other look-ups. A large task is read alone, so that the others do not wait for it."""
    found = await _find_together(key)
    if isinstance(found, int):
        return await run_large_read(key[0].quota_key, find_by_key, found)
    return found


def key_of(scope: OwnerScope, public_id: str, *, lock: bool = False) -> int | None:
    """Return the primary key of a task in this scope, for apps that keep rows for it; None if there is none.

    `lock`: lock the task's row until the transaction ends; other rows may still refer to it.
    """
    if "\x00" in public_id:
        return None
    tasks = Task.objects.filter(visible_to(scope), public_id=public_id)
    if lock:
        tasks = tasks.select_for_update(no_key=True)
    return tasks.values_list("pk", flat=True).first()


class TaskStatusRow(NamedTuple):
    """The status of a task, for apps that follow it."""

    public_id: str
    scope: OwnerScope
    #: The principal that created it.
    created_by: str
    last_event: int
    ended: bool


def read_status(task: int) -> TaskStatusRow:
    """Return the status of the task with this primary key, which the transaction has locked or created."""
    columns = ("public_id", "created_by", "tenant", "owner", "agent", "last_event", "state")
    public_id, created_by, *scope, last, state = Task.objects.values_list(*columns).get(pk=task)
    owner_scope = OwnerScope(*scope)
    return TaskStatusRow(
        public_id, owner_scope, created_by or owner_scope.owner, last, state in TERMINAL
    )


def origin(scope: OwnerScope, public_id: str) -> str:
    """Return the code of the dialect in which a task was created; empty if it is not in this scope."""
    if "\x00" in public_id:
        return ""
    found = Task.objects.filter(visible_to(scope), public_id=public_id)
    return found.values_list("origin_dialect", flat=True).first() or ""


def _make_found(row: StoredTask) -> FoundTask:
    artifacts = row.artifacts or ()
    growing = {artifact_id: int(first) for artifact_id, first, body in artifacts if not body}
    texts = {}
    if growing:
        with allow_rows(row.size):
            texts = assemble_growing(row.key, growing, through=row.last_event)
    whole = values.Task(
        id=row.public_id,
        context_id=row.context_id,
        status=status_of(TaskState(row.state), row.status_at, row.status_message),
        history=[Raw(text.encode()) for text in row.messages or ()] or UNSET,
        artifacts=[Raw(texts.get(key) or body.encode()) for key, _, body in artifacts] or UNSET,
        metadata=Raw(row.metadata.encode()) if row.metadata else None,
    )
    return FoundTask(row.key, row.last_event, whole)


class _Row(NamedTuple):
    """The columns of a task that a client sees. Pages read these: a model instance costs ten times as much."""

    pk: int
    public_id: str
    context_id: str
    state: str
    status_at: datetime.datetime
    status_message: str
    metadata: str

    @classmethod
    def of(cls, tasks: QuerySet[Task]) -> list[_Row]:
        """Return the rows of a query."""
        columns = ("pk", "public_id", "context__public_id", *cls._fields[3:])
        return [cls(*row) for row in tasks.values_list(*columns)]


def view(task: Task) -> values.Task:
    """Return the value of a row whose context is loaded, without history and artifacts."""
    status = (task.state, task.status_at, task.status_message, task.metadata)
    row = _Row(task.pk, task.public_id, task.context.public_id, *status)
    return _views([row], history=0, artifacts=False)[0]


def view_small(task: Task) -> values.Task | None:
    """Return the whole value of a row that clients see; None if it is large, and not to be read in a transaction."""
    (found,) = _find_many([(OwnerScope(task.tenant, task.owner, task.agent), task.public_id)])
    return found.view if isinstance(found, FoundTask) else None


def _messages(tasks: Collection[int], newest: int | None) -> QuerySet[Message]:
    """Return the messages of these tasks in order: the `newest` ones of each, or (None) all."""
    rows = Message.objects.filter(task_id__in=tasks)
    if newest is not None:
        rank = Window(RowNumber(), partition_by="task_id", order_by="-number")
        rows = rows.annotate(rank=rank).filter(rank__lte=newest)
    return rows.order_by("task_id", "number")


def _histories(tasks: Collection[int], newest: int | None) -> dict[int, list[Raw]]:
    found: dict[int, list[Raw]] = defaultdict(list)
    for task, body in _messages(tasks, newest).values_list("task_id", "body"):
        found[task].append(Raw(body.encode()))
    return found


def _artifacts(tasks: Collection[int]) -> dict[int, list[bytes]]:
    """Return the artifacts of each task in order; growing ones are assembled from their events."""
    rows = Artifact.objects.filter(task_id__in=tasks).order_by("task_id", "position")
    found: dict[int, dict[str, bytes]] = defaultdict(dict)
    open_: dict[int, dict[str, int]] = defaultdict(dict)
    for task, artifact_id, first, body in rows.values_list(
        "task_id", "artifact_id", "first_event", "body"
    ):
        found[task][artifact_id] = body.encode()
        if not body:
            open_[task][artifact_id] = first
    for task, first_events in open_.items():
        found[task] |= assemble_growing(task, first_events)
    return {task: list(texts.values()) for task, texts in found.items()}


def _views(tasks: list[_Row], *, history: int | None, artifacts: bool) -> list[values.Task]:
    """Return the values of tasks with their newest `history` messages (None: all), with or without artifacts."""
    keys = [task.pk for task in tasks]
    histories = {} if history == 0 else _histories(keys, history)
    results = _artifacts(keys) if artifacts else {}
    return [
        values.Task(
            id=task.public_id,
            context_id=task.context_id,
            status=status_of(TaskState(task.state), task.status_at, task.status_message),
            history=histories.get(task.pk) or UNSET,
            artifacts=[Raw(text) for text in results.get(task.pk, ())] or UNSET,
            metadata=Raw(task.metadata.encode()) if task.metadata else None,
        )
        for task in tasks
    ]


def reveal(task: int) -> None:
    """Make the answer a task instead of a direct Message, because the agent took too long."""
    Task.objects.filter(pk=task).update(is_task=True)


def references(
    scope: OwnerScope, public_ids: Collection[str], max_bytes: int = 0
) -> list[values.Task]:
    """Return those of the tasks a message refers to that are in this scope; others are ignored (A2A 1.0 §3.4).

    Raises ReferencesTooLarge if their messages and artifacts have more than `max_bytes` (0 = any size).
    """
    wanted = [public_id for public_id in public_ids if "\x00" not in public_id]
    tasks = Task.objects.filter(visible_to(scope), public_id__in=wanted)
    size = _sizes(list(tasks.values_list("pk", flat=True)), None, artifacts=True).total()
    if max_bytes and size > max_bytes:
        raise ReferencesTooLarge(size)
    with allow_rows(size):
        return _views(_Row.of(tasks), history=None, artifacts=True)


def _filter_tasks(scope: OwnerScope, part: ScopePart, request: ListTasksRequest) -> QuerySet[Task]:
    """Return the tasks of one part of the scope that match a list request."""
    tasks = Task.objects.filter(on(scope, part))
    if request.context_id is not None:
        tasks = tasks.filter(context__public_id=request.context_id)
    if request.status is not None:
        tasks = tasks.filter(state=request.status)
    if request.status_timestamp_after is not None:
        tasks = tasks.filter(status_at__gte=parse_rfc3339(request.status_timestamp_after))
    return tasks


async def list_in_turn(scope: OwnerScope, request: ListTasksRequest) -> TaskPage:
    """Return a page like `list_tasks`. A large one waits for the caller's other large reads, so that lists do not."""
    try:
        return await run_list_query(list_tasks, scope, request, LARGE_READ)
    except _LargePage:
        return await run_large_read(scope.quota_key, list_tasks, scope, request)


def list_tasks(
    scope: OwnerScope, request: ListTasksRequest, max_bytes: int = sys.maxsize
) -> TaskPage:
    """Return one page, latest status first (A2A 1.0 §3.1.4), of at most PAGE_BYTES. Raises InvalidParams for a foreign token.

    Raises _LargePage if it has more than `max_bytes`.
    """
    if "\x00" in (request.context_id or ""):
        return TaskPage(tasks=[], next_page_token="", page_size=request.page_size, total_size=0)
    rows = _rows(scope, request)
    page = _take_fitting(rows[: request.page_size], request)
    if sum(place.size for place in page) > max_bytes:
        raise _LargePage
    return TaskPage(
        tasks=_read_page(page, request),
        next_page_token=_token(scope, page[-1]) if len(rows) > len(page) else "",
        page_size=request.page_size,
        total_size=_total(scope, request),
    )


class _ListPosition(NamedTuple):
    """The position of a task in a list, and the bytes of its row, then of all that the page shows of it."""

    status_at: datetime.datetime
    pk: int
    size: int


def _rows(scope: OwnerScope, request: ListTasksRequest) -> list[_ListPosition]:
    """Return the places of a page and the one after it. Each part has a query of its own, which can use the index."""
    rows: list[_ListPosition] = []
    size = Bytes("status_message") + Bytes("metadata")
    for part in scope.parts:
        rest = _after(_filter_tasks(scope, part, request), scope, request.page_token)
        rest = rest.order_by("-status_at", "-id")[: request.page_size + 1]
        rows += [_ListPosition(*row) for row in rest.values_list("status_at", "pk", size)]
    rows.sort(reverse=True)
    return rows[: request.page_size + 1]


def _take_fitting(rows: list[_ListPosition], request: ListTasksRequest) -> list[_ListPosition]:
    """Return the first rows that fit into a page, at least one. It reads only sizes."""
    pks, history, room = [row.pk for row in rows], request.history_length, PAGE_BYTES
    sizes = _sizes(pks, history, artifacts=request.include_artifacts)
    rows = [row._replace(size=row.size + sizes[row.pk]) for row in rows]
    for count, row in enumerate(rows):
        room -= row.size
        if room < 0 and count:
            return rows[:count]
    return rows


def _sizes(tasks: list[int], history: int | None, *, artifacts: bool) -> Counter[int]:
    """Return the bytes of each task's newest messages (`history`, None = all), and of its artifacts if asked for."""
    sizes: Counter[int] = Counter()
    body = Bytes("body")
    if history != 0:
        for task, size in _messages(tasks, history).values_list("task_id", body):
            sizes[task] += size
    if artifacts:
        whole = Artifact.objects.filter(task_id__in=tasks)
        # Looked up once: beside each event, SQLite would read the bodies of all artifacts again.
        unfinished = whole.filter(body="").order_by().values("task_id")
        begins = dict(unfinished.annotate(first=Min("first_event")).values_list("task_id", "first"))
        since = [Q(task_id=task, number__gte=first) for task, first in begins.items()]
        pieces = Event.objects.filter(
            reduce(or_, since, Q(task_id__in=())), kind=EventKind.ARTIFACT
        )
        for rows in (whole, pieces):
            sizes.update(dict(rows.order_by().values_list("task_id").annotate(n=Sum(body))))
    return sizes


def _total(scope: OwnerScope, request: ListTasksRequest) -> int:
    """Count the tasks of the list: with a filter, or among tasks that other owners share, only up to MAX_COUNTED."""
    filters = (request.context_id, request.status, request.status_timestamp_after)
    filtered, total = filters != (None, None, None), 0
    for part in scope.parts:
        if filtered or part.created_by:
            total += _filter_tasks(scope, part, request)[:MAX_COUNTED].count()
        else:
            total += task_counter.total(replace(scope, owner=part.owner))
    return min(total, MAX_COUNTED) if filtered else total


def _read_page(page: list[_ListPosition], request: ListTasksRequest) -> list[values.Task]:
    with allow_rows(sum(place.size for place in page)):
        rows = {row.pk: row for row in _Row.of(Task.objects.filter(pk__in=[p.pk for p in page]))}
        views = _views(
            [rows[place.pk] for place in page if place.pk in rows],  # one may be removed by now
            history=request.history_length or 0,
            artifacts=request.include_artifacts,
        )
    if not request.include_artifacts:
        return views
    return [values.replace(v, artifacts=[]) if v.artifacts is UNSET else v for v in views]


def _signer(scope: OwnerScope) -> signing.Signer:
    """Return a signer of page tokens, which has no timestamp, so that a page always has the same token."""
    return signing.Signer(salt=f"a2a.page/{scope.tenant}/{scope.owner}/{scope.agent}")


def _token(scope: OwnerScope, last: _ListPosition) -> str:
    return _signer(scope).sign_object([last.status_at.isoformat(), last.pk])


def _after(tasks: QuerySet[Task], scope: OwnerScope, token: str) -> QuerySet[Task]:
    """Return the rows after the token, by a comparison of row values that the index supports."""
    if not token:
        return tasks
    try:
        moment, key = _signer(scope).unsign_object(token)
        at = datetime.datetime.fromisoformat(moment)
    except (signing.BadSignature, ValueError, TypeError):
        raise InvalidParams.field("pageToken", "is not a token of this list") from None
    return tasks.filter(Q(status_at__lte=at) & (Q(status_at__lt=at) | Q(pk__lt=key)))
