"""Exceptions from retention: legal holds, and tenants with a retention of their own."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class HoldKind(models.TextChoices):
    """Kinds of objects that a legal hold can cover."""

    TENANT = "tenant"  #: everything of a tenant, also below it (`acme` holds `acme/eu`)
    PRINCIPAL = "principal"  #: everything of a principal
    CONTEXT = "context"  #: the tasks of contexts with this id
    TASK = "task"  #: tasks with this id


class Hold(models.Model):
    """A legal hold: its objects are not purged or erased until it is released. Rows stay as a record of past holds."""

    kind = models.CharField("on", max_length=16, choices=HoldKind.choices)
    #: Name of the tenant, the principal, the context or the task. The tenant is empty on a host without tenants.
    name = models.CharField(max_length=256, blank=True, default="")
    reason = models.CharField(max_length=500)
    by = models.CharField(max_length=256, editable=False)
    created_at = models.DateTimeField("since", db_default=Now(), editable=False)
    released_at = models.DateTimeField(null=True, editable=False)
    released_by = models.CharField(max_length=256, blank=True, default="", editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "name"],
                condition=Q(released_at__isnull=True),
                name="held_once_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class TenantRetention(models.Model):
    """The retention of one tenant's tasks, in place of A2A_RETENTION_DAYS."""

    tenant = models.CharField(max_length=256, unique=True, blank=True, default="")
    days = models.FloatField(help_text="Days for which a task is kept after its end; 0 = for ever.")

    class Meta:
        verbose_name = "retention of a tenant"
        verbose_name_plural = "retention of tenants"
        constraints = [
            models.CheckConstraint(condition=Q(days__gte=0), name="days_are_not_negative")
        ]

    def __str__(self) -> str:
        return self.tenant or "the host's only tenant"
