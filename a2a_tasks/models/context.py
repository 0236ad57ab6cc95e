"""Contexts: groups of the tasks of one conversation (A2A 1.0 §3.4.1)."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Context(models.Model):
    """A conversation of one owner with one agent. The client may choose its public id."""

    tenant = models.CharField(max_length=256, blank=True, default="")
    owner = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64)
    public_id = models.CharField("context id", max_length=256)
    #: The version of the agent that it began with, if the agent has several; empty = that of the host's own code;
    #: null = it began when there were none.
    version = models.CharField(max_length=32, null=True, blank=True)  # noqa: DJ001 - null and empty differ
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["public_id", "agent", "owner", "tenant"],
                name="context_id_is_unique_per_owner",
            )
        ]
        indexes = [models.Index("owner", name="context_owner")]  # for export and erasure

    def __str__(self) -> str:
        return self.public_id
