"""The log: append-only, numbered per task without gaps. All other state is a fold of it."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from a2a_tasks.models.task import STATES, Task
from a2a_tasks.protocol.lifecycle import EventKind

KINDS = [(kind.value, kind.name.lower()) for kind in EventKind]


class Event(models.Model):
    """One event of a task. An artifact chunk is its event row."""

    pk = models.CompositePrimaryKey("task_id", "number")
    # No constraint in the database: the statement that inserts events holds the task row, and the check
    # would be paid per chunk.
    task = models.ForeignKey(
        Task,
        on_delete=models.CASCADE,
        related_name="events",
        db_index=False,
        db_constraint=False,
    )
    number = models.IntegerField()
    kind = models.SmallIntegerField(choices=KINDS)
    #: Set on status events.
    state = models.CharField(max_length=32, blank=True, default="", choices=STATES)
    #: The run that wrote the event; null for the host's own (accepted, cancelled, given up).
    run = models.BigIntegerField(null=True)
    #: JSON as in `protocol.lifecycle.LogEvent.body`; empty where the Message row has it.
    body = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.number} {EventKind(self.kind).name.lower()}"
