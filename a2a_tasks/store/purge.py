"""Retention: ended tasks are removed in small transactions, oldest first (decision 13), except those on legal hold.

There are two steps, each with its own limit: removal of the *log* of an ended task, and removal of the ended task with
all its rows. Tasks are read in the order of their ids, which is the order of their beginnings. So the walk stops at the
first task that is too young to have ended before the limit, and needs no index.

The kinds of rows are removed in turn, one portion each. A task that cannot be removed does not stop the purge: it is
tried alone, then skipped until the next purge (decision 13).
"""

from __future__ import annotations

import datetime
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import CASCADE, Count, Exists, OuterRef, QuerySet, Subquery

from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import Artifact, Context, Event, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import (
    audit,
    budgets,
    cancel_notices,
    clock,
    files,
    handed_secrets,
    hooks,
    task_counter,
    workers,
)
from a2a_tasks.store.audit_past import purge_audit
from a2a_tasks.store.conversations import count_context_rows, sweep_lists
from a2a_tasks.store.folding import fold
from a2a_tasks.store.idempotency import forget_idempotency
from a2a_tasks.store.legal_holds import exclude_held, in_force
from a2a_tasks.store.retention import days_of_tenants
from a2a_tasks.store.run_lines import count_lines, cut_lines
from a2a_tasks.store.sql_files import read_sql
from a2a_tasks.store.usage import purge_usage

__all__ = ["RetentionLimits", "Removed", "purge", "remove_each", "survey"]

logger = logging.getLogger(__name__)
#: Number of tasks in one read of the walk.
SLICE = 1000
#: Minimum number of rows of a task: itself, message, event, run. It limits the number of tasks in a batch.
SMALLEST = 4
#: Returns those of these tasks that must not be removed yet.
Needed = Callable[[Collection[int]], set[int]]
#: Columns that are read before a task is removed.
COLUMNS = (
    "pk",
    "public_id",
    "tenant",
    "owner",
    "agent",
    "context_id",
    "is_task",
    "last_event",
    "status_at",
)

LOGGED = read_sql("find_logged_tasks")


class RetentionLimits(NamedTuple):
    """The times before which ended tasks and old rows are removed; None = no removal."""

    tasks: datetime.datetime | None = None
    events: datetime.datetime | None = None
    #: For idempotency keys.
    keys: datetime.datetime | None = None
    #: For entries of the audit log.
    audit: datetime.datetime | None = None
    #: For reports of usage.
    usage: datetime.datetime | None = None
    #: For the tasks of tenants that have days of their own.
    tenants: Mapping[str, datetime.datetime | None] = {}

    @classmethod
    def of(cls, days: float, event_days: float) -> RetentionLimits:
        """Return the limits for these numbers of days before now; 0 = no removal."""
        return cls(_before(days), _before(event_days))

    @classmethod
    def from_settings(
        cls, days: float | None = None, event_days: float | None = None
    ) -> RetentionLimits:
        """Return the limits of the settings, with these days in their place if given."""
        tasks = float(conf.RETENTION_DAYS) if days is None else days
        events = float(conf.EVENT_RETENTION_DAYS) if event_days is None else event_days
        return cls.of(tasks, events)._replace(
            keys=_before(float(conf.IDEMPOTENCY_HOURS) / 24),
            audit=_before(float(conf.AUDIT_RETENTION_DAYS)),
            usage=_before(float(conf.USAGE_RETENTION_DAYS)),
            tenants={tenant: _before(own) for tenant, own in days_of_tenants().items()},
        )

    def of_tasks(self) -> _Limit:
        """Return the limit of whole tasks."""
        return _Limit(self.tasks, self.tenants)

    def of_logs(self) -> _Limit:
        """Return the limit of logs, which is the same for all tenants."""
        return _Limit(self.events, {})


class _Limit(NamedTuple):
    """The time before which ended tasks are removed, for all tenants and for single ones."""

    default: datetime.datetime | None
    tenants: Mapping[str, datetime.datetime | None]

    def widest(self) -> datetime.datetime | None:
        """Return the latest of the times; None = no removal."""
        return max(filter(None, (self.default, *self.tenants.values())), default=None)

    def goes(self, tenant: str, ended: datetime.datetime) -> bool:
        """Return whether a task that ended at this time is removed."""
        limit = self.tenants.get(tenant, self.default)
        return limit is not None and ended < limit


def _before(days: float) -> datetime.datetime | None:
    if not days:
        return None
    try:
        return clock.now() - datetime.timedelta(days=days)
    except OverflowError:  # before the year 1
        return None


@dataclass(frozen=True, slots=True)
class Removed:
    """The counts of a batch: tasks removed, contexts left without any task, and rows of all kinds."""

    tasks: int = 0
    contexts: int = 0
    rows: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(
            self.tasks + other.tasks, self.contexts + other.contexts, self.rows + other.rows
        )


#: Takes tasks, the time before which they ended, and a maximum number of rows. Returns the counts, and the tasks that it
#: left for the next call.
_Remove = Callable[[list[int], datetime.datetime, int], tuple[Removed, list[int]]]


def purge(limits: RetentionLimits) -> Iterator[Removed]:
    """Remove rows beyond the limits; each step is one transaction of at most A2A_PURGE_BATCH rows.

    The caller may stop after any step. Rows that another purge has locked are skipped. A task's messages, artifacts and
    runs are removed together with it, so that a task with more of them than a batch is a batch of its own. A step that
    fails removes nothing. Exceptions are raised only if the database is away.
    """
    kinds = [
        *_sweep(limits, _remove_tasks, _remove_log),
        _portions(hooks.purge),
        _portions(lambda max_count: files.sweep(min(max_count, files.AT_ONCE))),
        _portions(handed_secrets.sweep),
        _portions(sweep_lists),
        _portions(budgets.forget_old),
        _portions(workers.forget_old),
        _portions(cancel_notices.forget_old),
    ]
    if (keys := limits.keys) is not None:
        kinds.append(_portions(lambda max_count: forget_idempotency(keys, max_count)))
    if (usage := limits.usage) is not None and not in_force().exists():
        kinds.append(_portions(lambda max_count: purge_usage(usage, max_count)))
    if limits.audit is not None and not in_force().exists():
        batch = max(1, int(conf.PURGE_BATCH))
        kinds.append(Removed(rows=gone) for gone in purge_audit(limits.audit, batch))
    contexts = 0
    for removed in _take_turns(kinds):
        contexts += removed.contexts
        yield removed
    if contexts:  # they may have left lists
        yield from _take_turns([_portions(sweep_lists)])


def _take_turns(kinds: list[Iterator[Removed]]) -> Iterator[Removed]:
    """Remove a portion of each kind in turn."""
    while kinds:
        kind = kinds.pop(0)
        try:
            removed = next(kind, None)
        except Exception as fault:  # noqa: BLE001 - the other kinds are removed after any failure
            _go_on_after(fault, "the rest of one kind of rows")
            continue
        if removed is not None:
            kinds.append(kind)
            yield removed


def _portions(remove: Callable[[int], int]) -> Iterator[Removed]:
    """Remove rows of one kind in portions; a portion that cannot be removed is tried again with half as many rows."""
    max_count = room = max(1, int(conf.PURGE_BATCH))
    while True:
        try:
            gone = remove(room)
        except Exception as fault:
            if room == 1:
                raise
            _go_on_after(fault, f"a portion of {room} rows")
            room //= 2
            yield Removed()
            continue
        if not gone:
            return
        room = min(max_count, 2 * room)
        yield Removed(rows=gone)


def _go_on_after(fault: Exception, what: str) -> None:
    """Log a failed removal. Raises the fault if the database is away."""
    if not connection.is_usable():
        raise fault
    logger.warning("%s could not be removed, the purge goes on: %r", what, fault)


def remove_each(keys: list[int]) -> Iterator[Removed]:
    """Remove these tasks, and do not wait for the rest of their webhooks' deliveries.

    Tasks that have not ended, or are held, stay.

    It waits for rows that other transactions have locked, for example while an artifact is folded.
    """
    now = clock.now() + datetime.timedelta(days=1)
    left = keys
    while left:
        batch = max(1, int(conf.PURGE_BATCH))
        removed, left = _remove_tasks(left, now, batch, lambda _: set(), skip=False)
        yield removed


def survey(limits: RetentionLimits) -> Removed:
    """Count the tasks with their rows, and the events of logs, that `purge` would remove now.

    Contexts and the other kinds of rows are not counted.
    """

    def log(keys: list[int], limit: datetime.datetime, _: int) -> tuple[Removed, list[int]]:
        going = _filter_purgeable(keys, limit)
        whole = limits.of_tasks()  # these tasks are removed as a whole, and were counted already
        left = [task for task in going if not whole.goes(task.tenant, task.status_at)]
        return Removed(rows=sum(map(_count_events, left))), []

    return sum(itertools.chain(*_sweep(limits, _count_tasks, log)), Removed())


def _sweep(limits: RetentionLimits, tasks: _Remove, log: _Remove) -> list[Iterator[Removed]]:
    walks = [_walk(_all, limits.of_tasks(), tasks)]
    sooner = limits.tasks is None or limits.events is None or limits.events > limits.tasks
    if sooner or limits.tenants:
        walks.append(_walk(_with_events, limits.of_logs(), log))
    return walks


# --- the walk -----------------------------------------------------------------------------------


def _walk(
    following: Callable[[int], list[int]], limits: _Limit, remove: _Remove
) -> Iterator[Removed]:
    limit = limits.widest()
    if limit is None:
        return
    cursor, young = 0, False
    max_count = room = max(1, int(conf.PURGE_BATCH))
    while not young and (keys := following(cursor)):
        cursor = keys[-1]
        left, young = _filter_ended(keys, limits, limit)
        while left:
            try:
                removed, left = remove(left, limit, room)
                room = min(max_count, 2 * room)
            except Exception as fault:  # noqa: BLE001 - the next tasks are removed after any failure
                if room == 1:
                    _go_on_after(fault, f"task {left[0]}")
                    left = left[1:]
                removed, room = Removed(), 1
            yield removed


def _all(after: int) -> list[int]:
    """Return the next tasks after a key."""
    keys = Task.objects.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)
    return list(keys[:SLICE])


def _with_events(after: int) -> list[int]:
    """Return the next tasks after a key that have events; any number of tasks without is skipped at once."""
    with connection.cursor() as cursor:
        cursor.execute(LOGGED, [after, SLICE])
        return [key for (key,) in cursor.fetchall()]


class _WalkedTask(NamedTuple):
    """The columns of a task that decide on its removal."""

    pk: int
    state: str
    status_at: datetime.datetime
    created_at: datetime.datetime
    tenant: str


def _filter_ended(
    keys: list[int], limits: _Limit, widest: datetime.datetime
) -> tuple[list[int], bool]:
    """Return those of these tasks that ended before their limits, and whether the last task began after all limits."""
    rows = Task.objects.filter(pk__in=keys).order_by("pk")
    columns = ("pk", "state", "status_at", "created_at", "tenant")
    found = [_WalkedTask(*row) for row in rows.values_list(*columns)]
    young = bool(found) and found[-1].created_at >= widest
    ended = [row for row in found if row.state in TERMINAL]
    return [row.pk for row in ended if limits.goes(row.tenant, row.status_at)], young


# --- one batch ----------------------------------------------------------------------------------


def _filter_purgeable(
    keys: list[int], limit: datetime.datetime, needed: Needed = hooks.find_needed
) -> QuerySet[Task]:
    """Return those of these tasks that may be removed, each with the number of its first event as `first`.

    An ended task never begins again and gets no further run, so that this result stays valid.
    """
    busy = Run.objects.filter(task=OuterRef("pk"), status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
    first = Event.objects.filter(task=OuterRef("pk")).order_by("number").values("number")[:1]
    ended = Task.objects.filter(pk__in=keys, state__in=sorted(TERMINAL), status_at__lt=limit)
    return (
        exclude_held(ended)
        .exclude(Exists(busy))
        .exclude(pk__in=needed(keys))
        .annotate(first=Subquery(first))
        .only(*COLUMNS)
        .order_by("pk")
    )


def _lock(
    keys: list[int],
    limit: datetime.datetime,
    needed: Needed = hooks.find_needed,
    *,
    skip: bool = True,
) -> list[Task]:
    """Return the tasks of `_filter_purgeable`, locked; with `skip` without those that another transaction has locked."""
    tasks = _filter_purgeable(keys, limit, needed)
    return list(tasks.select_for_update(of=("self",), skip_locked=skip))


def _count_events(task: Task) -> int:
    """Return the number of events in the log of a task that was read by `_filter_purgeable`."""
    first: int | None = task.first  # type: ignore[attr-defined]  # annotated
    return 0 if first is None else task.last_event - first + 1


def _cut(task: Task, max_count: int) -> int:
    """Remove the oldest events of a task, at most `max_count`: the rest of its log has no gap."""
    end = task.last_event - _count_events(task) + 1 + max_count
    return Event.objects.filter(task_id=task.pk, number__lt=end).delete()[0]


def _cut_all(task: Task, max_count: int) -> int:
    """Remove the log lines of the task's runs, then its events."""
    return cut_lines(task.pk, max_count) or (_count_events(task) and _cut(task, max_count))


def _remove_log(keys: list[int], limit: datetime.datetime, room: int) -> tuple[Removed, list[int]]:
    """Remove log lines and events of these tasks, after their growing artifacts were folded."""
    growing = Artifact.objects.filter(task=OuterRef("pk"), body="")
    for task in _filter_purgeable(keys[:room], limit).filter(Exists(growing)):
        for _ in fold(task.pk, task.last_event):
            pass
    return _cut_logs(keys, limit, room)


@transaction.atomic
def _cut_logs(keys: list[int], limit: datetime.datetime, room: int) -> tuple[Removed, list[int]]:
    """Remove log lines and events of these tasks, but no other rows."""
    lines = events = 0
    for task in _lock(keys[:room], limit):
        if Artifact.objects.filter(task=task, body="").exists():
            continue  # the artifact exists only in the log
        # Events are removed last, because the walk finds tasks by them.
        lines += cut_lines(task.pk, room - lines - events)
        events += _cut(task, room - lines - events)
        if lines + events >= room:
            return _make_removed(lines, events), [key for key in keys if key >= task.pk]
    return _make_removed(lines, events), keys[room:]


def _make_removed(lines: int, events: int) -> Removed:
    if events:
        audit.note(Action.LOG_PURGE, detail={"events": events})
    return Removed(rows=lines + events)


@transaction.atomic
def _remove_tasks(
    keys: list[int],
    limit: datetime.datetime,
    room: int,
    needed: Needed = hooks.find_needed,
    *,
    skip: bool = True,
) -> tuple[Removed, list[int]]:
    """Remove the first of these tasks, as many as fit; the log of a task that is too large is removed first, in pieces."""
    max_count = max(1, room // SMALLEST)
    tasks = _lock(keys[:max_count], limit, needed, skip=skip)
    sizes = _sizes([task.pk for task in tasks])
    kept = count_context_rows({task.context_id for task in tasks})  # they go with its last task
    whole: list[Task] = []
    rows = 0
    for task in tasks:
        left = [key for key in keys if key >= task.pk]
        size = 1 + _count_events(task) + sizes.get(task.pk, 0) + kept[task.context_id]
        if size > room and not whole and (gone := _cut_all(task, room)):
            return Removed(rows=gone), left
        if whole and rows + size > room:
            return _delete(whole, limit), left
        whole.append(task)
        rows += size
    return _delete(whole, limit), keys[max_count:]


def _sizes(keys: list[int]) -> Counter[int]:
    """Return the number of rows of each task in all apps, without the task itself and its events."""
    sizes: Counter[int] = Counter(count_lines(keys))
    for relation in Task._meta.related_objects:  # noqa: SLF001 - Django's documented interface
        if relation.on_delete is CASCADE and relation.related_model is not Event:
            name = relation.field.attname
            rows = relation.related_model._default_manager.filter(**{f"{name}__in": keys})  # noqa: SLF001
            sizes.update(dict(rows.order_by().values_list(name).annotate(n=Count("*"))))
    return sizes


def _delete(tasks: list[Task], limit: datetime.datetime) -> Removed:
    """Delete locked tasks with all their rows, and contexts without any other task."""
    if not tasks:
        return Removed()
    keys = [task.pk for task in tasks]
    contexts = _lock_contexts({task.context_id for task in tasks})
    task_counter.forget(tasks)
    scoped = [(OwnerScope(task.tenant, task.owner, task.agent), task.public_id) for task in tasks]
    audit.note_each(Action.TASK_PURGE, scoped)
    rows, _ = Task.objects.filter(pk__in=keys).only("pk").delete()
    used = Task.objects.filter(context=OuterRef("pk"))
    empty = Context.objects.filter(pk__in=contexts, updated_at__lt=limit).exclude(Exists(used))
    gone, kinds = empty.delete()
    return Removed(len(tasks), contexts=kinds.get(Context._meta.label, 0), rows=rows + gone)  # noqa: SLF001 - as above


def _lock_contexts(keys: set[int]) -> list[int]:
    """Lock contexts, in the order of an accepting transaction: two orders would be a deadlock.

    They are locked before a task is deleted, because an accepting transaction holds contexts while it waits for deleted
    rows. Locked ones are waited for, not skipped: if two purges together empty a context, the second has to see it.
    """
    contexts = Context.objects.filter(pk__in=keys)
    contexts = contexts.order_by("public_id", "agent", "owner", "tenant").select_for_update()
    return list(contexts.values_list("pk", flat=True))


# --- counting -----------------------------------------------------------------------------------


def _count_tasks(keys: list[int], limit: datetime.datetime, _: int) -> tuple[Removed, list[int]]:
    tasks = _filter_purgeable(keys, limit)
    rows = sum(1 + _count_events(task) for task in tasks) + _sizes([t.pk for t in tasks]).total()
    return Removed(tasks=len(tasks), rows=rows), []
