"""The table of webhooks. Only the store writes it."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class PushConfig(models.Model):
    """Where to tell of one task's events. Its key is kept when it is replaced: what was sent belongs to it."""

    task = models.ForeignKey(
        "a2a_tasks.Task", on_delete=models.CASCADE, related_name="push_configs", db_index=False
    )
    public_id = models.CharField("config id", max_length=256)
    #: Code of the dialect that registered it; its notifications are written in it.
    dialect = models.CharField(max_length=8)
    url = models.TextField("URL")
    #: Authentication schemes, a list as JSON.
    schemes = models.TextField(blank=True, default="[]")
    #: Token, credentials and headers, as JSON, sealed (a2a_push/sealing.py); empty = there are none.
    secret = models.TextField(blank=True, default="", editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "public_id"], name="push_config_id_is_unique_per_task"
            )
        ]

    def __str__(self) -> str:
        return self.public_id
