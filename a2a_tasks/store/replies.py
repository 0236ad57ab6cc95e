"""Acceptance of messages to existing tasks: a message resumes an interrupted task, or waits behind the task's runs."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Context, Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import (
    ContextMismatch,
    InvalidParams,
    TaskEnded,
    TaskNotFound,
    TaskNotWaiting,
)
from a2a_tasks.protocol.forms import FORM, UnfitAnswer, find_form, read_answer
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, Recorded
from a2a_tasks.protocol.values import Role, TaskState
from a2a_tasks.store import audit, event_log
from a2a_tasks.store.backend.portable import create_run, list_artifacts
from a2a_tasks.store.records import Accepted, ClaimedRun, NewTask, StoredQuestion
from a2a_tasks.store.scoping import visible_to
from a2a_tasks.store.succeed import succeed
from a2a_tasks.store.tasks import view

__all__ = ["reply"]

_decode = msgspec.json.Decoder(values.Message).decode


def reply(new: NewTask) -> Accepted:
    """Write a message to the task `new.id`; an empty `new.context_id` stands for the task's own.

    If the task has ended and `new.reopens` contains its dialect, a successor begins under its id.
    Raises TaskNotFound, TaskEnded, ContextMismatch; TaskNotWaiting if `new.answers` is not the task's present question.
    """
    accepted, recorded = _write(new)
    if accepted.assignment is None:
        pubsub.publish(pubsub.RunQueued(new.queue))
    if recorded:
        pubsub.publish(pubsub.Committed(accepted.task, recorded[-1].number, recorded))
    return accepted


@transaction.atomic
def _write(new: NewTask) -> tuple[Accepted, list[Recorded]]:
    task = event_log.lock_task(visible_to(new.scope), public_id=new.id)
    _refuse(task, new)
    assert task is not None  # noqa: S101 - _refuse raised otherwise
    # The context is inferred from the task (A2A 1.0 §3.4.3).
    message = {**msgspec.json.decode(new.message), "contextId": task.context.public_id}
    new = replace(
        new,
        message=write(message).decode(),
        scope=OwnerScope(task.tenant, task.owner, task.agent),  # the task keeps its owner
    )
    if TaskState(task.state) in TERMINAL:
        return succeed(task, new), []
    waited = TaskState(task.state) in INTERRUPTED
    if waited and task.status_message:
        _refuse_unfit(task.status_message, new.message)
        _keep_question(task)
    recorded = [event_log.record(task, EventKind.INPUT, new.message, role=new.role)]
    number = recorded[0].number
    if waited:
        recorded.append(event_log.change_state(task, TaskState.WORKING, at=new.at))
    Context.objects.filter(pk=task.context_id).update(updated_at=Now())
    busy = Run.objects.filter(task=task, status__in=[RunStatus.RUNNING, RunStatus.QUEUED]).exists()
    if busy:
        new = replace(new, hold=None)  # it waits for the runs before it
    run = create_run(task, number, new)
    _note(new)
    new.accompany(task.pk)
    if new.hold:
        Task.objects.filter(pk=task.pk).update(run_token=new.hold.token, batches=0)
    accepted = Accepted(
        task=task.pk,
        number=recorded[-1].number,
        run=run.pk,
        view=view(task),
        assignment=_assignment(task, run, new),
    )
    return accepted, recorded


def _keep_question(task: Task) -> None:
    """Add the agent's question to the history, before its answer, as `lifecycle.fold` does."""
    newest = Event.objects.filter(task=task, kind=EventKind.STATUS).aggregate(n=Max("number"))["n"]
    Message.objects.create(
        task=task,
        number=newest or task.last_event,
        role=Role.AGENT,
        body=task.status_message,
        created_at=task.status_at,
    )


def _refuse(task: Task | None, new: NewTask) -> None:
    if task is None:
        raise TaskNotFound(taskId=new.id)
    if new.answers:
        _refuse_late(task, new.answers)
    if new.context_id and new.context_id != task.context.public_id:
        raise ContextMismatch.field("message.contextId", "is not the context of the task")
    if TaskState(task.state) in TERMINAL and task.origin_dialect not in new.reopens:
        raise TaskEnded(f"The task is {TaskState(task.state).word}", taskId=new.id)


def _refuse_late(task: Task, question: StoredQuestion) -> None:
    """Raise TaskNotWaiting unless the task still waits with this question: only the first of several answers is accepted."""
    state = TaskState(task.state)
    if task.pk != question.task or state not in INTERRUPTED:
        raise TaskNotWaiting(f"The task is {state.word}: it does not wait for an answer")
    if task.last_event != question.event:
        raise TaskNotWaiting("The task was answered already, and asks something else now")


def _refuse_unfit(question: str, answer: str) -> None:
    """Raise InvalidParams, with the fields, for an answer that does not fit the form of the question."""
    form = find_form(_decode(question)) if FORM in question else None
    if form is not None:
        try:
            read_answer(form, _decode(answer).parts)
        except UnfitAnswer as fault:
            raise InvalidParams(violations=fault.faults) from None


def _note(new: NewTask) -> None:
    """Write the audit entry of the message.

    The actor of a client's message is its principal, that of an operator's answer the current actor. A handed-over
    secret has an entry of its own, written by its companion.
    """
    if new.answers:
        if new.answers.by_operator:
            audit.note(new.answers.action, new.id, scope=new.scope)
        return
    by = new.principal or new.scope.principal
    audit.note(Action.TASK_SEND, new.id, scope=new.scope, actor=by, request=new.request_id)


def _assignment(task: Task, run: Run, new: NewTask) -> ClaimedRun | None:
    if new.hold is None:
        return None
    return ClaimedRun(
        run=run.pk,
        token=new.hold.token,
        requested_at=new.hold.requested_at,
        attempt=1,
        task=task.pk,
        scope=new.scope,
        task_id=task.public_id,
        context_id=task.context.public_id,
        state=TaskState(task.state),
        is_task=task.is_task,
        last_event=task.last_event,
        input_number=run.input_number,
        input=new.message,
        request=new.request,
        memory=task.memory,
        share=new.share,
        ordered=new.ordered,
        artifacts=list_artifacts(task.pk),
    )
