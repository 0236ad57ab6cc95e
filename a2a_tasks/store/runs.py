"""Runs in the table: claim, heartbeat, hand back, rescue. All time is the database's (law 4)."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Collection, Sequence

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from a2a_tasks import wakeups
from a2a_tasks.caller import Scope
from a2a_tasks.models import Message, Run, RunStatus, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log
from a2a_tasks.store.records import Assignment
from a2a_tasks.store.tasks import open_artifacts

__all__ = ["claim", "hand_back", "heartbeat", "new_token", "rescue"]

#: Runs taken or rescued in one transaction.
BATCH = 100


def new_token() -> str:
    """A token for one acquisition; never a worker's name, which would outlive it."""
    return secrets.token_urlsafe(18)


def _lease(seconds: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=seconds)


@transaction.atomic
def claim(
    queues: Sequence[str], *, worker: str, limit: int, lease_seconds: float
) -> list[Assignment]:
    """Take up to `limit` due runs for this process, oldest first, one of a task at a time."""
    earlier = Run.objects.filter(
        task=OuterRef("task"),
        pk__lt=OuterRef("pk"),
        status__in=[RunStatus.QUEUED, RunStatus.RUNNING],
    )
    due = (
        Run.objects.filter(status=RunStatus.QUEUED, queue__in=queues, due_at__lte=Now())
        .exclude(Exists(earlier))
        .order_by("pk")
    )
    if connection.vendor == "postgresql":
        # Both rows or neither: whoever cancels holds the task and waits for the run, so we must not wait.
        due = due.select_related("task").select_for_update(skip_locked=True, of=("self", "task"))
    return [
        taken
        for run in due[: min(limit, BATCH)]
        if (taken := _take(run, worker, lease_seconds)) is not None
    ]


def _take(run: Run, worker: str, lease_seconds: float) -> Assignment | None:
    """Hold the run, and the task for it; a task that has ended meanwhile needs no run."""
    token = new_token()
    open_ = Task.objects.filter(pk=run.task_id).exclude(state__in=TERMINAL)
    if not open_.update(run_token=token):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.DROPPED, ended_at=Now())
        return None
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING,
        attempt=F("attempt") + 1,
        token=token,
        worker=worker,
        lease_seconds=lease_seconds,
        lease_until=Now() + _lease(lease_seconds),
        started_at=Now(),
    )
    task = Task.objects.select_related("context").get(pk=run.task_id)
    message = Message.objects.get(task_id=task.pk, number=run.input_number)
    return Assignment(
        run=run.pk,
        token=token,
        attempt=run.attempt + 1,
        task=task.pk,
        scope=Scope(task.tenant, task.owner, task.agent),
        task_id=task.public_id,
        context_id=task.context.public_id,
        state=TaskState(task.state),
        is_task=task.is_task,
        last_event=task.last_event,
        input_number=run.input_number,
        input=message.body,
        request=run.request,
        memory=task.memory,
        artifacts=open_artifacts(task.pk),
    )


def heartbeat(tokens: Collection[str]) -> set[str]:
    """Extend the leases of these tokens, each by its own row's length; returns those that still hold."""
    held = Run.objects.filter(status=RunStatus.RUNNING, token__in=tokens)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "update a2a_tasks_run set lease_until = clock_timestamp() "
                "+ make_interval(secs => lease_seconds) "
                "where status = 'running' and token = any(%s) returning token",
                [list(tokens)],
            )
            return {token for (token,) in cursor.fetchall()}
    for seconds in set(held.values_list("lease_seconds", flat=True)):
        held.filter(lease_seconds=seconds).update(lease_until=Now() + _lease(seconds))
    return set(held.values_list("token", flat=True))


@transaction.atomic
def hand_back(tokens: Collection[str]) -> None:
    """Give runs back untried, because this process stops: somebody else starts them at once."""
    for token in tokens:
        if Task.objects.filter(run_token=token).update(run_token=""):
            Run.objects.filter(token=token, status=RunStatus.RUNNING).update(
                status=RunStatus.QUEUED,
                token="",
                lease_until=None,
                attempt=F("attempt") - 1,
            )


def rescue(*, max_attempts: int) -> int:
    """Take runs whose lease has ended from their dead process; returns how many.

    They are queued again, or after `max_attempts` their task fails, visibly.
    """
    announcements = _rescue(max_attempts)
    for hint in announcements:
        wakeups.announce(hint)
    return len(announcements)


@transaction.atomic
def _rescue(max_attempts: int) -> list[wakeups.Hint]:
    lost = Run.objects.filter(status=RunStatus.RUNNING, lease_until__lt=Now()).order_by("pk")
    hints: list[wakeups.Hint] = []
    for key, task in lost.values_list("pk", "task_id")[:BATCH]:
        hint = _rescue_one(key, task, max_attempts)
        if hint is not None:
            hints.append(hint)
    return hints


def _rescue_one(key: int, task_key: int, max_attempts: int) -> wakeups.Hint | None:
    task = log.locked(pk=task_key)  # every writer of the run waits for this row
    run = Run.objects.filter(Q(pk=key, status=RunStatus.RUNNING, lease_until__lt=Now())).first()
    if task is None or run is None:
        return None  # it beat again, or somebody was quicker
    task.run_token = ""
    if run.attempt >= max_attempts:
        return wakeups.Committed(task.pk, task.last_event + 1, [_give_up(task, run)])
    task.save(update_fields=["run_token"])
    Run.objects.filter(pk=key).update(
        status=RunStatus.QUEUED, token="", lease_until=None, due_at=Now()
    )
    return wakeups.Due(run.queue)


def _give_up(task: Task, run: Run) -> Recorded:
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.FAILED,
        token="",
        lease_until=None,
        ended_at=Now(),
        error=f"The process running the agent died {run.attempt} times (last: {run.worker}).",
    )
    said = write(
        {
            "messageId": secrets.token_hex(16),
            "taskId": task.public_id,
            "contextId": task.context.public_id,
            "role": "ROLE_AGENT",
            "parts": [{"text": f"The agent was interrupted {run.attempt} times and was given up."}],
        }
    ).decode()
    return log.change_state(task, TaskState.FAILED, at=log.now(), message=said)
