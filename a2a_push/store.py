"""Webhooks of tasks: written, read and taken away. Functions are synchronous, one transaction each.

Secrets go in and do not come out, except by `with_secrets`, which is for sending.
"""

from __future__ import annotations

from typing import Any

import msgspec
from django.core import signing
from django.db import transaction
from django.db.models import QuerySet

from a2a_push import sealing
from a2a_push.models import PushConfig
from a2a_tasks.caller import Scope
from a2a_tasks.conf import conf
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.requests import ListPushConfigsRequest
from a2a_tasks.protocol.values import PushConfigPage
from a2a_tasks.store.tasks import key_of

__all__ = ["INLINE", "create", "delete", "get", "move", "page", "put", "reseal", "with_secrets"]

#: Where a message has its webhook.
INLINE = "configuration.taskPushNotificationConfig"

#: Rows resealed in one go.
SLICE = 500


class _Secret(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is sealed together."""

    token: str = ""
    credentials: str = ""
    headers: dict[str, str] = {}


_secret = msgspec.json.Decoder(_Secret).decode
_schemes = msgspec.json.Decoder(tuple[str, ...]).decode


class ConfigNotFound(TaskNotFound):
    """The task is there, the webhook is not (A2A 1.0 §3.1.8 has no error of its own for it)."""


@transaction.atomic
def create(scope: Scope, config: values.PushConfig) -> values.PushConfig:
    """Register a webhook, or replace the one of that id, and return it as clients see it.

    Raises TaskNotFound, and InvalidParams if the task has as many as it may have.
    """
    put(_held(scope, config.task_id), config)
    return values.replace(config, token="", credentials="", headers={})


def put(task: int, config: values.PushConfig) -> None:
    """The same beside a task whose row the transaction holds, or has made."""
    mine = PushConfig.objects.filter(task_id=task)
    columns = _columns(config)
    if mine.filter(public_id=config.id).update(**columns):
        return
    if mine.count() >= conf.MAX_PUSH_CONFIGS:
        raise _too_many(config.path)
    PushConfig.objects.create(task_id=task, public_id=config.id, **columns)


def _too_many(path: str) -> InvalidParams:
    most = f"a task may have at most {conf.MAX_PUSH_CONFIGS} push notification configs"
    return InvalidParams.field(path or "id", f"would be one more: {most}")


def _columns(config: values.PushConfig) -> dict[str, Any]:
    secret = _Secret(
        token=config.token, credentials=config.credentials, headers=dict(config.headers)
    )
    return {
        "dialect": config.dialect,
        "url": config.url,
        "schemes": write(config.schemes).decode(),
        "secret": sealing.seal(write(secret).decode()) if secret != _Secret() else "",
    }


def get(scope: Scope, task_id: str, config_id: str = "") -> values.PushConfig:
    """One webhook; without an id that which is named as its task, else the oldest. Raises TaskNotFound, ConfigNotFound."""
    mine = _of(scope, task_id)
    row = _named(mine, config_id or task_id)
    if row is None and not config_id:
        row = mine.first()
    if row is None:
        raise ConfigNotFound("The task has no such push notification config", taskId=task_id)
    return _shown(row, task_id)


def page(scope: Scope, request: ListPushConfigsRequest) -> PushConfigPage:
    """One page of a task's webhooks, oldest first. Raises TaskNotFound, and InvalidParams for a foreign token."""
    mine = _after(_of(scope, request.task_id), scope, request)
    rows = list(mine[: request.page_size + 1])
    shown = rows[: request.page_size]
    more = len(rows) > len(shown)
    return PushConfigPage(
        configs=[_shown(row, request.task_id) for row in shown],
        next_page_token=signing.dumps(shown[-1].pk, salt=_salt(scope, request)) if more else "",
    )


@transaction.atomic
def delete(scope: Scope, task_id: str, config_id: str) -> None:
    """Take a webhook away; one that is not there is away already. Raises TaskNotFound for the task."""
    mine = PushConfig.objects.filter(task_id=_held(scope, task_id))
    if "\x00" not in config_id:
        mine.filter(public_id=config_id).delete()


@transaction.atomic
def move(old: int, new: int) -> None:
    """Take the webhooks of a task to its successor, whose own go first. The transaction holds both tasks.

    Raises InvalidParams if with its own, which came with a message, there are too many.
    """
    mine = PushConfig.objects.filter(task_id=old)
    own = list(PushConfig.objects.filter(task_id=new).values_list("public_id", flat=True))
    mine.filter(public_id__in=own).delete()
    if mine.update(task_id=new) + len(own) > conf.MAX_PUSH_CONFIGS and own:
        raise _too_many(INLINE)


def with_secrets(task: int) -> list[tuple[int, values.PushConfig]]:
    """The webhooks of a task with their keys, oldest first, ready to be sent to. Raises sealing.Unreadable."""
    rows = PushConfig.objects.filter(task_id=task).select_related("task")
    return [(row.pk, _opened(row)) for row in rows]


def reseal() -> tuple[int, int]:
    """Seal every secret with the newest key. Returns how many were, and how many no key opens."""
    done = unreadable = last = 0
    sealed = PushConfig.objects.exclude(secret="").order_by("pk").values_list("pk", "secret")
    while rows := list(sealed.filter(pk__gt=last)[:SLICE]):
        for last, secret in rows:
            try:
                fresh = sealing.resealed(secret)
            except sealing.Unreadable:
                unreadable += 1
                continue
            # One that was replaced meanwhile is sealed with the newest key already.
            done += PushConfig.objects.filter(pk=last, secret=secret).update(secret=fresh)
    return done, unreadable


def _held(scope: Scope, task_id: str) -> int:
    """The key of a task that nobody changes before the transaction ends. Raises TaskNotFound."""
    # Asked twice: while the first waited for the row, its id may have gone to a successor.
    task = key_of(scope, task_id, lock=True) or key_of(scope, task_id, lock=True)
    if task is None:
        raise TaskNotFound(taskId=task_id)
    return task


def _of(scope: Scope, task_id: str) -> QuerySet[PushConfig]:
    task = key_of(scope, task_id)
    if task is None:
        raise TaskNotFound(taskId=task_id)
    return PushConfig.objects.filter(task_id=task)


def _named(mine: QuerySet[PushConfig], config_id: str) -> PushConfig | None:
    return None if "\x00" in config_id else mine.filter(public_id=config_id).first()


def _shown(row: PushConfig, task_id: str) -> values.PushConfig:
    return values.PushConfig(
        url=row.url,
        id=row.public_id,
        task_id=task_id,
        schemes=_schemes(row.schemes),
        dialect=row.dialect,
    )


def _opened(row: PushConfig) -> values.PushConfig:
    secret = _secret(sealing.opened(row.secret) or "{}")
    return values.replace(
        _shown(row, row.task.public_id),
        token=secret.token,
        credentials=secret.credentials,
        headers=secret.headers,
    )


def _salt(scope: Scope, request: ListPushConfigsRequest) -> str:
    return f"a2a.push-page/{scope.tenant}/{scope.owner}/{scope.agent}/{request.task_id}"


def _after(
    mine: QuerySet[PushConfig], scope: Scope, request: ListPushConfigsRequest
) -> QuerySet[PushConfig]:
    if not request.page_token:
        return mine
    try:
        last = int(signing.loads(request.page_token, salt=_salt(scope, request)))
    except (signing.BadSignature, ValueError, TypeError):
        raise InvalidParams.field("pageToken", "is not a token of this list") from None
    return mine.filter(pk__gt=last)
