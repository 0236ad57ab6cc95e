"""The ledger of usage: one row for each report of an agent about its calls of models."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

__all__ = ["Usage"]


class Usage(models.Model):
    """One report. It is written once, stays when its task is removed, and changes only by erasure of a person (docs/decisions/0034)."""

    #: Made by the process that reports. It identifies a repeated write.
    report = models.UUIDField(unique=True)
    #: The key of the task, without a constraint.
    task = models.BigIntegerField()
    #: Id of the task and of its context for clients; empty if the task was gone already.
    task_id = models.CharField("task", max_length=256, blank=True, default="")
    context_id = models.CharField("context", max_length=256, blank=True, default="")
    tenant = models.CharField(max_length=256, blank=True, default="")
    #: The owner of the task's scope; `caller.TENANTS` if the tenant shares the task.
    owner = models.CharField(max_length=256, blank=True, default="")
    #: The principal whose message the agent answered.
    caller = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64)
    run = models.BigIntegerField()
    attempt = models.IntegerField()
    #: Name of the step in which it was reported; empty = in none.
    step = models.CharField(max_length=200, blank=True, default="")
    model = models.CharField(max_length=200)
    requests = models.BigIntegerField()
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    #: The part of the input tokens that the model had in its cache.
    cached_tokens = models.BigIntegerField()
    #: The part of them that the model has written to its cache.
    cache_write_tokens = models.BigIntegerField(default=0, db_default=0)
    #: Null = unknown.
    cost = models.DecimalField(max_digits=24, decimal_places=12, null=True, blank=True)
    #: The currency of the cost; empty = the cost is unknown. `XXX`: the row was copied from an earlier version.
    currency = models.CharField(max_length=3, blank=True, default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "usage"
        indexes = [
            models.Index("task", name="usage_task"),
            models.Index("at", name="usage_at"),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.input_tokens} + {self.output_tokens} tokens"
