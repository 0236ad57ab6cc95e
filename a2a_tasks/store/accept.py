"""Acceptance of messages that begin tasks: one statement writes context, task, message, event 1 and run of each."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError, transaction

from a2a_tasks import pubsub
from a2a_tasks.failpoints import failpoint
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.batched_call import BatchedCall, one_by_one
from a2a_tasks.store.behind import look_again
from a2a_tasks.store.db import is_away, run_to_completion
from a2a_tasks.store.records import (
    Accepted,
    ClaimedRun,
    InsertedTask,
    NewTask,
    PlaceTaken,
    TaskExists,
    new_view,
)

__all__ = ["accept", "accept_many", "accept_batched", "begin"]


def accept(new: NewTask) -> Accepted:
    """Write a new task with its first message and run. With a hold, this process holds the run at once.

    Raises TaskExists if the owner already has a task of that id, PlaceTaken if its place in a chat is not free any more.
    """
    (result,) = accept_many([new])
    if isinstance(result, Exception):
        raise result
    return result


def accept_many(news: Sequence[NewTask]) -> list[Accepted | Exception]:
    """Write many new tasks, as `accept` does; a failure of one does not affect the others."""
    failpoint("accept.before")
    try:
        inserted = _insert(news)
    except Exception as fault:
        if is_away(fault):
            raise  # this affects all of them; otherwise one cannot be written, and the others can
        if len(news) == 1:
            return [TaskExists(str(fault)) if isinstance(fault, IntegrityError) else fault]
        return one_by_one(accept_many, news)
    failpoint("accept.committed")
    for queue in {new.queue for new in news if new.lease is None}:
        pubsub.publish(pubsub.RunQueued(queue))
    for keys in inserted:
        if keys and keys.behind:
            look_again(keys.run)
    failpoint("accept.announced")
    pairs = zip(news, inserted, strict=True)
    return [_make_accepted(new, keys) if keys else PlaceTaken() for new, keys in pairs]


#: `await accept_batched(new)`: accept in one flush with other new tasks.
accept_batched = BatchedCall(
    accept_many,
    run=run_to_completion,
    size=lambda new: len(new.message) + len(new.request),
)


def begin(new: NewTask) -> Accepted:
    """Write a new task in the open transaction, without an announcement."""
    (keys,) = _insert([new])
    if keys is None:
        raise PlaceTaken
    return _make_accepted(new, keys)


def _insert(news: Sequence[NewTask]) -> list[InsertedTask | None]:
    if not any(new.companions for new in news):
        return backend().insert_tasks(news)
    with transaction.atomic():
        keys = backend().insert_tasks(news)
        pairs = zip(news, keys, strict=True)
        for new, inserted in sorted(pairs, key=lambda pair: pair[0].lock):
            if inserted:
                new.accompany(inserted.task)
        failpoint("accept.accompanied")
    return keys


def _make_accepted(new: NewTask, keys: InsertedTask) -> Accepted:
    return Accepted(
        task=keys.task,
        number=1,
        run=keys.run,
        view=new_view(new),
        claimed_run=_make_claimed(new, keys.task, keys.run),
    )


def _make_claimed(new: NewTask, task: int, run: int) -> ClaimedRun | None:
    if new.lease is None:
        return None
    return ClaimedRun(
        key=run,
        token=new.lease.token,
        requested_at=new.lease.requested_at,
        attempt=1,
        task=task,
        scope=new.scope,
        task_id=new.id,
        context_id=new.context_id,
        state=TaskState.SUBMITTED,
        is_task=new.is_task,
        last_event=1,
        input_number=1,
        input=new.message,
        request=new.request,
        memory="",
        quota_key=new.quota_key,
        ordered=new.ordered,
    )
