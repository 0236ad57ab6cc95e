"""Everything the tables have of one principal: found, told, and erased (decision 113)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q, QuerySet

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
)
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.store.tenancy import within

__all__ = ["Principal"]

#: Tasks taken at once.
SLICE = 500
#: Begins the principal of an API key.
KEY = "key:"
#: Begins the principal of one of Django's users.
USER = "user:"


@dataclass(frozen=True, slots=True)
class Principal:
    """Whose data, and in which tenant (with those below it); None = in all of them."""

    name: str
    tenant: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("Nobody in particular has no data of their own")

    def tasks(self) -> QuerySet[Task]:
        """Its tasks, the oldest first."""
        own = Q(owner=self.name) | Q(maker=self.name)  # in its own drawer, and in its tenant's
        return Task.objects.filter(own, self._within()).order_by("pk")

    def contexts(self) -> QuerySet[Context]:
        """Its contexts."""
        return Context.objects.filter(self._within(), owner=self.name).order_by("pk")

    def repeats(self) -> QuerySet[Idempotency]:
        """The requests it made that may come again, at whosever tasks."""
        return Idempotency.objects.filter(self._within(), owner=self.name)

    def runs(self) -> QuerySet[Run]:
        """Runs at tasks that are shared, whose request may name it."""
        shared = Run.objects.filter(self._within("task__"), task__owner=TENANTS)
        return shared.filter(request__contains=write(self.name).decode()).order_by("pk")

    def lost_files(self) -> QuerySet[StoredFile]:
        """Its files that no task has, or has any more."""
        return StoredFile.objects.filter(self._within(), owner=self.name, task=None)

    def keys(self) -> QuerySet[ApiKey]:
        """The API key that it is, if it is one."""
        found = ApiKey.objects.filter(prefix=self.prefix) if self.prefix else ApiKey.objects.none()
        return found.filter(self._within())

    def grants(self) -> QuerySet[Grant]:
        """What was granted to it alone."""
        return Grant.objects.filter(grantee=self.name)

    def entries(self) -> QuerySet[AuditEntry]:
        """Entries of the audit log by it or about it."""
        about = Q(object__in=self.names)
        if self.prefix:
            about |= Q(object=self.prefix, action__startswith="key.")
        found = Q(actor__in=self.names) | about
        return AuditEntry.objects.filter(self._within(), found).order_by("pk")

    @property
    def names(self) -> list[str]:
        """What it is called in the audit log: one of Django's users is there as staff, too."""
        key = self.name.removeprefix(USER)
        return [self.name] if key == self.name else [self.name, staff(key)]

    @property
    def prefix(self) -> str:
        """The prefix of the API key that it is; empty = it is none."""
        return self.name.removeprefix(KEY) if self.name.startswith(KEY) else ""

    def slices(self) -> Iterator[list[int]]:
        """The keys of its tasks, some at a time; tasks may go meanwhile."""
        last = 0
        while keys := _keys(self.tasks().filter(pk__gt=last)):
            yield keys
            last = keys[-1]

    def _within(self, at: str = "") -> Q:
        if self.tenant is None:
            return Q()
        return within([self.tenant], f"{at}tenant")


def _keys(rows: QuerySet[Task]) -> list[int]:
    return list(rows.values_list("pk", flat=True)[:SLICE])
