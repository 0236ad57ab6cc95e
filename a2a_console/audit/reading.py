"""The export of the audit log: entries in the order of their numbers, with their links in the chain."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from a2a_tasks.audit import Action
from a2a_tasks.audit.chain import moment
from a2a_tasks.models import AuditEntry, AuditLink
from a2a_tasks.store import audit

__all__ = ["EntryFilter", "export", "rows"]

#: The number of entries that are read at once.
SLICE = 1000


@dataclass(frozen=True, kw_only=True)
class EntryFilter:
    """A filter of entries; an empty field does not narrow."""

    tenant: str = ""
    actor: str = ""
    #: The name of an action, or its beginning up to the dot: `webhook`.
    action: str = ""
    object: str = ""
    agent: str = ""
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    def entries(self) -> QuerySet[AuditEntry]:
        """Return the entries, oldest first."""
        same = {
            name: getattr(self, name)
            for name in ("tenant", "actor", "object", "agent")
            if getattr(self, name)
        }
        found = AuditEntry.objects.filter(**same).order_by("pk")
        if self.action:
            exact = {"action": self.action}
            found = found.filter(
                **exact if "." in self.action else {"action__startswith": f"{self.action}."}
            )
        found = found.filter(created_at__gte=self.since) if self.since else found
        return found.filter(created_at__lt=self.until) if self.until else found


def export(wanted: EntryFilter) -> Iterator[Mapping[str, Any]]:
    """Return these entries like `rows`, and record the export in the audit log."""
    filters = {field.name: str(getattr(wanted, field.name)) for field in fields(wanted)}
    with transaction.atomic():
        audit.note(
            Action.AUDIT_EXPORT, detail={k: v for k, v in filters.items() if v not in {"", "None"}}
        )
    return rows(wanted.entries())


def rows(entries: QuerySet[AuditEntry]) -> Iterator[Mapping[str, Any]]:
    """Yield these entries as JSON objects, with number, hash and salts of their links once they are sealed."""
    last = 0
    while found := list(entries.order_by("pk").filter(pk__gt=last)[:SLICE]):
        links = AuditLink.objects.filter(entry__in=[row.pk for row in found])
        sealed = {link.entry_id: link for link in links}
        for row in found:
            yield _make_record(row, sealed.get(row.pk))
        last = found[-1].pk


def _make_record(row: AuditEntry, link: AuditLink | None) -> Mapping[str, Any]:
    names = ("tenant", "agent", "actor", "action", "object", "outcome", "detail", "request")
    entry = {"id": row.pk, "at": moment(row.created_at)}
    entry |= {name: getattr(row, name) for name in names}
    if link is None:
        return entry
    chain = ("number", "actor_salt", "object_salt", "hash")
    return entry | {name: getattr(link, name) for name in chain}
