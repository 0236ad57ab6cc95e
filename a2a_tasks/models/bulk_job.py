"""Actions of operators on many tasks, which workers do in slices (`a2a_console/bulk/jobs.py`)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

__all__ = ["BulkJob", "BulkResult", "BulkState"]


class BulkState(models.TextChoices):
    """The state of a job."""

    QUEUED = "queued"  #: no worker has begun
    RUNNING = "running"
    ENDED = "ended"  #: all of its tasks were tried
    STOPPED = "stopped"  #: by a user, or because its user may not do it any more


class BulkJob(models.Model):
    """One action on the tasks of a selection that are not newer than the job."""

    #: The action and the `Choice` of tasks as JSON (`a2a_console/bulk/actions.py`).
    action = models.CharField(max_length=16)
    choice = models.TextField()
    #: The query of the list that the job is about, for a link.
    query = models.TextField(blank=True, default="")
    #: Only tasks that this user may see are found, and only while the user has the permission.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    #: Sent with the form: a form that is sent twice makes one job.
    nonce = models.CharField(max_length=64)
    state = models.CharField(
        max_length=16, choices=BulkState.choices, default=BulkState.QUEUED, db_default="queued"
    )
    #: The key before which tasks are still to be found; 0 = all were found.
    before = models.BigIntegerField()
    #: The key of the last result that is counted. Later results are those of a slice under way.
    counted = models.BigIntegerField(default=0, db_default=0)
    #: The number of tasks when the user was asked; true if there were more.
    found = models.IntegerField()
    more = models.BooleanField(default=False, db_default=False)
    done = models.IntegerField(default=0, db_default=0)
    failed = models.IntegerField(default=0, db_default=0)
    #: A worker is at work until then; null = none is.
    held_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField("created", db_default=Now())
    ended_at = models.DateTimeField("ended", null=True)

    class Meta:
        default_permissions = ()
        verbose_name = "bulk job"
        constraints = [
            models.UniqueConstraint(fields=["user", "nonce"], name="one_bulk_job_per_form")
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.pk}"


class BulkResult(models.Model):
    """The outcome for one task of a job."""

    job = models.ForeignKey(BulkJob, on_delete=models.CASCADE, db_index=False)
    #: The key of the task. There is no constraint: retention may remove the task.
    task = models.BigIntegerField()
    #: True if it was done; null = it is still to be tried.
    ok = models.BooleanField(null=True)
    outcome = models.CharField(max_length=200, blank=True, default="", db_default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["job", "task"], name="one_result_of_a_job_per_task")
        ]
        indexes = [models.Index("job", "id", name="bulk_results")]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.task}"
