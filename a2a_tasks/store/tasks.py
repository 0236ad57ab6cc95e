"""Reading tasks as their owner sees them: one of them, and pages of them."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.core import signing
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber

from a2a_tasks.caller import Scope, Shelf
from a2a_tasks.models import Artifact, Event, Message, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.fields import parse_rfc3339
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import UNSET, Raw, TaskPage, TaskState, UnsetType
from a2a_tasks.store import tally
from a2a_tasks.store.folding import growing
from a2a_tasks.store.group import Group, needs_no_mark
from a2a_tasks.store.reach import on, reached
from a2a_tasks.store.records import status_of
from a2a_tasks.store.sql import Bytes, fetch

__all__ = [
    "PAGE_BYTES",
    "Found",
    "Standing",
    "brief",
    "find",
    "find_by_key",
    "finding",
    "key_of",
    "list_tasks",
    "open_artifacts",
    "origin",
    "references",
    "reveal",
    "standing",
    "view",
]

#: Bytes of the tasks on a page of a list. A task that has more is alone on its page.
PAGE_BYTES = 4 * 1024 * 1024
#: So far the tasks of a filter are counted; `totalSize` says this number where there are more.
MOST_COUNTED = 10_000

FIND = """
select i.n, t.id, t.last_event, c.public_id, t.state, t.status_at, t.status_message, t.metadata,
  (select array_agg(m.body order by m.number) from a2a_tasks_message m where m.task_id = t.id),
  (select array_agg(array[a.artifact_id, a.first_event::text, a.body] order by a.position)
   from a2a_tasks_artifact a where a.task_id = t.id)
from unnest(%(n)s::int[], %(id)s::text[], %(agent)s::text[], %(owner)s::text[], %(tenant)s::text[],
  %(maker)s::text[]) as i(n, id, agent, owner, tenant, maker)
join a2a_tasks_task t
  on t.public_id = i.id and t.agent = i.agent and t.owner = i.owner and t.tenant || '' = i.tenant and t.is_task
  and (i.maker = '' or t.maker = i.maker)
join a2a_tasks_context c on c.id = t.context_id
"""
# `tenant || ''` keeps the planner off the list indexes, which begin with the tenant: on a young table, without
# statistics, they look as good to it as the unique one, and it would read every task of the owner.


class Found:
    """A task read at once: its key, the number of its newest event, and the value."""

    __slots__ = ("last_event", "state", "task", "view")

    def __init__(self, task: int, last_event: int, view: values.Task) -> None:
        self.task, self.last_event, self.view = task, last_event, view
        self.state = view.status.state


def find_by_key(task: int) -> Found | None:
    """The task with this primary key, for those who follow it already; None if it is gone."""
    return _still(Task.objects.filter(pk=task).select_related("context"))


#: What a task is looked up by: its scope and its public id.
Key = tuple[Scope, str]


def find(scope: Scope, public_id: str) -> Found | None:
    """The task of that id in this scope, or None: missing and foreign are the same."""
    return _find_many([(scope, public_id)])[0]


def brief(scope: Scope, public_id: str) -> Found | None:
    """The same without history and artifacts, for a client that has them: it costs as little for a large task."""
    if "\x00" in public_id:
        return None
    task = (
        Task.objects.filter(reached(scope), public_id=public_id).select_related("context").first()
    )
    return None if task is None else Found(task.pk, task.last_event, view(task, whole=False))


def _find_many(keys: Sequence[Key]) -> list[Found | None]:
    reader = _find_postgres if connection.vendor == "postgresql" else _find_portable
    found = reader(
        [key for key in dict.fromkeys(keys) if "\x00" not in key[1]]
    )  # no text column holds NUL
    return [found.get(key) for key in keys]


def _finding(keys: list[Key]) -> list[Found | Exception | None]:
    return list(_find_many(keys))


#: `await finding((scope, id))`: find, together with whatever else is being looked up.
finding = Group(_finding, again=needs_no_mark)


def key_of(scope: Scope, public_id: str, *, lock: bool = False) -> int | None:
    """The primary key of a task this scope may see, for apps that keep something beside it.

    `lock`: nobody changes the task before the transaction ends; others may still point at it.
    """
    if "\x00" in public_id:
        return None
    tasks = Task.objects.filter(reached(scope), public_id=public_id)
    if lock:
        tasks = tasks.select_for_update(no_key=True)
    return tasks.values_list("pk", flat=True).first()


class Standing(NamedTuple):
    """Where a task stands, for apps that follow it."""

    public_id: str
    scope: Scope
    #: The principal that made it.
    maker: str
    last_event: int
    ended: bool


def standing(task: int) -> Standing:
    """Where the task with this primary key stands; the transaction holds it, or has made it."""
    columns = ("public_id", "maker", "tenant", "owner", "agent", "last_event", "state")
    public_id, maker, *scope, last, state = Task.objects.values_list(*columns).get(pk=task)
    drawer = Scope(*scope)
    return Standing(public_id, drawer, maker or drawer.owner, last, state in TERMINAL)


def origin(scope: Scope, public_id: str) -> str:
    """Code of the dialect a task was made in; empty if there is no such task in this scope."""
    if "\x00" in public_id:
        return ""
    found = Task.objects.filter(reached(scope), public_id=public_id)
    return found.values_list("origin_dialect", flat=True).first() or ""


def _find_postgres(keys: Sequence[Key]) -> dict[Key, Found]:
    asked = [(scope, public_id, shelf) for scope, public_id in keys for shelf in scope.shelves]
    columns = {
        "n": list(range(len(asked))),
        "id": [public_id for _, public_id, _ in asked],
        "agent": [scope.agent for scope, _, _ in asked],
        "owner": [shelf.owner for _, _, shelf in asked],
        "tenant": [scope.tenant for scope, _, _ in asked],
        "maker": [shelf.maker for _, _, shelf in asked],
    }
    newest_first = sorted(fetch(FIND, columns), key=lambda row: -row[1])
    rows = {asked[row[0]][:2]: row for row in newest_first}
    return {key: _found(key[1], row) for key, row in rows.items()}


def _found(public_id: str, row: tuple[Any, ...]) -> Found:
    _, key, last, context, state, at, message, metadata, history, artifacts = row
    view = values.Task(
        id=public_id,
        context_id=context,
        status=status_of(TaskState(state), at, message),
        history=_raws(history or ()),
        artifacts=_whole(key, last, artifacts or ()),
        metadata=Raw(metadata.encode()) if metadata else None,
    )
    return Found(key, last, view)


def _whole(task: int, last: int, rows: Sequence[tuple[str, str, str]]) -> list[Raw] | UnsetType:
    """Artifacts as they were at event `last`: (id, first event, body) each, the growing ones assembled."""
    open_ = {artifact_id: int(first) for artifact_id, first, body in rows if not body}
    texts = growing(task, open_, through=last) if open_ else {}
    return [Raw(texts.get(key) or body.encode()) for key, _, body in rows] or UNSET


def _raws(texts: Iterable[str]) -> list[Raw] | UnsetType:
    return [Raw(text.encode()) for text in texts] or UNSET


def _find_portable(keys: Sequence[Key]) -> dict[Key, Found]:
    found = {}
    for scope, public_id in keys:
        named = Task.objects.filter(reached(scope), public_id=public_id)
        task = _still(named.select_related("context"))
        if task is not None:
            found[scope, public_id] = task
    return found


def _still(which: QuerySet[Task]) -> Found | None:
    """A task read in several queries, as it was at one number: read again if it grew meanwhile."""
    while (task := which.first()) is not None:
        whole = view(task)
        if which.values_list("last_event", flat=True).first() == task.last_event:
            return Found(task.pk, task.last_event, whole)
    return None


class _Row(NamedTuple):
    """What of a task's row a client sees. Pages are read as these: a model instance costs ten times as much."""

    pk: int
    public_id: str
    context_id: str
    state: str
    status_at: datetime.datetime
    status_message: str
    metadata: str

    @classmethod
    def of(cls, tasks: QuerySet[Task]) -> list[_Row]:
        """The rows of a query."""
        columns = ("pk", "public_id", "context__public_id", *cls._fields[3:])
        return [cls(*row) for row in tasks.values_list(*columns)]


def view(task: Task, *, whole: bool = True) -> values.Task:
    """The value of a row whose context is loaded; if not `whole`, without history and artifacts."""
    said = (task.state, task.status_at, task.status_message, task.metadata)
    row = _Row(task.pk, task.public_id, task.context.public_id, *said)
    return _views([row], history=None if whole else 0, artifacts=whole)[0]


def _messages(tasks: Collection[int], newest: int | None) -> QuerySet[Message]:
    """The messages of these tasks in order: of each so many of the newest, or (None) all."""
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
    """The artifacts of each task in order; those still growing are assembled from their events."""
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
        found[task] |= growing(task, first_events)
    return {task: list(texts.values()) for task, texts in found.items()}


def _views(tasks: list[_Row], *, history: int | None, artifacts: bool) -> list[values.Task]:
    """The tasks with so many of their messages (None: all), and with artifacts or without."""
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


def open_artifacts(task: int) -> tuple[tuple[str, int, bool], ...]:
    """(id, position, still growing?) of a task's artifacts."""
    rows = Artifact.objects.filter(task_id=task).order_by("position")
    return tuple(
        (artifact_id, position, not body)
        for artifact_id, position, body in rows.values_list("artifact_id", "position", "body")
    )


def reveal(task: int) -> None:
    """Make a task of what might have been a direct Message: its agent took too long to say."""
    Task.objects.filter(pk=task).update(is_task=True)


def references(scope: Scope, public_ids: Collection[str]) -> list[values.Task]:
    """The tasks a message refers to, as far as they are this scope's; others are ignored (A2A 1.0 §3.4)."""
    wanted = [public_id for public_id in public_ids if "\x00" not in public_id]
    tasks = Task.objects.filter(reached(scope), public_id__in=wanted)
    return _views(_Row.of(tasks), history=None, artifacts=True)


def _matching(scope: Scope, shelf: Shelf, request: ListTasksRequest) -> QuerySet[Task]:
    """The tasks on a shelf that a list is about."""
    tasks = Task.objects.filter(on(scope, shelf))
    if request.context_id is not None:
        tasks = tasks.filter(context__public_id=request.context_id)
    if request.status is not None:
        tasks = tasks.filter(state=request.status)
    if request.status_timestamp_after is not None:
        tasks = tasks.filter(status_at__gte=parse_rfc3339(request.status_timestamp_after))
    return tasks


def list_tasks(scope: Scope, request: ListTasksRequest) -> TaskPage:
    """One page, latest status first (A2A 1.0 §3.1.4), of PAGE_BYTES at most. Raises InvalidParams for a token that is not ours."""
    if "\x00" in (request.context_id or ""):
        return TaskPage(tasks=[], next_page_token="", page_size=request.page_size, total_size=0)
    rows = _rows(scope, request)
    page = _fitting(rows[: request.page_size], request)
    return TaskPage(
        tasks=_listed(page, request),
        next_page_token=_token(scope, page[-1]) if len(rows) > len(page) else "",
        page_size=request.page_size,
        total_size=_total(scope, request),
    )


class _Place(NamedTuple):
    """A task in a list, and the bytes of what its row says."""

    status_at: datetime.datetime
    pk: int
    size: int


def _rows(scope: Scope, request: ListTasksRequest) -> list[_Place]:
    """The places of a page and the one after it. Each shelf is read along its index: together they would have none."""
    rows: list[_Place] = []
    size = Bytes("status_message") + Bytes("metadata")
    for shelf in scope.shelves:
        rest = _after(_matching(scope, shelf, request), scope, request.page_token)
        rest = rest.order_by("-status_at", "-id")[: request.page_size + 1]
        rows += [_Place(*row) for row in rest.values_list("status_at", "pk", size)]
    rows.sort(reverse=True)
    return rows[: request.page_size + 1]


def _fitting(rows: list[_Place], request: ListTasksRequest) -> list[_Place]:
    """The first of these, as many as fit into a page, and one at the least. Only sizes are read for it."""
    sizes, room = _sizes([row.pk for row in rows], request), PAGE_BYTES
    for count, row in enumerate(rows):
        room -= row.size + sizes[row.pk]
        if room < 0 and count:
            return rows[:count]
    return rows


def _sizes(tasks: list[int], request: ListTasksRequest) -> Counter[int]:
    """The bytes of the messages and artifacts of each task, as far as they are asked for."""
    sizes: Counter[int] = Counter()
    body = Bytes("body")
    if request.history_length:
        for task, size in _messages(tasks, request.history_length).values_list("task_id", body):
            sizes[task] += size
    if request.include_artifacts:
        artifacts = Artifact.objects.filter(task_id__in=tasks)
        open_ = artifacts.filter(
            body="", task_id=OuterRef("task_id"), first_event__lte=OuterRef("number")
        )
        pieces = Event.objects.filter(Exists(open_), task_id__in=tasks, kind=EventKind.ARTIFACT)
        for rows in (artifacts, pieces):
            sizes.update(dict(rows.order_by().values_list("task_id").annotate(n=Sum(body))))
    return sizes


def _total(scope: Scope, request: ListTasksRequest) -> int:
    """How many tasks the list has; of a filter, and of what others share, MOST_COUNTED at most."""
    asked = (request.context_id, request.status, request.status_timestamp_after)
    filtered, total = asked != (None, None, None), 0
    for shelf in scope.shelves:
        if filtered or shelf.maker:
            total += _matching(scope, shelf, request)[:MOST_COUNTED].count()
        else:
            total += tally.total(replace(scope, owner=shelf.owner))
    return min(total, MOST_COUNTED) if filtered else total


def _listed(page: list[_Place], request: ListTasksRequest) -> list[values.Task]:
    rows = {row.pk: row for row in _Row.of(Task.objects.filter(pk__in=[p.pk for p in page]))}
    views = _views(
        [rows[place.pk] for place in page if place.pk in rows],  # one may have been removed since
        history=request.history_length or 0,
        artifacts=request.include_artifacts,
    )
    if not request.include_artifacts:
        return views
    return [values.replace(v, artifacts=[]) if v.artifacts is UNSET else v for v in views]


def _signer(scope: Scope) -> signing.Signer:
    """Without the time of day: the same page has the same token."""
    return signing.Signer(salt=f"a2a.page/{scope.tenant}/{scope.owner}/{scope.agent}")


def _token(scope: Scope, last: _Place) -> str:
    return _signer(scope).sign_object([last.status_at.isoformat(), last.pk])


def _after(tasks: QuerySet[Task], scope: Scope, token: str) -> QuerySet[Task]:
    """The rows behind the token, by row value, so that the index is walked from there."""
    if not token:
        return tasks
    try:
        moment, key = _signer(scope).unsign_object(token)
        at = datetime.datetime.fromisoformat(moment)
    except (signing.BadSignature, ValueError, TypeError):
        raise InvalidParams.field("pageToken", "is not a token of this list") from None
    return tasks.filter(Q(status_at__lte=at) & (Q(status_at__lt=at) | Q(pk__lt=key)))
