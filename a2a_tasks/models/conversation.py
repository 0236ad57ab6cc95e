"""The memory of a conversation: values by key, and lists. A run writes them in the transaction that ends its turn."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from a2a_tasks.conversation_changes import ValueKind
from a2a_tasks.models.context import Context


class ConversationMemory(models.Model):
    """One value of a conversation (`turn.conversation.memory`)."""

    pk = models.CompositePrimaryKey("context_id", "key")
    context = models.ForeignKey(
        Context, on_delete=models.CASCADE, related_name="memory", db_index=False
    )
    key = models.CharField(max_length=200)
    #: The run that wrote the value. A run writes once, so no two values of a key have the same version.
    version = models.BigIntegerField()
    kind = models.CharField(max_length=8, choices=ValueKind.choices())
    #: JSON and text in UTF-8, or bytes.
    value = models.BinaryField()
    updated_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.key


class ConversationList(models.Model):
    """One list of a conversation (`turn.conversation.items`)."""

    #: Null = its conversation was removed, and its items are removed in portions.
    context = models.ForeignKey(
        Context, on_delete=models.SET_NULL, null=True, related_name="lists", db_index=False
    )
    key = models.CharField(max_length=200)
    #: The run that last changed the list, as for a value of the memory.
    version = models.BigIntegerField()
    #: The number of items, which is also the number of the newest one, and their bytes.
    count = models.IntegerField()
    size = models.BigIntegerField()
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["context", "key"], name="a_list_has_a_key_of_its_own")
        ]

    def __str__(self) -> str:
        return self.key


class ConversationItem(models.Model):
    """One item of a list; they are numbered from 1 without gaps."""

    pk = models.CompositePrimaryKey("list_id", "number")
    # No constraint in the database, as for events: a writer of items holds the row of their list.
    list = models.ForeignKey(
        ConversationList,
        on_delete=models.CASCADE,
        related_name="items",
        db_index=False,
        db_constraint=False,
    )
    number = models.IntegerField()
    #: JSON.
    value = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return str(self.number)
