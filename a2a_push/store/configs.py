"""The webhooks of tasks: writes, reads and deletions. Functions are synchronous, one transaction each.

No function returns secrets except `unseal_secrets` and `with_secrets`, which are for sending.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import msgspec
from django.core import signing
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from a2a_push.keyring import origin
from a2a_push.models import Delivery, DeliveryStatus, PushConfig
from a2a_push.store.cursor import begin_late, freeze_unsent
from a2a_push.store.presence import note_one_more
from a2a_push.store.receivers import receiver_of
from a2a_tasks import pubsub, sealing
from a2a_tasks.audit import Action
from a2a_tasks.caller import TENANTS, OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.protocol import values
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import InvalidParams, RateLimited, TaskNotFound
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.requests import ListPushConfigsRequest
from a2a_tasks.protocol.values import PushConfigPage
from a2a_tasks.store import audit, sealed_columns, tasks
from a2a_tasks.store.tasks import key_of

__all__ = [
    "INLINE",
    "SECRETS",
    "create",
    "delete",
    "get",
    "move",
    "unseal_secrets",
    "page",
    "put",
    "to_value",
    "with_secrets",
]

#: The path of the webhook in a message.
INLINE = "configuration.taskPushNotificationConfig"

#: Columns of a webhook with values of the client.
REGISTERED = ("dialect", "url", "receiver_id", "schemes", "secret")
#: The reason of cancelled deliveries.
CANCEL_REASON = "the webhook was deleted"
#: Retry-After for a caller with too many webhooks, in seconds.
LATER = "60"
#: The event with which a task begins: a webhook that comes with the first message misses nothing.
FIRST_EVENT = 1
#: The column of the sealed secrets.
SECRETS = sealed_columns.Column("secrets of webhooks", PushConfig, "secret")


class _Secret(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The secrets of a webhook, sealed as one text."""

    token: str = ""
    credentials: str = ""
    headers: dict[str, str] = {}


_secret = msgspec.json.Decoder(_Secret).decode
_schemes = msgspec.json.Decoder(tuple[str, ...]).decode


class ConfigNotFound(TaskNotFound):
    """The task exists, but not the webhook (A2A 1.0 §3.1.8 has no error of its own for it)."""


@transaction.atomic
def create(scope: OwnerScope, config: values.PushConfig) -> values.PushConfig:
    """Register a webhook, or replace the one with its id, and return it as clients see it.

    Raises TaskNotFound, InvalidParams if the task has the maximum number, RateLimited if its creator has.
    """
    put(_lock_task(scope, config.task_id), config, scope.principal)
    return values.replace(config, token="", credentials="", headers=_names(config))


def put(task: int, config: values.PushConfig, by: str | None = None) -> None:
    """Register or replace a webhook like `create`, for a task whose row the transaction has locked or created.

    A new webhook of a task that has begun gets the Task first, then later events: for an ended task, none. The actor in the audit log is `by`, or else the creator
    of the task.
    """
    mine = PushConfig.objects.filter(task_id=task)
    now = tasks.read_status(task)
    actor = now.created_by if by is None else by
    columns = _columns(config) | {"receiver_id": receiver_of(now.scope.tenant, config.url)}
    if _replace(mine.filter(public_id=config.id), columns, now.last_event):
        _note(Action.WEBHOOK_REPLACE, now, config, actor)
        hint = pubsub.Committed(task, now.last_event)
        transaction.on_commit(functools.partial(pubsub.publish, hint))
        return
    if mine.count() >= conf.MAX_PUSH_CONFIGS:
        raise _too_many(config.path)
    limit = int(conf.MAX_PUSH_CONFIGS_PER_CALLER)
    if limit:
        # Of tasks that the caller has created: its own, and those shared in its tenant.
        own, shared = Q(task__owner=now.created_by), Q(task__created_by=now.created_by)
        made = own | shared & Q(task__owner=TENANTS)
        if PushConfig.objects.filter(made, active=True).count() >= limit:
            raise RateLimited("Too many of your webhooks are active", retry_after=LATER)
    columns |= {"cursor": now.last_event, "looked": now.last_event, "active": not now.ended}
    row = PushConfig.objects.create(task_id=task, public_id=config.id, **columns)
    if now.last_event > FIRST_EVENT and begin_late(row):
        PushConfig.objects.filter(pk=row.pk).update(active=True, due_at=Now())
        hint = pubsub.Committed(task, now.last_event)
        transaction.on_commit(functools.partial(pubsub.publish, hint))
    _note(Action.WEBHOOK_CREATE, now, config, actor)
    note_one_more()


def _note(action: Action, task: tasks.TaskStatusRow, config: values.PushConfig, actor: str) -> None:
    """Write the audit entry, with the origin of the URL only: its path and query may be secret."""
    detail = {"config": config.id, "to": origin(config.url)}
    audit.note(action, task.public_id, scope=task.scope, actor=actor, detail=detail)


def _replace(old: QuerySet[PushConfig], columns: dict[str, Any], last_event: int) -> bool:
    """Replace a webhook, if it exists. Pending notifications go to the new URL; without any, that begins with the Task.

    If the receiver changes, the lease is revoked and the delivery under way is sent again.
    """
    row = old.select_for_update().first()
    if row is None:
        return False
    pending = Delivery.objects.filter(config=row, status=DeliveryStatus.PENDING)
    if row.url != columns["url"] and row.cursor > FIRST_EVENT and not pending.exists():
        row.dialect = columns["dialect"]
        if begin_late(row, columns["url"]):
            columns |= {"cursor": last_event, "looked": last_event, "active": True, "due_at": Now()}
    if row.receiver_id != columns["receiver_id"]:
        columns |= {"token": "", "lease_until": None, "due_at": Now()}
    old.update(disabled_reason="", **_changes(row, columns))
    return True


def _changes(row: PushConfig, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns to write. An unchanged secret keeps its sealed text, so that texts can be compared."""
    try:
        same = sealing.unseal(row.secret) == sealing.unseal(columns["secret"])
    except sealing.Unsealable:
        same = False
    return {name: value for name, value in columns.items() if not (same and name == "secret")}


def _too_many(path: str) -> InvalidParams:
    limit = f"a task may have at most {conf.MAX_PUSH_CONFIGS} push notification configs"
    return InvalidParams.field(path or "id", f"would be one more: {limit}")


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


def get(scope: OwnerScope, task_id: str, config_id: str = "") -> values.PushConfig:
    """Return one webhook; without an id the one named like its task, else the oldest. Raises TaskNotFound, ConfigNotFound."""
    mine = _of(scope, task_id)
    named = config_id or task_id
    row = None if "\x00" in named else mine.filter(public_id=named).first()
    if row is None and not config_id:
        row = mine.first()
    if row is None:
        raise ConfigNotFound("The task has no such push notification config", taskId=task_id)
    return _to_client_value(row, task_id)


def page(scope: OwnerScope, request: ListPushConfigsRequest) -> PushConfigPage:
    """Return a page of a task's webhooks, oldest first. Raises TaskNotFound, and InvalidParams for a foreign token."""
    mine = _after(_of(scope, request.task_id), scope, request)
    rows = list(mine[: request.page_size + 1])
    here = rows[: request.page_size]
    more = len(rows) > len(here)
    return PushConfigPage(
        configs=[_to_client_value(row, request.task_id) for row in here],
        next_page_token=_signer(scope, request).sign_object(here[-1].pk) if more else "",
    )


@transaction.atomic
def delete(scope: OwnerScope, task_id: str, config_id: str) -> None:
    """Delete a webhook, if it exists. Raises TaskNotFound for the task.

    Pending deliveries are cancelled; requests under way may still arrive.
    """
    mine = PushConfig.objects.filter(task_id=_lock_task(scope, task_id))
    if "\x00" in config_id:
        return
    which = mine.filter(public_id=config_id)
    keys = list(which.order_by("pk").select_for_update().values_list("pk", flat=True))
    pending = Delivery.objects.filter(config__in=keys, status=DeliveryStatus.PENDING)
    pending.update(
        status=DeliveryStatus.CANCELLED, next_at=None, settled_at=Now(), reason=CANCEL_REASON
    )
    if PushConfig.objects.filter(pk__in=keys).delete()[0]:
        audit.note(
            Action.WEBHOOK_DELETE,
            task_id,
            scope=scope,
            actor=scope.principal,
            detail={"config": config_id},
        )


@transaction.atomic
def move(old: int, new: int) -> None:
    """Move the webhooks of a task to its successor. The transaction has locked both tasks.

    A webhook of the successor with the same id replaces the moved one. Unsent events of the old task come before those
    of the new one. Raises InvalidParams if the successor, with its own webhooks from a message, has too many.
    """
    mine = PushConfig.objects.filter(task_id=old).select_related("receiver", "task__context")
    going = list(mine.order_by("pk").select_for_update(of=("self",)))
    if not going:
        return
    own = {config.public_id: config for config in PushConfig.objects.filter(task_id=new)}
    successor = tasks.read_status(new)
    for config in going:
        freeze_unsent(config, successor.public_id)
        _begin_anew(config, new, own.pop(config.public_id, None))
    note_one_more()
    if len(own) + len(going) > conf.MAX_PUSH_CONFIGS and own:
        raise _too_many(INLINE)


def _begin_anew(config: PushConfig, task: int, replacement: PushConfig | None) -> None:
    """Move a webhook to the beginning of another task, with the columns of `replacement` if that exists."""
    columns: dict[str, Any] = {"task_id": task, "cursor": 0, "looked": 0, "active": True}
    columns["due_at"] = Now()
    if replacement is not None:
        elsewhere = replacement.receiver_id != config.receiver_id
        columns |= {"token": "", "lease_until": None} if elsewhere else {}
        registered = {name: getattr(replacement, name) for name in REGISTERED}
        columns |= _changes(config, registered)
        columns["disabled_reason"] = ""
        replacement.delete()
    PushConfig.objects.filter(pk=config.pk).update(**columns)


def with_secrets(task: int) -> list[tuple[int, values.PushConfig]]:
    """Return the webhooks of a task with keys and secrets, oldest first, for sending. Raises sealing.Unsealable."""
    rows = PushConfig.objects.filter(task_id=task).select_related("task")
    return [(row.pk, unseal_secrets(to_value(row, row.task.public_id), row.secret)) for row in rows]


def _lock_task(scope: OwnerScope, task_id: str) -> int:
    """Return the key of a task, locked until the transaction ends. Raises TaskNotFound."""
    # Two queries: while the first one waited for the row, a successor may have taken over its id.
    task = key_of(scope, task_id, lock=True) or key_of(scope, task_id, lock=True)
    if task is None:
        raise TaskNotFound(taskId=task_id)
    return task


def _of(scope: OwnerScope, task_id: str) -> QuerySet[PushConfig]:
    task = key_of(scope, task_id)
    if task is None:
        raise TaskNotFound(taskId=task_id)
    return PushConfig.objects.filter(task_id=task)


def to_value(row: PushConfig, task_id: str) -> values.PushConfig:
    """Return the value of a webhook, without its secrets."""
    return values.PushConfig(
        url=row.url,
        id=row.public_id,
        task_id=task_id,
        schemes=_schemes(row.schemes),
        dialect=row.dialect,
    )


def _to_client_value(row: PushConfig, task_id: str) -> values.PushConfig:
    """Return the config for its client; a seed-0 webhook includes the names of its headers."""
    config = to_value(row, task_id)
    if row.secret and DIALECTS[row.dialect].names_headers:
        with contextlib.suppress(sealing.Unsealable):
            return values.replace(config, headers=_names(unseal_secrets(config, row.secret)))
    return config


def _names(config: values.PushConfig) -> dict[str, str]:
    """Return the names of the headers, with empty values."""
    return dict.fromkeys(config.headers if DIALECTS[config.dialect].names_headers else (), "")


def unseal_secrets(config: values.PushConfig, secrets: str) -> values.PushConfig:
    """Return the config with its secrets, for sending. Raises sealing.Unsealable."""
    secret = _secret(sealing.unseal(secrets) or "{}")
    return values.replace(
        config,
        token=secret.token,
        credentials=secret.credentials,
        headers=secret.headers,
    )


def _signer(scope: OwnerScope, request: ListPushConfigsRequest) -> signing.Signer:
    salt = f"a2a.push-page/{scope.tenant}/{scope.owner}/{scope.agent}/{request.task_id}"
    return signing.Signer(salt=salt)


def _after(
    mine: QuerySet[PushConfig], scope: OwnerScope, request: ListPushConfigsRequest
) -> QuerySet[PushConfig]:
    if not request.page_token:
        return mine
    try:
        last = int(_signer(scope, request).unsign_object(request.page_token))
    except (signing.BadSignature, ValueError, TypeError):
        raise InvalidParams.field("pageToken", "is not a token of this list") from None
    return mine.filter(pk__gt=last)
