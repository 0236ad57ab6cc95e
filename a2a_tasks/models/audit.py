"""The audit log: entries as they were written, their links in a chain, and seals on it (decision 112).

Rows are only ever added. A trigger refuses to change or delete them, but for retention and erasure.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class AuditEntry(models.Model):
    """Somebody did something, written in the transaction that did it."""

    created_at = models.DateTimeField(db_default=Now())
    tenant = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64, blank=True, default="")
    #: A principal, `staff:<user>` or `system:<what>`; empty = nobody vouched for it.
    actor = models.CharField(max_length=256, blank=True, default="")
    #: One of `a2a_tasks.audit.Action`, which says what `object` is.
    action = models.CharField(max_length=32)
    object = models.CharField(max_length=512, blank=True, default="")
    outcome = models.CharField(max_length=16, default="done")
    #: JSON: a few numbers and names; no content, no secrets.
    detail = models.TextField(blank=True, default="")
    #: The id of the request, where the client or the proxy gave it one.
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
    #: What actor and object are committed to with; when their text was taken out, the commitments.
    actor_salt = models.CharField(max_length=65)
    object_salt = models.CharField(max_length=65)
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.number} {self.hash}"


class AuditSeal(models.Model):
    """The chain up to a link, vouched for by a key that the database does not have. It outlives what it seals."""

    #: Of the last link sealed.
    number = models.BigIntegerField(primary_key=True)
    hash = models.CharField(max_length=64)
    mac = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    #: How far it looked for entries, and the first transaction (PostgreSQL's xid8) that began after it.
    newest = models.BigIntegerField()
    horizon = models.BigIntegerField()
    #: Up to which entry everything is sealed, for certain.
    floor = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.number} {self.hash}"
