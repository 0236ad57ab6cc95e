"""Secrets handed over on a page that works once: requested by an agent, sealed, read by one turn, wiped."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class HandedSecret(models.Model):
    """The newest request of a task for secrets; earlier ones are deleted."""

    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, related_name="handed_secret"
    )
    #: The names of the requested secrets, as a JSON list.
    names = models.TextField()
    #: The agent's reason.
    reason = models.TextField(blank=True, default="")
    #: Number of the message whose turn asked.
    asked_in = models.IntegerField()
    #: SHA-256 of the link's token, in hex; empty = no link works.
    token_hash = models.CharField(max_length=64, blank=True, default="")
    #: The secrets, sealed (a2a_tasks/sealing.py); empty = none yet, or wiped.
    sealed = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    #: The expiry of the link; after the handover, the latest time for which the secrets are kept.
    expires_at = models.DateTimeField()
    handed_at = models.DateTimeField(null=True)
    #: Number of the message made from it: only its turn may read the secrets.
    handed_in = models.IntegerField(null=True)
    #: Time of the first read by an agent.
    taken_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["token_hash"],
                condition=~models.Q(token_hash=""),
                name="a_link_opens_one_task",
            )
        ]
        indexes = [
            models.Index("expires_at", name="secret_to_wipe", condition=~models.Q(sealed=""))
        ]

    def __str__(self) -> str:
        return f"task {self.task_id}"
