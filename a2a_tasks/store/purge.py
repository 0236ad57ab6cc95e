"""Retention: what ended long ago goes, in small transactions, the oldest first (decision 13), but for what is held.

Two steps, each with its own limit: the *log* of an ended task, and the ended task with everything that is its own. Tasks
are walked in the order of their ids, which is that in which they began, so that the walk stops at the first one too
young to have ended before the limit: no index is needed for it.

The kinds of what goes have turns, a portion each. What cannot be removed stops nothing: it is tried alone, then skipped
until the next purge (decision 13).
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
from django.utils import timezone

from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import Artifact, Context, Event, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import audit, files, handed_secrets, hooks, task_counter
from a2a_tasks.store.audit_past import purge_audit
from a2a_tasks.store.conversations import count_context_rows, sweep_lists
from a2a_tasks.store.folding import fold
from a2a_tasks.store.idempotency import forget_idempotency
from a2a_tasks.store.legal_holds import in_force, unheld
from a2a_tasks.store.retention import days_of_tenants
from a2a_tasks.store.run_lines import count_lines, cut_lines

__all__ = ["RetentionLimits", "Removed", "purge", "remove_each", "survey"]

logger = logging.getLogger(__name__)
#: Tasks looked at in one read of the walk.
SLICE = 1000
#: Rows a task has at the least: itself, message, event, run. So many tasks fit into a batch at most.
SMALLEST = 4
#: Those of these tasks that must not go yet.
Needed = Callable[[Collection[int]], set[int]]
#: Columns that are read of a task to be removed.
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

# The tasks that have events, in order, by one step into the primary key each.
LOGGED = """
with recursive logged(task_id) as (
  select min(task_id) from a2a_tasks_event where task_id > %s
  union all
  select (select min(e.task_id) from a2a_tasks_event e where e.task_id > logged.task_id)
  from logged where task_id is not null
)
select task_id from logged where task_id is not null limit %s
"""


class RetentionLimits(NamedTuple):
    """The moments before which ended tasks and old rows are removed; None = nothing is."""

    tasks: datetime.datetime | None = None
    events: datetime.datetime | None = None
    #: Idempotency keys that came before it.
    keys: datetime.datetime | None = None
    #: Entries of the audit log that were written before it.
    audit: datetime.datetime | None = None
    #: Moments of tenants that have days of their own.
    tenants: Mapping[str, datetime.datetime | None] = {}

    @classmethod
    def of(cls, days: float, event_days: float) -> RetentionLimits:
        """So many days before now; 0 = never."""
        return cls(_before(days), _before(event_days))

    @classmethod
    def from_settings(
        cls, days: float | None = None, event_days: float | None = None
    ) -> RetentionLimits:
        """Those of the settings, but for the days given."""
        tasks = float(conf.RETENTION_DAYS) if days is None else days
        events = float(conf.EVENT_RETENTION_DAYS) if event_days is None else event_days
        return cls.of(tasks, events)._replace(
            keys=_before(float(conf.IDEMPOTENCY_HOURS) / 24),
            audit=_before(float(conf.AUDIT_RETENTION_DAYS)),
            tenants={tenant: _before(own) for tenant, own in days_of_tenants().items()},
        )

    def of_tasks(self) -> _Limit:
        """Of whole tasks."""
        return _Limit(self.tasks, self.tenants)

    def of_logs(self) -> _Limit:
        """Of logs: where tasks go sooner, none."""
        return _Limit(self.events, {})


class _Limit(NamedTuple):
    """The moment before which ended tasks are removed, for all tenants and for single ones."""

    default: datetime.datetime | None
    tenants: Mapping[str, datetime.datetime | None]

    def widest(self) -> datetime.datetime | None:
        """The latest of the moments; None = nothing goes."""
        return max(filter(None, (self.default, *self.tenants.values())), default=None)

    def goes(self, tenant: str, ended: datetime.datetime) -> bool:
        """Does a task go that ended then?"""
        limit = self.tenants.get(tenant, self.default)
        return limit is not None and ended < limit


def _before(days: float) -> datetime.datetime | None:
    if not days:
        return None
    try:
        return timezone.now() - datetime.timedelta(days=days)
    except OverflowError:  # longer than there have been days
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


#: Takes tasks that ended before the moment, at most so many rows of them, and says which it left for the next call.
_Remove = Callable[[list[int], datetime.datetime, int], tuple[Removed, list[int]]]


def purge(limits: RetentionLimits) -> Iterator[Removed]:
    """Remove what is beyond the limits: one transaction of at most A2A_PURGE_BATCH rows a step.

    Stop iterating at any time. What another purge holds at that moment is left to it. A task's messages, artifacts and
    runs go together with it, so one that has more of them than a batch holds is a batch of its own. Nothing is removed
    by a step that failed. Raises what a step raises only if the database is away.
    """
    kinds = [
        *_sweep(limits, _remove_tasks, _remove_log),
        _portions(hooks.purge),
        _portions(lambda max_count: files.sweep(min(max_count, files.AT_ONCE))),
        _portions(handed_secrets.sweep),
        _portions(sweep_lists),
    ]
    if (keys := limits.keys) is not None:
        kinds.append(_portions(lambda max_count: forget_idempotency(keys, max_count)))
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
        except Exception as fault:  # noqa: BLE001 - whatever it is, the other kinds go on
            _go_on_after(fault, "what is left of a kind")
            continue
        if removed is not None:
            kinds.append(kind)
            yield removed


def _portions(remove: Callable[[int], int]) -> Iterator[Removed]:
    """Removed in portions of so many rows at most; one that cannot be removed is tried again with half as many."""
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
    """Tell the log of what could not be removed. Raises the fault if it is the database that is away."""
    if not connection.is_usable():
        raise fault
    logger.warning("%s could not be removed, the purge goes on: %r", what, fault)


def remove_each(keys: list[int]) -> Iterator[Removed]:
    """Remove these tasks, whose webhooks nobody is told of any more; those that have not ended, or are held, stay.

    What another transaction holds at that moment is waited for: an artifact may be folded just now, say.
    """
    now = timezone.now() + datetime.timedelta(days=1)
    left = keys
    while left:
        removed, left = _remove_tasks(left, now, max(1, int(conf.PURGE_BATCH)), _nobody, skip=False)
        yield removed


def _nobody(_: Collection[int]) -> set[int]:
    return set()


def survey(limits: RetentionLimits) -> Removed:
    """Count what `purge` would remove now, but for contexts."""

    def log(keys: list[int], limit: datetime.datetime, _: int) -> tuple[Removed, list[int]]:
        going = _filter_purgeable(keys, limit)
        whole = limits.of_tasks()  # those go as a whole, and were counted so
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
            except Exception as fault:  # noqa: BLE001 - whatever it is, what is behind it goes
                if room == 1:
                    _go_on_after(fault, f"task {left[0]}")
                    left = left[1:]
                removed, room = Removed(), 1
            yield removed


def _all(after: int) -> list[int]:
    """The tasks that began next."""
    keys = Task.objects.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)
    return list(keys[:SLICE])


def _with_events(after: int) -> list[int]:
    """As `_all`, skipping tasks whose log is gone, however many they are."""
    with connection.cursor() as cursor:
        cursor.execute(LOGGED, [after, SLICE])
        return [key for (key,) in cursor.fetchall()]


def _filter_ended(
    keys: list[int], limits: _Limit, widest: datetime.datetime
) -> tuple[list[int], bool]:
    """Those of these tasks that ended before their limits, and whether the last one began after all of them."""
    rows = Task.objects.filter(pk__in=keys).order_by("pk")
    found = list(rows.values_list("pk", "state", "status_at", "created_at", "tenant"))
    young = bool(found) and found[-1][3] >= widest
    going = [
        key for key, state, at, _, tenant in found if state in TERMINAL and limits.goes(tenant, at)
    ]
    return going, young


# --- one batch ----------------------------------------------------------------------------------


def _filter_purgeable(
    keys: list[int], limit: datetime.datetime, needed: Needed = hooks.find_needed
) -> QuerySet[Task]:
    """Those of these tasks that may go, each with the number its log begins with as `first`.

    An ended task never begins again and gets no further run, so what is found here stays so.
    """
    busy = Run.objects.filter(task=OuterRef("pk"), status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
    first = Event.objects.filter(task=OuterRef("pk")).order_by("number").values("number")[:1]
    ended = Task.objects.filter(pk__in=keys, state__in=sorted(TERMINAL), status_at__lt=limit)
    return (
        unheld(ended)
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
    """As `_filter_purgeable`, locked; `skip`: without tasks that another transaction has locked."""
    tasks = _filter_purgeable(keys, limit, needed)
    return list(tasks.select_for_update(of=("self",), skip_locked=skip))


def _count_events(task: Task) -> int:
    """Return the number of events that the log of a task still has; the task was read by `_filter_purgeable`."""
    first: int | None = task.first  # type: ignore[attr-defined]  # annotated
    return 0 if first is None else task.last_event - first + 1


def _cut(task: Task, max_count: int) -> int:
    """Remove the oldest events of a task, at most so many: what is left of its log has no gap."""
    end = task.last_event - _count_events(task) + 1 + max_count
    return Event.objects.filter(task_id=task.pk, number__lt=end).delete()[0]


def _cut_all(task: Task, max_count: int) -> int:
    """Remove the log lines of the task's runs, then its events."""
    return cut_lines(task.pk, max_count) or (_count_events(task) and _cut(task, max_count))


def _remove_log(keys: list[int], limit: datetime.datetime, room: int) -> tuple[Removed, list[int]]:
    """Remove log lines and events of these tasks; what is nowhere but in a log is folded before."""
    growing = Artifact.objects.filter(task=OuterRef("pk"), body="")
    for task in _filter_purgeable(keys[:room], limit).filter(Exists(growing)):
        for _ in fold(task.pk, task.last_event):
            pass
    return _cut_logs(keys, limit, room)


@transaction.atomic
def _cut_logs(keys: list[int], limit: datetime.datetime, room: int) -> tuple[Removed, list[int]]:
    """Remove log lines and events of these tasks, and nothing else of them."""
    lines = events = 0
    for task in _lock(keys[:room], limit):
        if Artifact.objects.filter(task=task, body="").exists():
            continue  # it is nowhere but in the log
        lines += cut_lines(task.pk, room - lines - events)  # first: by its events the task is found
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
    """Remove the first of these tasks, as many as fit; the log of one that is too large goes before it, in pieces."""
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
    """Return the number of rows that each task has beside itself and its events, in all apps."""
    sizes: Counter[int] = Counter(count_lines(keys))
    for relation in Task._meta.related_objects:  # noqa: SLF001 - Django's documented interface
        if relation.on_delete is CASCADE and relation.related_model is not Event:
            name = relation.field.attname
            rows = relation.related_model._default_manager.filter(**{f"{name}__in": keys})  # noqa: SLF001
            sizes.update(dict(rows.order_by().values_list(name).annotate(n=Count("*"))))
    return sizes


def _delete(tasks: list[Task], limit: datetime.datetime) -> Removed:
    """Delete locked tasks with all that is theirs, and the contexts that are left without any."""
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
    """Lock contexts, in the order in which accepting locks them: two orders would be a deadlock.

    Before a task is deleted, since whoever accepts holds contexts while it waits for what is deleted. And waiting, not
    skipping: of two purges that empty a context together, the second has to see it.
    """
    contexts = Context.objects.filter(pk__in=keys)
    contexts = contexts.order_by("public_id", "agent", "owner", "tenant").select_for_update()
    return list(contexts.values_list("pk", flat=True))


# --- counting -----------------------------------------------------------------------------------


def _count_tasks(keys: list[int], limit: datetime.datetime, _: int) -> tuple[Removed, list[int]]:
    tasks = _filter_purgeable(keys, limit)
    rows = sum(1 + _count_events(task) for task in tasks) + _sizes([t.pk for t in tasks]).total()
    return Removed(tasks=len(tasks), rows=rows), []
