"""A principal's data as documents, for the person it is about: messages, answers, and all related rows."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from a2a_console.audit.reading import rows as audit_rows
from a2a_console.privacy.principal import Principal, walk
from a2a_push.models import Delivery, PushConfig
from a2a_tasks.audit import Action
from a2a_tasks.conversation_changes import ValueKind
from a2a_tasks.models import (
    Artifact,
    AuditEntry,
    ConversationItem,
    ConversationMemory,
    Event,
    Message,
    RunLine,
    Task,
)
from a2a_tasks.store import audit

__all__ = ["documents", "note_export"]

Document = Mapping[str, Any]
#: The number of rows that are read at once, where each may have a megabyte.
FEW = 8


def documents(principal: Principal) -> Iterator[tuple[str, Iterator[Document]]]:
    """Yield the documents, kind by kind, read in slices. None contains secrets."""
    yield "contexts", _columns(principal.contexts(), "public_id", "agent", "tenant", "created_at")
    yield "memory", _read_documents(principal.contexts(), _memory)
    yield "items", _read_documents(principal.contexts(), _items)
    for name, tell in KEPT.items():
        yield name, _read_documents(principal.tasks(), tell)
    yield "usage", _columns(principal.usage(), *USAGE)
    yield "keys", _columns(principal.keys(), *KEY)
    yield "audit", _read_documents(principal.entries(), _entries)


def note_export(principal: Principal, counts: Mapping[str, int]) -> None:
    """Record the export in the audit log."""
    with transaction.atomic():
        audit.note(Action.PRIVACY_EXPORT, principal.name, detail=counts)


def _read_documents(
    rows: QuerySet[Any], tell: Callable[[Collection[int]], Iterable[Document]]
) -> Iterator[Document]:
    for keys in walk(rows):
        yield from tell(keys)


def _columns(rows: QuerySet[Any], *names: str) -> Iterator[Document]:
    for keys in walk(rows):
        yield from rows.model.objects.filter(pk__in=keys).order_by("pk").values(*names)


def _memory(contexts: Collection[int]) -> Iterator[Document]:
    rows = ConversationMemory.objects.filter(context__in=contexts).order_by("context_id", "key")
    columns = ("context__public_id", "context__agent", "key", "kind", "value", "updated_at")
    for context, agent, key, kind, value, at in rows.values_list(*columns).iterator(FEW):
        where = {"context": context, "agent": agent, "key": key, "kind": kind, "at": at}
        yield {**where, **_value(kind, bytes(value))}


def _value(kind: str, value: bytes) -> Document:
    match kind:
        case ValueKind.JSON:
            return {"value": msgspec.Raw(value)}
        case ValueKind.TEXT:
            return {"value": value.decode()}
        case _:
            return {"base64": base64.b64encode(value).decode()}


def _items(contexts: Collection[int]) -> Iterator[Document]:
    rows = ConversationItem.objects.filter(list__context__in=contexts)
    rows = rows.order_by("list_id", "number")
    columns = ("list__context__public_id", "list__context__agent", "list__key", "number")
    for context, agent, key, number, at, value in rows.values_list(
        *columns, "created_at", "value"
    ).iterator(FEW):
        where = {"context": context, "agent": agent, "key": key, "number": number, "at": at}
        yield {**where, "item": _body(value)}


def _tasks(keys: Collection[int]) -> Iterator[Document]:
    columns = ("public_id", "agent", "tenant", "state", "status_at", "created_at")
    rows = Task.objects.filter(pk__in=keys).select_related("context").order_by("pk")
    for row in rows.iterator(FEW):
        values = {name: getattr(row, name) for name in columns}
        bodies = {
            name: _body(getattr(row, name)) for name in ("status_message", "metadata", "memory")
        }
        yield values | {"context": row.context.public_id} | bodies


def _messages(keys: Collection[int]) -> Iterator[Document]:
    yield from _bodies(Message.objects.filter(task__in=keys), "message")


def _events(keys: Collection[int]) -> Iterator[Document]:
    yield from _bodies(Event.objects.filter(task__in=keys), "event")


def _bodies(rows: QuerySet[Any], what: str) -> Iterator[Document]:
    columns = ("task__public_id", "number", "created_at", "body")
    for task, number, at, body in (
        rows.order_by("task_id", "number").values_list(*columns).iterator(FEW)
    ):
        yield {"task": task, "number": number, "at": at, what: _body(body)}


def _artifacts(keys: Collection[int]) -> Iterator[Document]:
    rows = Artifact.objects.filter(task__in=keys).order_by("task_id", "position")
    columns = ("task__public_id", "position", "body")
    for task, position, body in rows.values_list(*columns).iterator(FEW):
        yield {"task": task, "position": position, "artifact": _body(body)}


def _lines(keys: Collection[int]) -> Iterator[Document]:
    rows = RunLine.objects.filter(run__task__in=keys).order_by("run_id", "number")
    columns = ("run__task__public_id", "run_id", "at", "level", "logger", "text")
    for task, run, at, level, logger, text in rows.values_list(*columns).iterator():
        yield {"task": task, "run": run, "at": at, "level": level, "logger": logger, "text": text}


def _webhooks(tasks: Collection[int]) -> Iterator[Document]:
    """Yield the webhooks of these tasks, without secrets, and with URLs without their query."""
    rows = PushConfig.objects.filter(task__in=tasks).select_related("task", "receiver")
    for row in rows.defer("secret").order_by("pk").iterator():
        yield {
            "task": row.task.public_id,
            "id": row.public_id,
            "to": row.receiver.address,
            "schemes": row.schemes,
            "registered": row.created_at,
        }


def _deliveries(tasks: Collection[int]) -> Iterator[Document]:
    """Yield the deliveries of these tasks with their results, without bodies, which are the tasks' own events."""
    rows = Delivery.objects.filter(task__in=tasks).select_related("task", "receiver")
    for row in rows.defer("body").order_by("pk").iterator():
        yield {
            "task": row.task.public_id,
            "id": row.webhook_id,
            "to": row.receiver.address,
            "events": [row.number, row.through],
            "status": row.status,
            "made": row.created_at,
            "settled": row.settled_at,
        }


def _entries(keys: Collection[int]) -> Iterator[Document]:
    yield from audit_rows(AuditEntry.objects.filter(pk__in=keys))


def _body(text: str) -> msgspec.Raw | None:
    """Return the stored JSON; None for an empty text, whose content is in the messages or events, if anywhere."""
    return msgspec.Raw(text.encode()) if text else None


#: The documents about a principal's tasks, kind by kind.
KEPT: Mapping[str, Callable[[Collection[int]], Iterable[Document]]] = {
    "tasks": _tasks,
    "messages": _messages,
    "artifacts": _artifacts,
    "events": _events,
    "lines": _lines,
    "webhooks": _webhooks,
    "deliveries": _deliveries,
}
#: The exported columns of a report of usage.
USAGE = (
    *("at", "task_id", "context_id", "tenant", "agent", "model", "requests", "input_tokens"),
    *("output_tokens", "cached_tokens", "cache_write_tokens", "cost", "currency"),
)
#: The exported columns of an API key.
KEY = (
    *("prefix", "name", "tenant", "scopes"),
    *("created_at", "expires_at", "revoked_at", "last_used_at"),
)
