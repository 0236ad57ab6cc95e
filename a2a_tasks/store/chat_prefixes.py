"""Conversations whose history the client keeps: found by the digest of the history, and moved on with each message."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, Subquery
from django.db.models.functions import Now

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import ChatPrefix, Task
from a2a_tasks.protocol.chats import ChatPlace
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.scoping import reaches

__all__ = [
    "REPEAT_SECONDS",
    "FoundChat",
    "PlaceTaken",
    "find_chats_batched",
    "keep_place",
    "move_batched",
]

#: Seconds in which the same message may be the repetition of one that was accepted.
REPEAT_SECONDS = 60.0
NEWEST = ("-updated_at", "-pk")
#: The columns of a conversation's task.
COLUMNS = ("public_id", "state", "tenant", "agent", "owner", "maker", "context__public_id")


class PlaceTaken(Exception):
    """Another message has continued the conversation at this moment; nothing was written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundChat:
    """A conversation, with its last task."""

    row: int
    digest: str
    task_id: str
    context_id: str
    state: TaskState
    #: The number of the event after which the answer to its last message begins.
    number: int
    #: True if its last message may be repeated.
    recent: bool


def find_chats(asked: Sequence[tuple[OwnerScope, Collection[str]]]) -> list[list[FoundChat]]:
    """Return, for each scope and its digests, the newest conversation that has come to each of them.

    The others are not read: a great many may begin with the same words and the same answer.
    """
    oldest = Now() - datetime.timedelta(seconds=REPEAT_SECONDS)
    recent = ExpressionWrapper(Q(updated_at__gt=oldest), output_field=BooleanField())
    newest: list[Any] = [
        Subquery(ChatPrefix.objects.filter(digest=name).order_by(*NEWEST).values("pk")[:1])
        for name in sorted({name for _, digests in asked for name in digests})
    ]
    columns = ("digest", "number", *(f"task__{name}" for name in COLUMNS))
    rows = ChatPrefix.objects.filter(pk__in=newest).select_related("task__context")
    found = {row.digest: row for row in rows.annotate(recent=recent).only(*columns)}
    return [
        [
            _make(found[name])
            for name in digests
            if name in found and reaches(scope, found[name].task)
        ]
        for scope, digests in asked
    ]


def _make(row: ChatPrefix) -> FoundChat:
    return FoundChat(
        row=row.pk,
        digest=row.digest,
        task_id=row.task.public_id,
        context_id=row.task.context.public_id,
        state=TaskState(row.task.state),
        number=row.number,
        recent=row.recent,  # type: ignore[attr-defined]  # annotated
    )


#: `await find_chats_batched((scope, digests))`: find in one query with other look-ups.
find_chats_batched: BatchedCall[tuple[OwnerScope, Collection[str]], list[FoundChat]] = BatchedCall(
    lambda asked: list(find_chats(asked)), again=needs_no_mark
)


def keep_place(place: ChatPlace, *, begins: bool) -> Companion:
    """Return a function that stores the place of a message, in the accepting transaction. It raises PlaceTaken.

    `begins`: the message begins a task, whose first event it is.
    """
    return functools.partial(_keep, place, begins)


def _keep(place: ChatPlace, begins: bool, task: int) -> None:
    last = Task.objects.filter(pk=task).values_list("last_event", flat=True)
    about = {"digest": place.asked, "task_id": task, "number": 1 if begins else last.get()}
    if not place.row:
        ChatPrefix.objects.create(**about)
    elif not ChatPrefix.objects.filter(pk=place.row, digest=place.before).update(
        **about, updated_at=Now()
    ):
        raise PlaceTaken


@transaction.atomic
def _move(moves: Sequence[tuple[str, str, str]]) -> list[None]:
    for task_id, before, digest in moves:
        rows = ChatPrefix.objects.filter(digest=before, task__public_id=task_id)
        rows.update(digest=digest, updated_at=Now())
    return [None] * len(moves)


#: `await move_batched((task, before, digest))`: move the conversation of a task from one digest on to another.
move_batched: BatchedCall[tuple[str, str, str], None] = BatchedCall(
    lambda moves: list(_move(sorted(moves))), again=needs_no_mark
)
