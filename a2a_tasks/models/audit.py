"""The audit log: entries as they were written, their links in a chain, and seals on it (decision 20).

Rows are only ever added. A trigger refuses changes and deletions, except for retention and erasure.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class AuditEntry(models.Model):
    """One audited action, written in the transaction that performed it."""

    created_at = models.DateTimeField(db_default=Now())
    tenant = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64, blank=True, default="")
    #: A principal, `staff:<user>` or `system:<what>`; empty = anonymous.
    actor = models.CharField(max_length=256, blank=True, default="")
    #: One of `a2a_tasks.audit.Action`, which describes `object`.
    action = models.CharField(max_length=32)
    object = models.CharField(max_length=512, blank=True, default="")
    outcome = models.CharField(max_length=16, default="done")
    #: JSON: a few numbers and names; no content, no secrets.
    detail = models.TextField(blank=True, default="")
    #: The id of the request, if the client or the proxy gave it one.
    request = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [models.Index("object", "id", name="audit_object")]

    def __str__(self) -> str:
        return f"{self.action} {self.object}"


class AuditLink(models.Model):
    """An entry's place in the chain."""

    number = models.BigIntegerField(primary_key=True)
    entry = models.OneToOneField(
        AuditEntry, on_delete=models.DO_NOTHING, related_name="link", db_constraint=False
    )
    #: The salts of the commitments to actor and object; after their text was removed, the commitments.
    actor_salt = models.CharField(max_length=65)
    object_salt = models.CharField(max_length=65)
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.number} {self.hash}"


class AuditSeal(models.Model):
    """A signature on the chain up to a link, by a key that is not in the database. It outlives the sealed entries."""

    #: Number of the last sealed link.
    number = models.BigIntegerField(primary_key=True)
    hash = models.CharField(max_length=64)
    mac = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    #: The highest number of an entry that any seal has seen, and the first transaction (PostgreSQL's xid8) that had not
    #: begun when the entries were read.
    newest = models.BigIntegerField()
    horizon = models.BigIntegerField()
    #: The entry up to which all entries are certainly sealed.
    floor = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.number} {self.hash}"
