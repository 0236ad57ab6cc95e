"""Files that are too large for a row: what is known of them. Their bytes are in the storage `a2a_files`."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class StoredFile(models.Model):
    """One file of a task. The row is there before the bytes, and goes after them, so no bytes are ever forgotten."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    #: Empty: its task is not accepted yet, or is gone.
    task = models.ForeignKey(Task, on_delete=models.SET_NULL, null=True, related_name="files")
    tenant = models.CharField(max_length=256, blank=True, default="")
    owner = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64)
    #: Bytes.
    size = models.BigIntegerField()
    #: Of the bytes, in hexadecimal.
    sha256 = models.CharField(max_length=64)
    media_type = models.TextField()
    filename = models.TextField(blank=True, default="")
    #: Where the storage has it.
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now())
    #: A task may take it until then; empty = it has been taken.
    pending_until = models.DateTimeField(null=True)

    class Meta:
        indexes = [  # what the sweep looks for
            models.Index(fields=["id"], name="file_of_no_task", condition=Q(task=None)),
        ]

    def __str__(self) -> str:
        return self.filename or self.name
