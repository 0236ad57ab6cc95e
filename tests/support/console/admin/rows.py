"""Rows as the store would leave them, made at once: these tests are about looking, not about running agents."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.utils import timezone

from a2a_tasks.models import Artifact, Context, Event, Message, Run, RunStatus, Step, Task, Usage
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState

__all__ = ["add_artifact", "add_run", "add_status", "add_step", "add_usage", "make_task", "said"]


def said(text: str, role: Role = Role.USER) -> dict[str, Any]:
    """A message with one text part."""
    return {"messageId": "m", "role": role.value, "parts": [{"text": text}]}


def make_task(
    public_id: str = "task-1",
    *,
    text: str = "hello",
    state: TaskState = TaskState.SUBMITTED,
    agent: str = "demo",
    owner: str = "alice",
    context_id: str = "context-1",
    dialect: str = "v10",
) -> Task:
    """A task with its context and the message that began it."""
    context, _ = Context.objects.get_or_create(public_id=context_id, agent=agent, owner=owner)
    task = Task.objects.create(
        public_id=public_id,
        owner=owner,
        agent=agent,
        context=context,
        state=TaskState.SUBMITTED,
        status_at=timezone.now(),
        last_event=1,
        origin_dialect=dialect,
    )
    Message.objects.create(task=task, number=1, role=Role.USER, body=json.dumps(said(text)))
    Event.objects.create(task=task, number=1, kind=EventKind.INPUT)
    if state is not TaskState.SUBMITTED:
        add_status(task, state)
    return task


def _next(task: Task) -> int:
    task.last_event += 1
    task.save()
    return task.last_event


def add_status(task: Task, state: TaskState, text: str = "") -> None:
    """A change of state, with a message if there is something to say."""
    task.state, task.status_at = state, timezone.now()
    status: dict[str, Any] = {"state": state.value, "timestamp": "2026-01-01T00:00:00.000Z"}
    if text:
        status["message"] = said(text, Role.AGENT)
    Event.objects.create(
        task=task,
        number=_next(task),
        kind=EventKind.STATUS,
        state=state,
        body=json.dumps({"status": status}),
    )


def add_artifact(task: Task, artifact_id: str, *pieces: str, closed: bool = True) -> Artifact:
    """An artifact in pieces; while it is not closed its events are all there is of it."""
    first = task.last_event + 1
    for index, piece in enumerate(pieces):
        update = {
            "artifact": {"artifactId": artifact_id, "parts": [{"text": piece}]},
            "append": index > 0,
            "lastChunk": closed and index == len(pieces) - 1,
        }
        Event.objects.create(
            task=task, number=_next(task), kind=EventKind.ARTIFACT, body=json.dumps(update)
        )
    whole = {"artifactId": artifact_id, "parts": [{"text": piece} for piece in pieces]}
    return Artifact.objects.create(
        task=task,
        position=task.artifacts.count(),
        artifact_id=artifact_id,
        first_event=first,
        body=json.dumps(whole) if closed else "",
    )


def add_run(task: Task, status: RunStatus = RunStatus.QUEUED, **columns: Any) -> Run:
    """A run that answers the first message."""
    values: dict[str, Any] = {"input_number": 1, "queue": "agents", "agent": task.agent, **columns}
    if status is not RunStatus.QUEUED:
        values = {"started_at": timezone.now(), "attempt": 1, **values}
    if status is RunStatus.RUNNING:
        values = {"token": "a-secret-token", "lease_until": timezone.now(), **values}
    elif status is not RunStatus.QUEUED:
        values = {"ended_at": timezone.now(), **values}
    return Run.objects.create(task=task, status=status, **values)


def add_usage(task: Task, model: str = "m", **columns: Any) -> Usage:
    """A report of usage by a run of the task: one request, unless the columns say otherwise."""
    counts = dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens"), 0)
    about = {"task": task.pk, "task_id": task.public_id, "context_id": task.context.public_id}
    whose = {"tenant": task.tenant, "owner": task.owner, "caller": task.owner, "agent": task.agent}
    report = {"report": uuid.uuid4(), "run": 1, "attempt": 1, "model": model, "requests": 1}
    return Usage.objects.create(**{**counts, **about, **whose, **report, **columns})


def add_step(task: Task, run: Run, name: str, result: str = "null") -> Step:
    """A step that a run has taken."""
    return Step.objects.create(
        task=task, input_number=run.input_number, name=name, result=result, run=run.pk
    )
