"""Notices of cancelled tasks that no process was working on: their agents may want to clean up."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

__all__ = ["CancelNotice"]


class CancelNotice(models.Model):
    """A task that was cancelled while it waited. The process that removes the row calls the agent's `cancelled`, once."""

    #: The key of the newest run of the task, without a constraint.
    run = models.BigIntegerField()
    agent = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index("agent", "id", name="cancel_notice_agent"),  # for `take`
            models.Index("at", name="cancel_notice_age"),  # for `forget_old`
        ]

    def __str__(self) -> str:
        return f"run {self.run} of {self.agent}"
