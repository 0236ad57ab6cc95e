"""Secrets handed over by a page that works once: asked for by an agent, sealed, read by one turn, wiped."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class HandedSecret(models.Model):
    """What a task asked to be handed over last; of what came before nothing is left."""

    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, related_name="handed_secret"
    )
    #: The names of what is asked for, as a JSON list.
    names = models.TextField()
    #: Why, in the agent's words.
    reason = models.TextField(blank=True, default="")
    #: Number of the message whose turn asked.
    asked_in = models.IntegerField()
    #: SHA-256 of the link's token, in hex; empty = no link works.
    token_hash = models.CharField(max_length=64, blank=True, default="")
    #: What was handed over, sealed (a2a_tasks/sealing.py); empty = nothing yet, or it was wiped.
    sealed = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    #: Until then the link works; once handed over, so long the secret is kept at the most.
    expires_at = models.DateTimeField()
    handed_at = models.DateTimeField(null=True)
    #: Number of the message that came of it: its turn, and no other, may read.
    handed_in = models.IntegerField(null=True)
    #: When an agent read it first.
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
