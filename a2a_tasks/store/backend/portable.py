"""The store's functions by Django's ORM, one row at a time: for SQLite, which has one writer and no arrays.

`create_run`, `describe_run`, `keep_place` and `list_artifacts` serve every database: a message to an existing task is written by the ORM
everywhere.

See `interface` for the contract of each function. Locks of rows are not needed: a transaction that writes locks the
whole database. Django ignores `select_for_update` here.
"""

from __future__ import annotations

import contextlib
import datetime
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet, Value, Window
from django.db.models.functions import Concat, Now, RowNumber

from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.conversation_changes import (
    ConversationChanged,
    ConversationChanges,
    ListChange,
    MemoryChange,
)
from a2a_tasks.models import (
    BEHIND,
    WAITS_FOR_SLOT,
    Artifact,
    ChatPrefix,
    Context,
    ConversationItem,
    ConversationList,
    ConversationMemory,
    Event,
    Message,
    Run,
    RunStatus,
    Step,
    Task,
)
from a2a_tasks.protocol.chats import ChatPlace
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, LogEvent
from a2a_tasks.protocol.values import Role, TaskState
from a2a_tasks.store import audit, workers
from a2a_tasks.store.backend import fair_queue
from a2a_tasks.store.backend.statements import WANTED, Bytes, empty_reopened, of_turns
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import (
    REPEAT_SECONDS,
    Batch,
    ChatMove,
    ClaimedRun,
    EventRow,
    FoundChat,
    InsertedTask,
    LogPosition,
    NewTask,
    PlaceTaken,
    RunEnd,
    StepConflict,
    StepResult,
    StoredTask,
    WantedRuns,
    make_recorded,
)
from a2a_tasks.store.scoping import visible_to
from a2a_tasks.store.sql_files import read_sql

# --- new tasks ------------------------------------------------------------------------------------


@transaction.atomic
def insert_tasks(news: Sequence[NewTask]) -> list[InsertedTask | None]:
    """See `interface.Backend`."""
    return [_insert_task(new) for new in news]


def _insert_task(new: NewTask) -> InsertedTask | None:
    place = new.place
    if place and place.row and not _find_place(place).exists():
        return None
    scope: dict[str, Any] = {
        "tenant": new.scope.tenant,
        "owner": new.scope.owner,
        "agent": new.scope.agent,
    }
    context, made = Context.objects.get_or_create(public_id=new.context_id, **scope)
    if not made:
        Context.objects.filter(pk=context.pk).update(updated_at=Now())
    task = Task.objects.create(
        public_id=new.id,
        context=context,
        created_by=new.created_by,
        is_task=new.is_task,
        state=TaskState.SUBMITTED,
        status_at=new.at,
        metadata=new.metadata,
        last_event=1,
        run_token=new.lease.token if new.lease else "",
        origin_dialect=new.dialect,
        origin_binding=new.binding,
        **scope,
    )
    Message.objects.create(
        task=task, number=1, role=new.role, body=new.message, opening=new.opening
    )
    Event.objects.create(task=task, number=1, kind=EventKind.INPUT)
    about: dict[str, Any] = {"request": new.request_id, "detail": new.detail}
    audit.note(Action.TASK_SEND, new.id, scope=new.scope, actor=new.actor, **about)
    run = create_run(task, 1, new)
    if place:
        keep_place(place, task.pk, 1)
    return InsertedTask(task.pk, run.pk, run.is_behind)


def create_run(task: Task, number: int, new: NewTask) -> Run:
    """Write the run that answers event `number`: queued, behind an earlier one, or held. It serves every database."""
    lease = new.lease
    columns: dict[str, Any]
    if lease is None:
        earlier = Q(task=task) | Q(ordered_in=task.context_id) if new.ordered else Q(task=task)
        waits = Run.objects.filter(earlier, status__in=[RunStatus.RUNNING, RunStatus.QUEUED])
        place = BEHIND if waits.exists() else fair_queue.join_round(new.queue, new.quota_key)
        columns = {"status": RunStatus.QUEUED, "round": place}
    else:
        columns = {
            "status": RunStatus.RUNNING,
            "attempt": 1,
            "token": lease.token,
            "worker": lease.worker,
            "lease_seconds": lease.lease_seconds,
            "lease_until": Now() + datetime.timedelta(seconds=lease.lease_seconds),
            "started_at": Now(),
        }
    return Run.objects.create(
        task_id=task.pk,
        input_number=number,
        queue=new.queue,
        agent=new.scope.agent,
        quota_key=new.quota_key,
        ordered_in=task.context_id if new.ordered else None,
        request=new.request,
        **columns,
    )


# --- conversations of chats -----------------------------------------------------------------------


def find_chats(asked: Sequence[tuple[OwnerScope, Collection[str]]]) -> list[list[FoundChat]]:
    """See `interface.Backend`."""
    return [_find_newest(scope, names) for scope, names in asked]


def _find_newest(scope: OwnerScope, names: Collection[str]) -> list[FoundChat]:
    mine, oldest = Q(), Now() - datetime.timedelta(seconds=REPEAT_SECONDS)
    for part in scope.parts:
        mine |= Q(task__owner=part.owner) & (
            Q(task__created_by=part.created_by) if part.created_by else Q()
        )
    rows = ChatPrefix.objects.filter(mine, task__tenant=scope.tenant, task__agent=scope.agent)
    found = rows.filter(digest__in=names).annotate(
        recent=ExpressionWrapper(Q(updated_at__gt=oldest), BooleanField()),
        place=Window(RowNumber(), partition_by="digest", order_by=("-updated_at", "-pk")),
    )
    columns = ("task__public_id", "task__context__public_id", "task__state", "number", "recent")
    chats = {
        digest: FoundChat(row, digest, task, context, TaskState(state), *more)
        for row, digest, task, context, state, *more in found.filter(place=1).values_list(
            "pk", "digest", *columns
        )
    }
    return [chats[name] for name in names if name in chats]


def keep_place(place: ChatPlace, task: int, number: int) -> None:
    """Store the place of a message, whose event has this number. Raises PlaceTaken. It serves every database."""
    about = {"digest": place.asked, "task_id": task, "number": number}
    if not place.row:
        ChatPrefix.objects.create(**about)
    elif not _find_place(place).update(**about, updated_at=Now()):
        raise PlaceTaken


def _find_place(place: ChatPlace) -> QuerySet[ChatPrefix]:
    return ChatPrefix.objects.filter(pk=place.row, digest=place.before)


@transaction.atomic
def move_chats(moves: Sequence[ChatMove]) -> None:
    """See `interface.Backend`."""
    for task_id, before, digest in moves:
        rows = ChatPrefix.objects.filter(digest=before, task__public_id=task_id)
        rows.update(digest=digest, updated_at=Now())


# --- batches of runs ------------------------------------------------------------------------------


@transaction.atomic
def append_batches(batches: Sequence[Batch]) -> list[int | None]:
    """See `interface.Backend`."""
    return [_append(batch) for batch in batches]


def _change_task(batch: Batch) -> bool:
    """Change the row of the task as the batch says; False if the run does not hold the task any more."""
    tasks = Task.objects.filter(pk=batch.task, run_token=batch.token).exclude(run_token="")
    if batch.after is not None:
        tasks = tasks.filter(batches=batch.after)
    changes: dict[str, Any] = {
        "last_event": F("last_event") + len(batch.events),
        "batches": F("batches") + 1,
    }
    if batch.status:
        columns = ("state", "status_at", "status_message", "status_text")
        changes |= zip(columns, batch.status, strict=True)
    if batch.memory is not None:
        changes["memory"] = batch.memory
    if batch.reveal:
        changes["is_task"] = True
    if batch.end:
        changes["run_token"] = ""
    return bool(tasks.update(**changes))


def _append(batch: Batch) -> int | None:
    if not _change_task(batch):
        return None
    last = Task.objects.values_list("last_event", flat=True).get(pk=batch.task)
    first = last - len(batch.events) + 1
    events = [
        Event(
            task_id=batch.task,
            number=number,
            kind=event.kind,
            state=event.state or "",
            run=batch.run,
            body=event.body,
        )
        for number, event in enumerate(batch.events, first)
    ]
    Event.objects.bulk_create(events)
    Message.objects.bulk_create(
        [
            Message(task_id=batch.task, number=event.number, role=Role.AGENT, body=event.body)
            for event in events
            if event.kind is EventKind.MESSAGE
        ]
    )
    for row in batch.artifacts:
        Artifact.objects.update_or_create(
            task_id=batch.task,
            position=row.position,
            defaults={
                "artifact_id": row.artifact_id,
                "first_event": first + row.offset,
                "body": row.body,
            },
        )
    if batch.end:
        _end_run(batch, batch.end)
    if batch.reopened:
        empty_reopened(batch)
    if batch.conversation:
        _change_conversation(batch, batch.conversation)
    return last


def _end_run(batch: Batch, end: RunEnd) -> None:
    Run.objects.filter(pk=batch.run).update(
        status=end.status,
        error=Concat(F("error"), Value(end.error)),  # earlier attempts stay in it
        token="",
        lease_until=None,
        ended_at=Now(),
    )
    if batch.ends_task:
        queued = Run.objects.filter(task_id=batch.task, status=RunStatus.QUEUED)
        queued.update(status=RunStatus.DROPPED, ended_at=Now())


def _change_conversation(batch: Batch, changes: ConversationChanges) -> None:
    """Write what the run's turn changes in its conversation. Raises ConversationChanged."""
    context = Task.objects.values_list("context_id", flat=True).get(pk=batch.task)
    for value in changes.memory:
        if not _change_value(context, batch.run, value):
            raise ConversationChanged(value.key)
    for change in changes.lists:
        if not _change_list(context, batch.run, change):
            raise ConversationChanged(change.key)


def _change_value(context: int, run: int, change: MemoryChange) -> bool:
    """Write or delete a value of the expected version. False: there is another one."""
    old = ConversationMemory.objects.filter(
        context=context, key=change.key, version=change.expected
    )
    if change.value is None:
        return bool(old.delete()[0])
    new = {"version": run, "kind": change.kind, "value": change.value}
    if change.expected:
        return bool(old.update(**new, updated_at=Now()))
    _, made = ConversationMemory.objects.get_or_create(
        context_id=context, key=change.key, defaults=new
    )
    return made


def _change_list(context: int, run: int, change: ListChange) -> bool:
    """Cut and lengthen a list of the expected version. False: there is another one."""
    new = {"version": run, "count": change.kept + len(change.added), "size": change.size}
    mine = {"context_id": context, "key": change.key}
    if change.expected:
        old = ConversationList.objects.filter(**mine, version=change.expected)
        changed = bool(old.update(**new, updated_at=Now()))
    else:
        _, changed = ConversationList.objects.get_or_create(**mine, defaults=new)
    if not changed:
        return False
    row = ConversationList.objects.get(**mine)
    if change.trims:
        ConversationItem.objects.filter(list=row, number__gt=change.kept).delete()
    ConversationItem.objects.bulk_create(
        ConversationItem(list=row, number=number, value=item)
        for number, item in enumerate(change.added, change.kept + 1)
    )
    return True


# --- runs -----------------------------------------------------------------------------------------

#: The condition for the shared deaths of the runs that a claim may take, by quarantine.
DEATHS = {
    Quarantine.NONE: Q(shared_deaths__lt=2),
    Quarantine.GROUP: Q(shared_deaths=2),
    Quarantine.PROCESS: Q(shared_deaths__gte=3),
}


@transaction.atomic
def claim_runs(wanted: WantedRuns, limit: int) -> list[ClaimedRun]:
    """See `interface.Backend`."""
    requested_at = time.monotonic()
    due = (
        Run.objects.filter(WAITS_FOR_SLOT, DEATHS[wanted.quarantine], due_at__lte=Now())
        .exclude(Q(quota_key__in=wanted.full) | fair_queue.behind_another())
        .order_by("due_at" if wanted.quarantine is Quarantine.PROCESS else "round", "pk")
    )
    waiting = [
        run
        for queue in wanted.queues
        for which in _list_wanted(queue, wanted)
        for run in due.filter(which, queue=queue)[:limit]
    ]
    key = (lambda run: (run.due_at, run.pk)) if wanted.quarantine is Quarantine.PROCESS else _turn
    found = sorted(waiting, key=key)[:limit]
    taken, size = list[ClaimedRun](), 0
    for run in found:
        if size >= wanted.most:
            break
        if claimed := _claim(run, wanted, requested_at, wanted.runs_in_process + len(found)):
            taken.append(claimed)
            size += claimed.size
    return taken


def _turn(run: Run) -> tuple[Any, int]:
    return run.round, run.pk


def _list_wanted(queue: str, wanted: WantedRuns) -> Iterator[Q]:
    """Yield a condition for each agent of which runs may be claimed: those of orphans were due for a while."""
    hosted = workers.list_hosted(workers.absence()) if wanted.orphans else {}
    since = Now() - datetime.timedelta(seconds=conf.ORPHAN_SECONDS)
    for agent in fair_queue.list_waiting_agents(queue):
        if agent in wanted.agents:
            yield Q(agent=agent)
        elif wanted.orphans and agent not in {*wanted.known, *hosted.get(queue, ())}:
            yield Q(agent=agent, due_at__lt=since)


def _claim(run: Run, wanted: WantedRuns, requested_at: float, count: int) -> ClaimedRun | None:
    """Claim the run, with which its process has `count`; None if the task has ended meanwhile and needs no run."""
    token = f"{wanted.mark}{secrets.token_urlsafe(18)}"
    unended = Task.objects.filter(pk=run.task_id).exclude(state__in=TERMINAL)
    if not unended.update(run_token=token, batches=0):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.DROPPED, ended_at=Now())
        return None
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING,
        attempt=F("attempt") + 1,
        token=token,
        worker=wanted.worker,
        lease_seconds=wanted.lease_seconds,
        lease_until=Now() + datetime.timedelta(seconds=wanted.lease_seconds),
        started_at=Now(),
        runs_in_process=count,
    )
    task = Task.objects.select_related("context").get(pk=run.task_id)
    return replace(
        describe_run(run, task),
        token=token,
        attempt=run.attempt + 1,
        artifacts=list_artifacts(task.pk),
        requested_at=requested_at,
    )


def describe_run(run: Run, task: Task) -> ClaimedRun:
    """Return a run with the values of its task, without a lease and artifacts. It serves every database."""
    messages = Message.objects.filter(task_id=task.pk, number=run.input_number)
    return ClaimedRun(
        key=run.pk,
        token="",
        attempt=run.attempt,
        task=task.pk,
        scope=OwnerScope(task.tenant, task.owner, task.agent),
        task_id=task.public_id,
        context_id=task.context.public_id,
        state=TaskState(task.state),
        is_task=task.is_task,
        last_event=task.last_event,
        input_number=run.input_number,
        input=messages.values_list("body", flat=True).first() or "",
        request=run.request,
        memory=task.memory,
        quota_key=run.quota_key,
        quarantine=Quarantine.after(run.shared_deaths),
        longest_life=run.longest_life,
        begun_before=run.started_at is not None,
        ordered=run.ordered_in is not None,
        parked_in=run.parked_in,
        said=run.said,
    )


def list_artifacts(task: int) -> tuple[tuple[str, int, bool], ...]:
    """Return (id, position, true if it is still growing) of a task's artifacts. It serves every database."""
    rows = Artifact.objects.filter(task_id=task).order_by("position")
    return tuple(
        (artifact_id, position, not size)
        for artifact_id, position, size in rows.values_list(
            "artifact_id", "position", Bytes("body")
        )
    )


def extend_leases(tokens: Collection[str], runs_in_process: int) -> set[str]:
    """See `interface.Backend`."""
    runs = Run.objects.filter(status=RunStatus.RUNNING, token__in=tokens)
    for seconds in set(runs.values_list("lease_seconds", flat=True)):
        until = Now() + datetime.timedelta(seconds=seconds)
        runs.filter(lease_seconds=seconds).update(
            lease_until=until, runs_in_process=runs_in_process
        )
    return set(runs.values_list("token", flat=True))


def extend_locked_lease(token: str, runs_in_process: int) -> bool:
    """See `interface.Backend`."""
    return token in extend_leases([token], runs_in_process)


# --- steps ----------------------------------------------------------------------------------------


@transaction.atomic
def keep_steps(steps: Sequence[StepResult]) -> set[int]:
    """See `interface.Backend`."""
    if len(steps) == 1:
        return {0} if _keep_step(steps[0]) else set()
    kept = set()
    for n, step in enumerate(steps):
        with contextlib.suppress(IntegrityError):
            kept |= {n} if _keep_step(step) else set()
    return kept


def _keep_step(step: StepResult) -> bool:
    run = step.run
    tasks = Task.objects.filter(pk=run.task, run_token=run.token).exclude(run_token="")
    if not tasks.update(
        run_token=run.token
    ):  # a write, which makes the transaction the only writer
        return False
    row, _ = Step.objects.get_or_create(
        task_id=run.task,
        input_number=run.input_number,
        name=step.name,
        defaults={"result": step.result, "run": run.key, "seconds": step.seconds},
    )
    if (row.result, row.run) != (step.result, run.key):
        raise StepConflict
    return True


def read_steps(turns: Collection[tuple[int, int]]) -> list[tuple[int, int, str, str]]:
    """See `interface.Backend`."""
    rows = Step.objects.filter(of_turns(turns))
    return list(rows.values_list("task_id", "input_number", "name", "result"))


# --- tasks ----------------------------------------------------------------------------------------


def find_tasks(
    keys: Sequence[tuple[OwnerScope, str]],
) -> dict[tuple[OwnerScope, str], StoredTask]:
    """See `interface.Backend`."""
    rows = {
        (scope, public_id): _read_task(Task.objects.filter(visible_to(scope), public_id=public_id))
        for scope, public_id in keys
    }
    return {key: row for key, row in rows.items() if row is not None}


def find_task(task: int) -> StoredTask | None:
    """See `interface.Backend`."""
    return _read_task(Task.objects.filter(pk=task))


def _read_task(which: QuerySet[Task]) -> StoredTask | None:
    """Read the first task in several queries; repeat them if it has got events meanwhile."""
    while (task := which.select_related("context").first()) is not None:
        messages = Message.objects.filter(task=task).order_by("number")
        artifacts = Artifact.objects.filter(task=task).order_by("position")
        row = StoredTask(
            key=task.pk,
            public_id=task.public_id,
            last_event=task.last_event,
            context_id=task.context.public_id,
            state=task.state,
            status_at=task.status_at,
            status_message=task.status_message,
            metadata=task.metadata,
            messages=list(messages.values_list("body", flat=True)),
            artifacts=list(artifacts.values_list("artifact_id", "first_event", "body")),
            size=0,
        )
        if which.values_list("last_event", flat=True).first() == task.last_event:
            return row
    return None


# --- events ---------------------------------------------------------------------------------------


def find_other_ends(known: Mapping[int, int]) -> dict[int, int | None]:
    """See `interface.Backend`."""
    found = dict(Task.objects.filter(pk__in=known).values_list("pk", "last_event"))
    return {task: found.get(task) for task, end in known.items() if found.get(task) != end}


READ_AFTER = read_sql("_read_after")


def read_events(task: int, number: int, limit: int, max_bytes: int) -> list[LogEvent]:
    """See `interface.Backend`."""
    return _read_until(max_bytes, READ_AFTER, {"task": task, "number": number, "limit": limit})


READ_PAGE = read_sql("read_page_sqlite", which="%s", **WANTED)


def read_pages(
    pages: Sequence[LogPosition], *, limit: int, max_bytes: int, longest: int
) -> list[list[LogEvent]]:
    """See `interface.Backend`."""
    return [
        _read_until(
            max_bytes,
            READ_PAGE,
            [longest, page.task, page.number, int(page.which), int(page.which), limit],
        )
        for page in pages
    ]


def _read_until(
    max_bytes: int, statement: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[LogEvent]:
    """Return the events of a statement, until their bodies have `max_bytes` bytes. SQLite returns one row at a time."""
    found: list[LogEvent] = []
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        for row in cursor:
            found.append(make_recorded(EventRow._make(row)))
            max_bytes -= found[-1].size
            if max_bytes <= 0:
                break
    return found
