"""Steps: completed work of an agent within one turn, which is not repeated after a crash."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class Step(models.Model):
    """The result of one step of the turn that answers one message."""

    pk = models.CompositePrimaryKey("task_id", "input_number", "name")
    # No constraint in the database, as for events: the statement that inserts a step holds the task row.
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="steps", db_index=False, db_constraint=False
    )
    #: Number of the event with the message that the turn answers.
    input_number = models.IntegerField()
    name = models.CharField(max_length=200)
    #: The result of the step, as JSON.
    result = models.TextField()
    #: The run that executed the step.
    run = models.BigIntegerField()
    #: The end of its work. A wait has no work: it ends with its result, a time.
    created_at = models.DateTimeField(db_default=Now())
    #: Duration of its work; null = not measured.
    seconds = models.FloatField(null=True)

    def __str__(self) -> str:
        return self.name
