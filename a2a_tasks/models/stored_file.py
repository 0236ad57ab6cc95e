"""Files that are too large for a row: their properties. Their bytes are in the storage `a2a_files`."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from a2a_tasks.models.task import Task


class StoredFile(models.Model):
    """One file of a task. The row is written before the bytes and deleted after them, so that no bytes are orphaned."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    #: Null: its task is not accepted yet, or is gone.
    task = models.ForeignKey(Task, on_delete=models.SET_NULL, null=True, related_name="files")
    tenant = models.CharField(max_length=256, blank=True, default="")
    owner = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64)
    #: Size in bytes.
    size = models.BigIntegerField()
    #: SHA-256 of the bytes, in hexadecimal.
    sha256 = models.CharField(max_length=64)
    media_type = models.TextField()
    filename = models.TextField(blank=True, default="")
    #: Name of the file in the storage.
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now())
    #: Time until which a task may take the file; null = a task has it, or no task may take it any more.
    pending_until = models.DateTimeField(null=True)

    class Meta:
        indexes = [  # for the sweep of files without a task
            models.Index(fields=["id"], name="file_of_no_task", condition=Q(task=None)),
        ]

    def __str__(self) -> str:
        return self.filename or self.name
