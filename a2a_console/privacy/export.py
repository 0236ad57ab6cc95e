"""A principal's data as documents, for the person it is about: messages, answers, and all related rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from a2a_console.audit.reading import rows as audit_rows
from a2a_console.privacy.principal import Principal
from a2a_console.privacy.webhooks import deliveries, webhooks
from a2a_tasks.audit import Action
from a2a_tasks.models import Artifact, Event, Message, RunLine, Task
from a2a_tasks.store import audit

__all__ = ["documents", "note_export"]

Document = Mapping[str, Any]


def documents(principal: Principal) -> Iterator[tuple[str, Iterator[Document]]]:
    """Yield the documents, kind by kind, read in slices. None contains secrets."""
    yield "contexts", _columns(principal.contexts(), "public_id", "agent", "tenant", "created_at")
    for name, tell in KEPT.items():
        yield name, _read_documents(principal, tell)
    yield "keys", _columns(principal.keys(), *KEY)
    yield "audit", iter(audit_rows(principal.entries()))


def note_export(principal: Principal, counts: Mapping[str, int]) -> None:
    """Record the export in the audit log."""
    with transaction.atomic():
        audit.note(Action.PRIVACY_EXPORT, principal.name, detail=counts)


def _read_documents(
    principal: Principal, tell: Callable[[Collection[int]], Iterable[Document]]
) -> Iterator[Document]:
    for keys in principal.slices():
        yield from tell(keys)


def _columns(rows: QuerySet[Any], *names: str) -> Iterator[Document]:
    yield from rows.order_by("pk").values(*names).iterator()


def _tasks(keys: Collection[int]) -> Iterator[Document]:
    columns = ("public_id", "agent", "tenant", "state", "status_at", "created_at")
    rows = Task.objects.filter(pk__in=keys).select_related("context").order_by("pk")
    for row in rows:
        values = {name: getattr(row, name) for name in columns}
        bodies = {
            name: _body(getattr(row, name)) for name in ("status_message", "metadata", "memory")
        }
        yield values | {"context": row.context.public_id} | bodies


def _messages(keys: Collection[int]) -> Iterator[Document]:
    rows = Message.objects.filter(task__in=keys).order_by("task_id", "number")
    for task, number, at, body in rows.values_list(
        "task__public_id", "number", "created_at", "body"
    ).iterator():
        yield {"task": task, "number": number, "at": at, "message": _body(body)}


def _artifacts(keys: Collection[int]) -> Iterator[Document]:
    rows = Artifact.objects.filter(task__in=keys).order_by("task_id", "position")
    for task, position, body in rows.values_list("task__public_id", "position", "body").iterator():
        yield {"task": task, "position": position, "artifact": _body(body)}


def _events(keys: Collection[int]) -> Iterator[Document]:
    rows = Event.objects.filter(task__in=keys).order_by("task_id", "number")
    for task, number, at, body in rows.values_list(
        "task__public_id", "number", "created_at", "body"
    ).iterator():
        yield {"task": task, "number": number, "at": at, "event": _body(body)}


def _lines(keys: Collection[int]) -> Iterator[Document]:
    rows = RunLine.objects.filter(run__task__in=keys).order_by("run_id", "number")
    columns = ("run__task__public_id", "run_id", "at", "level", "logger", "text")
    for task, run, at, level, logger, text in rows.values_list(*columns).iterator():
        yield {"task": task, "run": run, "at": at, "level": level, "logger": logger, "text": text}


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
    "webhooks": webhooks,
    "deliveries": deliveries,
}
#: The exported columns of an API key.
KEY = (
    "prefix",
    "name",
    "tenant",
    "scopes",
    "created_at",
    "expires_at",
    "revoked_at",
    "last_used_at",
)
