"""Delegations: tasks that an agent has given to another agent of the host."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class AskPolicy(models.TextChoices):
    """The way of a question of the called agent."""

    RELAY = "relay"  #: the host asks the client of the calling task
    RETURN = "return"  #: the call returns, and the calling agent answers


class EndPolicy(models.TextChoices):
    """The fate of the called task when the calling turn ends before it."""

    CANCEL = "cancel"  #: it is cancelled
    LEAVE = "leave"  #: it goes on


class Delegation(models.Model):
    """One call: the step of that name in a turn of the parent has begun the child, or continued it."""

    child = models.OneToOneField(
        Task, on_delete=models.CASCADE, related_name="delegation", db_constraint=False
    )
    # No constraint in the database, as for steps: the transaction that inserts the row holds the parent's row.
    parent = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="calls", db_index=False, db_constraint=False
    )
    #: Number of the message that the calling turn answers.
    input_number = models.IntegerField()
    #: The name of the step.
    name = models.CharField(max_length=200)
    #: The key of the task from which the whole tree descends.
    root = models.BigIntegerField()
    #: Number of calls between the root and the child; 1 = the root has called it.
    depth = models.IntegerField()
    #: The slugs of the agents from the root to the parent, as JSON.
    path = models.TextField()
    questions = models.CharField(max_length=8, choices=AskPolicy.choices)
    at_end = models.CharField(max_length=8, choices=EndPolicy.choices)
    #: Number of the child's event whose question stands in the parent; null = none does.
    relayed = models.IntegerField(null=True)
    #: True until the calling turn has ended.
    open = models.BooleanField(default=True)
    #: True if a parked turn waits for it.
    awaited = models.BooleanField(default=True)
    #: True if the child is to be cancelled.
    cancel = models.BooleanField(default=False)
    #: Time of the last call.
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["parent", "input_number", "name"], name="one_child_of_a_call"
            )
        ]
        indexes = [
            models.Index("root", name="delegation_root"),
            models.Index("id", name="delegation_open", condition=Q(open=True)),
            models.Index(
                "id", name="delegation_relayed", condition=Q(open=True, relayed__isnull=False)
            ),
            models.Index("id", name="delegation_cancel", condition=Q(cancel=True)),
        ]

    def __str__(self) -> str:
        return self.name
