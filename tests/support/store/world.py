"""What the tests of the store are made of: scopes, messages, and a pen that writes batches as a run does."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connections
from django.db.models.functions import Now

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import (
    Artifact,
    ChatPrefix,
    Context,
    ConversationItem,
    ConversationList,
    ConversationMemory,
    Event,
    Message,
    Run,
    Task,
)
from a2a_tasks.protocol import values
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind, fold
from a2a_tasks.protocol.values import ArtifactUpdate, Part, Role, TaskState
from a2a_tasks.store import event_log, runs
from a2a_tasks.store.accept import accept
from a2a_tasks.store.append import append
from a2a_tasks.store.records import (
    Accepted,
    ArtifactRow,
    Batch,
    ClaimedRun,
    NewEvent,
    NewTask,
    PreclaimedLease,
    RunEnd,
    StatusRow,
    WantedRuns,
    new_token,
)
from a2a_tasks.store.tasks import FoundTask, find

__all__ = [
    "ALICE",
    "AT",
    "BOB",
    "CHARLIE",
    "DROPPED",
    "Pen",
    "accepted",
    "at_once",
    "chunk",
    "claim",
    "contents",
    "everything",
    "expire",
    "found",
    "held",
    "new",
    "replayed",
    "said",
    "status",
]

T = TypeVar("T")
ALICE = OwnerScope("", "user:alice", "demo")
BOB = OwnerScope("", "user:bob", "demo")
CHARLIE = OwnerScope("elsewhere", "user:alice", "demo")
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC)
DROPPED = "dropped"


def said(text: str = "hello", **ids: str) -> str:
    """A client's message, as stored."""
    return write(
        values.Message(
            message_id=f"m-{text}",
            role=Role.USER,
            parts=(Part(text=text),),
            task_id=ids.get("task_id"),
            context_id=ids.get("context_id"),
        )
    ).decode()


def hold(token: str = "") -> PreclaimedLease:
    """A lease of this process."""
    return PreclaimedLease(token or new_token(), "here:1", 30.0)


def new(
    task: str = "task-1", *, held: bool = False, text: str = "hello", **changes: Any
) -> NewTask:
    """A message that begins a task, or goes to it."""
    context_id, token = changes.pop("context_id", "context-1"), changes.pop("token", "")
    described: dict[str, Any] = {
        "scope": ALICE,
        "id": task,
        "context_id": context_id,
        "message": said(text, task_id=task, context_id=context_id),
        "role": Role.USER.value,
        "at": AT,
        "dialect": "v10",
        "queue": "agents",
        "request": "{}",
        "lease": hold(token) if held else None,
    }
    return NewTask(**{**described, **changes})


def accepted(task: str = "task-1", **changes: Any) -> Accepted:
    """A task in the store, whose run waits."""
    return accept(new(task, **changes))


def held(task: str = "task-1", **changes: Any) -> ClaimedRun:
    """A task in the store, whose run is ours."""
    run = accept(new(task, held=True, **changes)).claimed_run
    assert run is not None
    return run


def claim(
    limit: int = 10,
    *,
    worker: str = "there:2",
    queues: Iterable[str] = ("agents",),
    agents: Iterable[str] | None = None,
    limits: Mapping[str, int] | None = None,
    **conditions: Any,
) -> list[ClaimedRun]:
    """Claim runs for a worker with room that hosts these agents (if not said: all there are)."""
    hosted = Task.objects.values_list("agent", flat=True).distinct() if agents is None else agents
    wanted = WantedRuns(
        queues=list(queues), agents=list(hosted), worker=worker, lease_seconds=30.0, **conditions
    )
    return runs.claim(wanted, limit=limit, limits=limits)


def expire(run: int) -> None:
    """Let a lease end, as after half a minute without a heartbeat."""
    Run.objects.filter(pk=run).update(lease_until=Now() - datetime.timedelta(seconds=1))


def status(state: TaskState, text: str = "") -> tuple[NewEvent, StatusRow]:
    """A status event, and the status of the task row after it."""
    message = said(text) if text else ""
    event = NewEvent(EventKind.STATUS, event_log.status_body(state, AT, message), state)
    return event, StatusRow(state, AT, message, text[:200])


def chunk(artifact_id: str, text: str, *, append: bool = False, last: bool = False) -> NewEvent:
    """An artifact, or a piece of one."""
    update = ArtifactUpdate(
        artifact=values.Artifact(artifact_id=artifact_id, parts=(Part(text=text),)),
        append=append,
        last_chunk=last,
    )
    return NewEvent(EventKind.ARTIFACT, write(update).decode())


class Pen:
    """Writes for a run, one batch a call."""

    def __init__(self, run: ClaimedRun) -> None:
        self.run = run

    def batch(self, *events: NewEvent, **more: Any) -> Batch:
        """A batch of this run."""
        run = self.run
        return Batch(
            task=run.task,
            run=run.key,
            token=run.token,
            ordered=run.ordered,
            events=list(events),
            **more,
        )

    def state(self, state: TaskState, text: str = "", **more: Any) -> int:
        """Say how the task stands."""
        event, row = status(state, text)
        return append(self.batch(event, status=row, **more))

    def begin(self, artifact_id: str, text: str, position: int = 0) -> int:
        """Begin an artifact that will grow."""
        row = ArtifactRow(position, artifact_id, 0)
        return append(self.batch(chunk(artifact_id, text), artifacts=[row]))

    def add(self, artifact_id: str, text: str) -> int:
        """Append to an artifact."""
        return append(self.batch(chunk(artifact_id, text, append=True)))

    def close(self, artifact_id: str, text: str, position: int = 0) -> int:
        """Append the last piece of an artifact."""
        return append(
            self.batch(chunk(artifact_id, text, append=True, last=True), closed=[position])
        )

    def end(self, state: TaskState = TaskState.COMPLETED, **more: Any) -> int:
        """End the task and the run."""
        return self.state(state, end=RunEnd(), **more)


def found(task: str = "task-1", scope: OwnerScope = ALICE) -> FoundTask:
    """The task, which is there."""
    result = find(scope, task)
    assert result is not None
    return result


def replayed(view: values.Task, task: int) -> values.Task:
    """The log of a task, from event 2 on, folded onto what was accepted with event 1."""
    return fold(view, everything(task)[1:])


def everything(task: int) -> list[Any]:
    """The whole log of a task."""
    events = event_log.read_after(task, 0)
    while more := event_log.read_after(task, events[-1].number if events else 0):
        events += more
    return events


def contents(owner: str) -> dict[str, list[dict[str, Any]]]:
    """What the tables hold of one owner, without keys, tokens and moments of the database's clock."""
    mine = {"task__owner": owner}
    tables = {
        "contexts": Context.objects.filter(owner=owner).order_by("public_id"),
        "tasks": Task.objects.filter(owner=owner).order_by("public_id"),
        "messages": Message.objects.filter(**mine).order_by("task__public_id", "number"),
        "events": Event.objects.filter(**mine).order_by("task__public_id", "number"),
        "artifacts": Artifact.objects.filter(**mine).order_by("task__public_id", "position"),
        "memory": ConversationMemory.objects.filter(context__owner=owner).order_by("key"),
        "lists": ConversationList.objects.filter(context__owner=owner).order_by("key"),
        "items": ConversationItem.objects.filter(list__context__owner=owner).order_by(
            "list__key", "number"
        ),
        "chats": ChatPrefix.objects.filter(**mine).order_by("task__public_id"),
        "runs": Run.objects.filter(**mine).order_by("task__public_id", "input_number"),
    }
    return {name: [_comparable(row) for row in rows.values()] for name, rows in tables.items()}


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Keys and the clock's moments become "is there one?"."""
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if name in {
            "id",
            "task_id",
            "context_id",
            "list_id",
            "run",
            "version",
            "owner",
            "ordered_in",
        }:
            shown[name] = value is not None
        elif isinstance(value, memoryview):
            shown[name] = bytes(value)
        elif name == "round":  # it depends on who else waits
            shown[name] = value > 0
        elif isinstance(value, datetime.datetime) and name != "status_at":
            shown[name] = True
        else:
            shown[name] = value
    return shown


def at_once(*works: Callable[[], T]) -> list[T | BaseException]:
    """Run these in threads that start together, each on a connection of its own; what they return or raise."""
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T | BaseException:
        try:
            gate.wait(timeout=30)
            return work()
        except Exception as fault:  # noqa: BLE001 - the test looks at it
            return fault
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))
