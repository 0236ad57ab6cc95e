"""Conversations of clients that keep the history themselves and send all of it each time: OpenAI's API, AG-UI."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from a2a_tasks.models.task import Task

__all__ = ["ChatPrefix"]


class ChatPrefix(models.Model):
    """The history after which a conversation goes on with the context of a task. It is removed with the task."""

    #: Digest of the caller, the agent and the history so far (protocol/chats.py).
    digest = models.CharField(max_length=64)
    #: The last task of the conversation.
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="+")
    #: The newest event when the last message had been accepted: its answer begins after this event.
    number = models.IntegerField()
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        verbose_name_plural = "chat prefixes"
        indexes = [models.Index("digest", "updated_at", name="chat_prefix_newest")]

    def __str__(self) -> str:
        return self.digest
