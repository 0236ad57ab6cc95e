"""Assignments: the staff user responsible for a task that waits for people."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class Assignment(models.Model):
    """The user assigned to a task. The row stays while the task works on: if it asks again, it asks the same user."""

    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, related_name="assignment"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    #: The actor of the assignment, as in the audit log.
    by = models.CharField(max_length=256, blank=True, default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"task {self.task_id}: user {self.user_id}"


class Waiting(Task):
    """Tasks in the inbox: those that wait for an answer, or for a secret."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = "task that waits for an answer"
        verbose_name_plural = "inbox"
