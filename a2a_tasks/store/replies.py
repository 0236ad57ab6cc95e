"""Acceptance of messages to existing tasks: a message resumes an interrupted task, or waits behind the task's runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from django.db import transaction
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Context, Delegation, Message, Run, RunStatus, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import (
    ContextMismatch,
    InvalidParams,
    RateLimited,
    TaskEnded,
    TaskNotFound,
    TaskNotWaiting,
)
from a2a_tasks.protocol.forms import FORM, UnfitAnswer, find_form, read_answer
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, LogEvent
from a2a_tasks.protocol.operators import ASKED_BY
from a2a_tasks.protocol.values import Role, TaskState
from a2a_tasks.store import audit, event_log
from a2a_tasks.store.backend.portable import create_run, keep_place, list_artifacts
from a2a_tasks.store.behind import look_again
from a2a_tasks.store.delegations import (
    find_question,
    hides_question,
    list_relayed,
    settle_questions,
    still_asks,
)
from a2a_tasks.store.records import Accepted, ClaimedRun, NewTask, StoredQuestion
from a2a_tasks.store.scoping import visible_to
from a2a_tasks.store.succeed import succeed
from a2a_tasks.store.tasks import view, view_small

__all__ = ["reply"]

#: Seconds after which a client whose task has too many unfinished messages may try again.
RETRY_SECONDS = "5"

_decode = msgspec.json.Decoder(values.Message).decode


def reply(new: NewTask) -> Accepted:
    """Write a message to the task `new.id`; an empty `new.context_id` stands for the task's own.

    If the task has ended, and `new.reopens` and its dialect allow it, a successor begins under its id.
    Raises TaskNotFound, TaskEnded, ContextMismatch; TaskNotWaiting if `new.answers` is not the task's present question;
    RateLimited if too many of its messages are unfinished.
    """
    accepted, taken = _write_checked(new)
    failpoint("call.answered")
    run = taken.run
    if run is not None and run.is_behind:
        look_again(run.pk)
    elif accepted.claimed_run is None:
        pubsub.publish(pubsub.RunQueued(run.queue if run else new.queue))
    for task, recorded in taken.recorded:
        pubsub.publish(pubsub.Committed(task, recorded[-1].number, recorded))
    for task, _ in reversed(taken.recorded[:-1]):  # of those another question may have waited
        settle_questions(task)
    return accepted


class _ReplyEffects(NamedTuple):
    """The events of a message by task, down to the task that answers it, and the run there; None if a successor answers."""

    recorded: list[tuple[int, list[LogEvent]]]
    run: Run | None


class _UncheckedForm(Exception):
    """A question with a form, which the message was not compared with; `args` has its JSON."""


def _write_checked(new: NewTask) -> tuple[Accepted, _ReplyEffects]:
    """Write the message; compare it with the form of the question between two tries, while nothing is locked."""
    question = ""
    while True:  # until the question stays the same
        try:
            return _write(new, question)
        except _UncheckedForm as found:
            question = found.args[0]
            _refuse_unfit(question, new.message)


@transaction.atomic
def _write(new: NewTask, checked: str) -> tuple[Accepted, _ReplyEffects]:
    """Return the message, and what it became."""
    new.lock_above()
    task = event_log.lock_task(visible_to(new.scope), public_id=new.id)
    _refuse(task, new)
    assert task is not None  # noqa: S101 - _refuse raised otherwise
    new = _address(task, new)
    if TaskState(task.state) in TERMINAL:
        return succeed(task, new), _ReplyEffects([], None)
    unfinished = _count_unfinished(task)
    question = task.status_message if TaskState(task.state) in INTERRUPTED else ""
    asked = _find_open_question(task) if ASKED_BY in question else None
    if unfinished and not question and (asked := _find_hidden(task)):
        question = _read_question(asked.child)
    if FORM in question and question != checked:
        raise _UncheckedForm(question)
    recorded, number = _record(task, new)
    if unfinished:
        new = replace(new, lease=None)  # it waits for the runs before it
    _note(new)
    if asked is None:
        run = create_run(task, number, new)
        taken, turn, claimed = _ReplyEffects([], run), run.pk, _make_claimed(task, run, new)
    else:
        taken, turn, claimed = _pass_down(asked, new), asked.turn, None
    new.accompany(task.pk)
    if new.place:
        keep_place(new.place, task.pk, recorded[-1].number)
    if claimed is not None:
        Task.objects.filter(pk=task.pk).update(run_token=claimed.token, batches=0)
    whole = view_small(task)
    accepted = Accepted(
        task=task.pk,
        number=recorded[-1].number,
        run=turn,
        view=whole or view(task),
        is_whole=whole is not None,
        claimed_run=claimed,
    )
    return accepted, _ReplyEffects([(task.pk, recorded), *taken.recorded], taken.run)


def _address(task: Task, new: NewTask) -> NewTask:
    """Return a message to a task: the context is inferred from the task (A2A 1.0 §3.4.3), which keeps its owner."""
    ids = {"taskId": task.public_id, "contextId": task.context.public_id}
    message = {**msgspec.json.decode(new.message), **ids}
    scope = OwnerScope(task.tenant, task.owner, task.agent)
    return replace(new, id=task.public_id, message=write(message).decode(), scope=scope)


def _record(task: Task, new: NewTask) -> tuple[list[LogEvent], int]:
    """Write the message, after the question that it answers; return the events, and the number of the message."""
    waited = TaskState(task.state) in INTERRUPTED
    if waited and task.status_message:
        _keep_question(task)
    recorded = [event_log.record(task, EventKind.INPUT, new.message, role=new.role)]
    if waited:
        recorded.append(event_log.change_state(task, TaskState.WORKING, at=new.at))
    Context.objects.filter(pk=task.context_id).update(updated_at=Now())
    return recorded, recorded[0].number


class _OpenQuestion(NamedTuple):
    """The call whose question stands in its parent, its child, which is locked, and the parent's run."""

    call: Delegation
    child: Task
    turn: int


def _find_open_question(task: Task) -> _OpenQuestion | None:
    """Return the call whose question stands in a locked task. Raises TaskNotWaiting if it was answered elsewhere."""
    call = list_relayed(task).first()
    if call is None:
        return None
    if (child := event_log.lock_task(pk=call.child_id)) is not None:
        call.child = child
    if child is None or not still_asks(call):
        raise TaskNotWaiting("The question was answered already")
    turns = Run.objects.filter(task=task, input_number=call.input_number)
    return _OpenQuestion(call, child, turns.values_list("pk", flat=True)[0])


def _find_hidden(task: Task) -> _OpenQuestion | None:
    """Return the call whose question stood in a locked task, before the task said again that it works."""
    try:
        return _find_open_question(task)
    except TaskNotWaiting:
        return None  # the message is one like others


def _read_question(task: Task) -> str:
    """Return the question of a task, which is hidden in it if it is one of a task that it has called."""
    while hides_question(task):
        task = list_relayed(task)[0].child
    return task.status_message


def _pass_down(asked: _OpenQuestion, new: NewTask) -> _ReplyEffects:
    """Give the answer to the task that has asked, and return what it became there; its parent goes on waiting."""
    child = asked.child
    failpoint("call.answering")
    Delegation.objects.filter(pk=asked.call.pk).update(relayed=None)
    passes_on = ASKED_BY in child.status_message or hides_question(child)
    deeper = _find_open_question(child) if passes_on else None
    before = Run.objects.filter(task=child).latest("pk")
    new = replace(
        _address(child, new),
        queue=before.queue,
        quota_key=before.quota_key,
        request=_note_sender(before.request, new),
        ordered=before.ordered_in is not None,
        companions=(),
        lease=None,
        detail={"via": msgspec.json.decode(asked.call.path)},
    )
    recorded, number = _record(child, new)
    _note(new)
    taken = _pass_down(deeper, new) if deeper else _ReplyEffects([], create_run(child, number, new))
    return _ReplyEffects([(child.pk, recorded), *taken.recorded], taken.run)


def _note_sender(request: str, new: NewTask) -> str:
    """Return the data of the request before with the sender of this message: the owner, or an operator."""
    by_operator = new.answers is not None and new.answers.by_operator
    return write({**msgspec.json.decode(request or "{}"), "by_operator": by_operator}).decode()


def _count_unfinished(task: Task) -> int:
    """Count the unfinished runs of a locked task. Raises RateLimited if there are A2A_MAX_UNFINISHED_PER_TASK."""
    limit = int(conf.MAX_UNFINISHED_PER_TASK)
    unfinished = Run.objects.filter(task=task, status__in=[RunStatus.RUNNING, RunStatus.QUEUED])
    found = len(unfinished.values_list("pk")[: limit or 1])
    if limit and found >= limit:
        raise RateLimited(f"{found} messages to the task are unfinished", retry_after=RETRY_SECONDS)
    return found


def _keep_question(task: Task) -> None:
    """Add the agent's question to the history, before its answer, as `lifecycle.fold` does."""
    Message.objects.create(
        task=task,
        number=find_question(task) or task.last_event,
        role=Role.AGENT,
        body=task.status_message,
        created_at=task.status_at,
    )


def _refuse(task: Task | None, new: NewTask) -> None:
    if task is None:
        raise TaskNotFound(taskId=new.id)
    if new.answers:
        _refuse_late(task, new.answers)
    if new.question and new.question != find_question(task):
        raise TaskNotWaiting("The task does not ask this, or not any more", taskId=new.id)
    if new.context_id and new.context_id != task.context.public_id:
        raise ContextMismatch.field("message.contextId", "is not the context of the task")
    reopened = new.reopens and DIALECTS[task.origin_dialect].features.reopens
    if TaskState(task.state) in TERMINAL and not reopened:
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
    form = find_form(_decode(question))
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
            audit.note(new.answers.action, new.id, scope=new.scope, detail=new.detail)
        return
    about: dict[str, Any] = {"request": new.request_id, "detail": new.detail}
    by = new.principal or new.scope.principal
    audit.note(Action.TASK_SEND, new.id, scope=new.scope, actor=by, **about)


def _make_claimed(task: Task, run: Run, new: NewTask) -> ClaimedRun | None:
    if new.lease is None:
        return None
    return ClaimedRun(
        key=run.pk,
        token=new.lease.token,
        requested_at=new.lease.requested_at,
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
        quota_key=new.quota_key,
        ordered=new.ordered,
        artifacts=list_artifacts(task.pk),
    )
