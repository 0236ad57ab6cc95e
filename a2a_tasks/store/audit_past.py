"""Retention of the audit log: the oldest entries are removed with their links; an entry and a seal record the limit.

Only the beginning of the log can be removed. The rest begins after a link whose seal stays, and contains an entry about
the removal, so that verification still succeeds and a forged beginning is detected.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from django.db import transaction

from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.store import audit, audit_seals
from a2a_tasks.store.audit_triggers import unlock

__all__ = ["purge_audit"]


def purge_audit(before: datetime.datetime, limit: int) -> Iterator[int]:
    """Remove entries from before a time, about `limit` in one transaction; yield the number of each transaction.

    Removal ends at seals, so that a transaction may remove more. The newest seal and its entries always stay.
    """
    while (through := _through(before, limit)) is not None:
        yield _remove(through)


def _through(before: datetime.datetime, limit: int) -> int | None:
    """Return the number of the seal up to which the next transaction removes entries; None = nothing is old enough."""
    first = AuditLink.objects.order_by("pk").values_list("pk", flat=True).first()
    if first is None:
        return None
    # A seal is never older than its entries.
    old = AuditSeal.objects.filter(pk__gte=first, at__lt=before)
    newest = AuditSeal.objects.order_by("-pk").values("pk")[:1]
    numbers = old.exclude(pk__in=newest).order_by("pk").values_list("pk", flat=True)
    within = numbers.filter(pk__lt=first + limit).last()
    return within if within is not None else numbers.first()


@transaction.atomic
def _remove(through: int) -> int:
    """Remove everything up to a sealed link, except its seal. The entry about it is sealed before the removal."""
    audit.note(Action.AUDIT_PURGE, str(through))
    audit_seals.seal_all()
    gone = AuditLink.objects.filter(pk__lte=through)
    with unlock():
        AuditEntry.objects.filter(pk__in=gone.values("entry_id")).delete()
        count, _ = gone.delete()
        AuditSeal.objects.filter(pk__lt=through).delete()
    return count
