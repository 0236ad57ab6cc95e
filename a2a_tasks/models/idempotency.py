"""Keys of requests that may be repeated: written with the message, deleted after `A2A_IDEMPOTENCY_HOURS`."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class Idempotency(models.Model):
    """One request of one caller. Only requests with a key have a row."""

    tenant = models.CharField(max_length=256, blank=True, default="")
    owner = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64)
    #: `key/` and the header's value, or `message/` and a digest (protocol/idempotency.py).
    name = models.CharField("key", max_length=264)
    #: Digest of the request; a different one under the same key is a conflict.
    fingerprint = models.CharField(max_length=64)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="+")
    #: The newest event when the message had been accepted: its answer begins after this event.
    number = models.IntegerField()
    #: The run that answers the message.
    run = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "idempotency keys"
        constraints = [
            models.UniqueConstraint(
                fields=["name", "agent", "owner", "tenant"],
                name="idempotency_key_is_unique_per_owner",
            )
        ]
        indexes = [
            models.Index("created_at", name="idempotency_age"),  # for `forget_idempotency`
            models.Index("owner", name="idempotency_owner"),  # for erasure
        ]

    def __str__(self) -> str:
        return self.name
