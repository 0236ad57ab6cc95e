"""Secrets handed over by a page that works once: requested, stored with the message that resumes the task, read, wiped.

The table holds only the hash of a link's token, and the sealed secret, which includes its task (docs/decisions/0016).
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Max, Q
from django.db.models.functions import Now

from a2a_tasks import sealing
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import HandedSecret, Run, Task
from a2a_tasks.protocol.errors import TaskNotFound, TaskNotWaiting
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, event_log, sealed_columns
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.records import ClaimedRun, LeaseLost

__all__ = [
    "SECRETS",
    "SecretRequest",
    "Link",
    "UselessLink",
    "ask",
    "find",
    "keep_values",
    "read",
    "relink",
    "sweep",
    "wipe",
]

logger = logging.getLogger(__name__)
#: The column of the sealed secrets.
SECRETS = sealed_columns.Column("secrets that were handed over", HandedSecret, "sealed")
#: Bytes of a link's token.
TOKEN_BYTES = 32


class UselessLink(Exception):
    """The link was used, has expired, or never existed; the answer does not distinguish these."""


class Link(NamedTuple):
    """A link, returned once: it cannot be restored from the table."""

    token: str
    expires_at: datetime.datetime


class SecretRequest(NamedTuple):
    """A request for secrets, as the holder of its link sees it."""

    task: int
    agent: str
    names: tuple[str, ...]
    reason: str
    expires_at: datetime.datetime


def _hash(token: str) -> str:
    """Return the hash of a token. A token has 256 random bits and cannot be guessed, so that a fast hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def _lifetime() -> datetime.timedelta:
    return datetime.timedelta(seconds=float(conf.HANDOVER_SECONDS))


@transaction.atomic
def ask(run: ClaimedRun, names: Sequence[str], reason: str) -> Link | None:
    """Store a run's request for secrets, in place of an earlier request of its task. Raises LeaseLost if the task is lost.

    Returns None if they were handed over already, after an earlier attempt had requested them: the next run reads them.
    """
    task = event_log.lock_task(pk=run.task)
    if task is None or task.run_token != run.token:
        raise LeaseLost
    row = HandedSecret.objects.filter(task=task).first()
    if row is not None and row.sealed and (row.handed_in or 0) > run.input_number:
        return None
    link = _new_link()
    HandedSecret.objects.update_or_create(
        task=task,
        defaults={
            "names": json.dumps(names),
            "reason": reason,
            "asked_in": run.input_number,
            "sealed": "",
            "created_at": Now(),
            "handed_at": None,
            "handed_in": None,
            "taken_at": None,
            **_columns(link),
        },
    )
    _note(Action.SECRET_ASKED, task, names)
    return link


@transaction.atomic
def relink(task: int) -> Link:
    """Return a new link for a task's request; the link before becomes invalid. Raises TaskNotFound, TaskNotWaiting."""
    row = event_log.lock_task(pk=task)
    if row is None:
        raise TaskNotFound(taskId=str(task))
    request = HandedSecret.objects.filter(task=row, handed_at=None).first()
    if request is None or row.state != TaskState.AUTH_REQUIRED:
        raise TaskNotWaiting("The task does not wait for a secret")
    link = _new_link()
    HandedSecret.objects.filter(task=row).update(**_columns(link))
    _note(Action.SECRET_LINK, row, json.loads(request.names))
    return link


def _new_link() -> Link:
    return Link(secrets.token_urlsafe(TOKEN_BYTES), event_log.now() + _lifetime())


def _columns(link: Link) -> dict[str, Any]:
    return {"token_hash": _hash(link.token), "expires_at": link.expires_at}


def _note(action: Action, task: Task, names: Sequence[str]) -> None:
    scope = OwnerScope(task.tenant, task.owner, task.agent)
    audit.note(action, task.public_id, scope=scope, detail={"names": ", ".join(names)})


def _open(token: str) -> Q:
    """Return the condition for the request of a valid link; all invalid links are handled by one statement."""
    return Q(
        token_hash=_hash(token),
        handed_at=None,
        expires_at__gt=Now(),
        task__state=TaskState.AUTH_REQUIRED,
    )


def find(token: str) -> SecretRequest:
    """Return the request behind a link. Raises UselessLink."""
    columns = ("task_id", "task__agent", "names", "reason", "expires_at")
    row = HandedSecret.objects.filter(_open(token)).values_list(*columns).first()
    if row is None:
        raise UselessLink
    task, agent, names, reason, expires_at = row
    return SecretRequest(task, agent, tuple(json.loads(names)), reason, expires_at)


def keep_values(token: str, handed: Mapping[str, str]) -> Companion:
    """Return a function that stores the values, in the transaction of the message that resumes the task.

    It raises UselessLink, which rolls back the message.
    """
    return functools.partial(_keep, token, dict(handed))


def _keep(token: str, handed: Mapping[str, str], task: int) -> None:
    # The message has resumed the task already, and its row is locked: the state is not checked again.
    still = Q(task_id=task, token_hash=_hash(token), handed_at=None, expires_at__gt=Now())
    number = Run.objects.filter(task_id=task).aggregate(last=Max("input_number"))["last"]
    kept = HandedSecret.objects.filter(still).update(
        sealed=sealing.seal(json.dumps({"task": task, "handed": handed})),
        token_hash="",
        handed_at=Now(),
        handed_in=number,
        expires_at=event_log.now() + _lifetime(),
    )
    if not kept:
        raise UselessLink
    row = Task.objects.only("tenant", "owner", "agent", "public_id").get(pk=task)
    _note(Action.SECRET_HANDED, row, tuple(handed))


def read(run: ClaimedRun) -> dict[str, str]:
    """Return the secrets for this run's turn; empty if none were handed over, or they expired.

    Every attempt of the turn may read them.
    """
    rows = HandedSecret.objects.filter(
        task_id=run.task, handed_in=run.input_number, expires_at__gt=Now()
    ).exclude(sealed="")
    sealed = rows.filter(task__run_token=run.token).values_list("sealed", flat=True).first()
    if sealed is None:
        return {}
    rows.filter(taken_at=None).update(taken_at=Now())
    try:
        document = json.loads(sealing.unseal(sealed))
    except sealing.Unsealable:
        logger.warning("no key opens the secrets handed over for task %s", run.task_id)
        return {}
    return dict(document["handed"]) if document["task"] == run.task else {}


def wipe(task: int, handed_in: int | None = None) -> None:
    """Wipe the secrets of a turn that has ended, or all secrets and links of the task."""
    rows = HandedSecret.objects.filter(task_id=task)
    if handed_in is None:
        rows.update(sealed="", token_hash="")
    else:
        rows.filter(handed_in=handed_in).update(sealed="")


def sweep(limit: int) -> int:
    """Wipe expired secrets, and those of ended tasks, at most `limit`; return their number. 0 = there are no more."""
    over = Q(expires_at__lte=Now()) | Q(task__state__in=sorted(TERMINAL))
    keys = HandedSecret.objects.filter(over).exclude(sealed="").values_list("pk", flat=True)
    return HandedSecret.objects.filter(pk__in=list(keys[:limit])).update(sealed="", token_hash="")
