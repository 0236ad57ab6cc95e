"""The rows of one principal in all tables, for export and erasure (docs/decisions/0020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from a2a_console.sparse_index import use_nothing_else
from a2a_tasks.audit import staff
from a2a_tasks.caller import TENANTS
from a2a_tasks.models import (
    ApiKey,
    AuditEntry,
    Context,
    Grant,
    Idempotency,
    Run,
    StoredFile,
    Task,
    Usage,
)
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.store.tenancy import within

__all__ = ["Principal", "walk"]

#: The number of rows in a slice, and of keys that are read at once: a search for a rare name may read a whole table.
SLICE, KEYS = 500, 50_000
#: The prefix of the principal of an API key.
KEY = "key:"
#: The prefix of the principal of a Django user.
USER = "user:"


@dataclass(frozen=True, slots=True)
class Principal:
    """A principal, in one tenant (with those below it) or in all of them (None)."""

    name: str
    tenant: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("Anonymous callers have no data of their own")

    def tasks(self) -> QuerySet[Task]:
        """Return its tasks, oldest first."""
        own = Q(owner=self.name) | Q(created_by=self.name)  # its own, and shared ones
        return Task.objects.filter(own, self._within()).order_by("pk")

    def contexts(self) -> QuerySet[Context]:
        """Return the contexts of the principal."""
        return Context.objects.filter(self._within(), owner=self.name).order_by("pk")

    def repeats(self) -> QuerySet[Idempotency]:
        """Return the idempotency records of its requests, about any tasks."""
        return Idempotency.objects.filter(self._within(), owner=self.name)

    def runs(self) -> QuerySet[Run]:
        """Return the runs of shared tasks whose request may name it."""
        shared = Run.objects.filter(self._within("task__"), task__owner=TENANTS)
        return shared.filter(request__contains=write(self.name).decode()).order_by("pk")

    def find_lost_files(self) -> QuerySet[StoredFile]:
        """Return its files that belong to no task (any more)."""
        return StoredFile.objects.filter(self._within(), owner=self.name, task=None)

    def usage(self) -> QuerySet[Usage]:
        """Return the reports of usage for its tasks, and for its messages to tasks of others."""
        named = Q(owner=self.name) | Q(caller=self.name)
        return Usage.objects.filter(self._within(), named).order_by("pk")

    def keys(self) -> QuerySet[ApiKey]:
        """Return the API key if the principal is one."""
        found = ApiKey.objects.filter(prefix=self.prefix) if self.prefix else ApiKey.objects.none()
        return found.filter(self._within())

    def grants(self) -> QuerySet[Grant]:
        """Return the grants to it alone."""
        return Grant.objects.filter(grantee=self.name)

    def entries(self) -> QuerySet[AuditEntry]:
        """Return the entries of the audit log by it or about it."""
        about = Q(object__in=self.names)
        if self.prefix:
            about |= Q(object=self.prefix, action__startswith="key.")
        found = Q(actor__in=self.names) | about
        return AuditEntry.objects.filter(self._within(), found).order_by("pk")

    @property
    def names(self) -> list[str]:
        """The names of the principal in the audit log: a Django user also appears as staff."""
        key = self.name.removeprefix(USER)
        return [self.name] if key == self.name else [self.name, staff(key)]

    @property
    def prefix(self) -> str:
        """The prefix of the API key; empty = the principal is no key."""
        return self.name.removeprefix(KEY) if self.name.startswith(KEY) else ""

    def slices(self) -> Iterator[list[int]]:
        """Yield the primary keys of its tasks in slices; tasks may be deleted meanwhile."""
        return walk(self.tasks())

    def _within(self, at: str = "") -> Q:
        if self.tenant is None:
            return Q()
        return within([self.tenant], f"{at}tenant")


def walk(rows: QuerySet[Any]) -> Iterator[list[int]]:
    """Yield the primary keys of the rows in slices, oldest first; the rows may change or go meanwhile.

    A slice that began anew would search what those before it have searched.
    """
    keys, last = rows.order_by("pk").values_list("pk", flat=True), 0
    while found := _read(keys.filter(pk__gt=last)):
        yield from (found[start : start + SLICE] for start in range(0, len(found), SLICE))
        last = found[-1]


def _read(keys: Any) -> list[int]:
    with use_nothing_else():
        return list(keys[:KEYS])
