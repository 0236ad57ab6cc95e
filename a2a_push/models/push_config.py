"""Push configs: followers of the event log, each with a cursor in its row."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from a2a_push.models.receiver import Receiver


class PushConfig(models.Model):
    """A webhook for one task's events. It keeps its key when it is replaced: its deliveries refer to it.

    The process that holds `token` until `lease_until` (database clock) may send for it.
    """

    task = models.ForeignKey(
        "a2a_tasks.Task", on_delete=models.CASCADE, related_name="push_configs", db_index=False
    )
    public_id = models.CharField("config id", max_length=256)
    #: Code of the dialect that registered it; its notifications are written in it.
    dialect = models.CharField(max_length=8)
    url = models.TextField("URL")
    receiver = models.ForeignKey(Receiver, on_delete=models.PROTECT, related_name="configs")
    #: Authentication schemes, a list as JSON.
    schemes = models.TextField(blank=True, default="[]")
    #: Token, credentials and headers, as JSON, sealed (a2a_tasks/sealing.py); empty = none.
    secret = models.TextField(blank=True, default="", editable=False)
    #: Number of the last settled event: all events up to it were delivered, or are dead with their attempts.
    cursor = models.IntegerField(default=0, db_default=0)
    #: Number of the newest event at the last search; no work is due before there is a newer one.
    looked = models.IntegerField(default=0, db_default=0)
    #: False once its task has ended and all is settled: then the sweep skips it.
    active = models.BooleanField(default=True, db_default=True)
    #: Time of the next search, even without new events; null = when there are events.
    due_at = models.DateTimeField(null=True, blank=True)
    token = models.CharField(max_length=40, blank=True, default="", db_default="", editable=False)
    lease_until = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=128, blank=True, default="", db_default="")
    #: The reason why it is disabled; empty = it is not disabled.
    disabled_reason = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "webhook"
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "public_id"], name="push_config_id_is_unique_per_task"
            ),
            models.CheckConstraint(
                condition=Q(token="", lease_until__isnull=True)
                | ~Q(token="") & Q(lease_until__isnull=False),
                name="a_held_push_config_has_token_and_lease",
            ),
        ]
        indexes = [
            models.Index("id", name="push_config_active", condition=Q(active=True)),  # the sweep
        ]

    def __str__(self) -> str:
        return self.public_id
