"""Retention of the audit log: the oldest entries go with their links, and an entry and a seal say up to where.

The log can only lose its beginning. What is left begins after a link whose seal stays, and has an entry of the removal
itself, so verification holds, and nobody can pass off another beginning.
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
    """Remove entries from before a moment, about `limit` in one transaction; yields how many went.

    Removal ends at seals, so a piece may be larger. The newest seal always stays with what it sealed.
    """
    while (through := _through(before, limit)) is not None:
        yield _remove(through)


def _through(before: datetime.datetime, limit: int) -> int | None:
    """The number of the seal up to which the next piece goes; None = nothing is old enough."""
    first = AuditLink.objects.order_by("pk").values_list("pk", flat=True).first()
    if first is None:
        return None
    # A seal is made after its entries: none of those is younger.
    old = AuditSeal.objects.filter(pk__gte=first, at__lt=before)
    newest = AuditSeal.objects.order_by("-pk").values("pk")[:1]
    numbers = old.exclude(pk__in=newest).order_by("pk").values_list("pk", flat=True)
    within = numbers.filter(pk__lt=first + limit).last()
    return within if within is not None else numbers.first()


@transaction.atomic
def _remove(through: int) -> int:
    """Remove everything up to a sealed link, but its seal. What says so is sealed before anything is gone."""
    audit.note(Action.AUDIT_PURGE, str(through))
    audit_seals.seal_all()
    gone = AuditLink.objects.filter(pk__lte=through)
    with unlock():
        AuditEntry.objects.filter(pk__in=gone.values("entry_id")).delete()
        count, _ = gone.delete()
        AuditSeal.objects.filter(pk__lt=through).delete()
    return count
