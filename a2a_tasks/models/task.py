"""Tasks with their messages and artifacts. The task row is the fold of its events."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from a2a_tasks.models.context import Context
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import TaskState

STATES = [(state.value, state.word) for state in TaskState]
ENDED = sorted(TERMINAL)
WAITING = sorted(state.value for state in INTERRUPTED)
#: Columns that no list reads: long ones, and the token, which is a credential.
LONG_COLUMNS = ("status_message", "metadata", "memory", "run_token")


class Task(models.Model):
    """One task. Bodies are JSON text and never queried inside; values for filters and sorting are columns."""

    #: Its collation in PostgreSQL is "C" (migration 0002), so that the unique index also serves prefix searches.
    public_id = models.CharField("task id", max_length=256)
    tenant = models.CharField(max_length=256, blank=True, default="")
    #: The owner of its scope: a principal, or `caller.TENANTS` if its tenant shares it.
    owner = models.CharField(max_length=256, blank=True, default="")
    #: The principal that created it, if that is not the owner.
    created_by = models.CharField(max_length=256, blank=True, db_default="", db_column="maker")
    agent = models.CharField(max_length=64)
    context = models.ForeignKey(
        Context, on_delete=models.PROTECT, related_name="tasks", db_index=False
    )
    #: False while an agent that may answer with a direct Message has no output yet, and for ever if it answered so.
    is_task = models.BooleanField("shown to clients", default=True)
    state = models.CharField(max_length=32, choices=STATES)
    status_at = models.DateTimeField("status since")
    #: The Message in the status, as JSON; empty = none.
    status_message = models.TextField(blank=True, default="")
    #: Its line in lists: the beginning of the message in the status, or of the answer; of a failure the exception, which
    #: only operators who may see traces see. Empty in rows from before this column.
    status_text = models.CharField(max_length=200, blank=True, default="", db_default="")
    metadata = models.TextField(blank=True, default="")
    #: The agent's data between turns (`turn.memory`), as JSON.
    memory = models.TextField(blank=True, default="")
    #: Number of the newest event; events are numbered from 1 without gaps.
    last_event = models.IntegerField(default=0)
    #: The fencing token of the run that may write; empty = no run. It is on this row because every writer locks this
    #: row, so that a writer that already waits sees when its token was revoked.
    run_token = models.CharField(max_length=40, blank=True, default="")
    #: Number of batches that this run has written: it identifies a repeated batch.
    batches = models.IntegerField(default=0, db_default=0)
    origin_dialect = models.CharField(max_length=8)
    #: `protocol/binding.py`; empty = none: an operator ran it again, or it is older than this column.
    origin_binding = models.CharField(max_length=16, blank=True, default="", db_default="")
    #: The ended task whose id this one took over (in dialects that reopen ended tasks). Without constraint and index:
    #: it is followed by hand, and every task would bear their cost.
    predecessor = models.ForeignKey(
        "self",
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["public_id", "agent", "owner", "tenant"],
                name="task_id_is_unique_per_owner",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=ENDED) | Q(run_token=""),
                name="an_ended_task_is_held_by_no_run",
            ),
        ]
        indexes = [
            models.Index(  # ListTasks
                "tenant",
                "owner",
                "agent",
                models.F("status_at").desc(),
                models.F("id").desc(),
                name="task_list",
                condition=Q(is_task=True),
            ),
            models.Index(  # ListTasks by status
                "tenant",
                "owner",
                "agent",
                "state",
                models.F("status_at").desc(),
                models.F("id").desc(),
                name="task_list_by_state",
                condition=Q(is_task=True),
            ),
            models.Index(  # ListTasks by context; the tasks of a context in the admin
                "context",
                models.F("status_at").desc(),
                models.F("id").desc(),
                name="task_list_by_context",
            ),
            models.Index(  # totalSize: tasks newer than the tally (store/task_counter.py)
                "tenant",
                "owner",
                "agent",
                "id",
                name="task_tally",
                condition=Q(is_task=True),
            ),
            models.Index(  # rows that may still become tasks; the tally stops before the oldest
                "id",
                name="task_undecided",
                condition=Q(is_task=False) & ~Q(state__in=ENDED),
            ),
            # ended tasks by time: statistics read only this index
            models.Index(
                "status_at",
                "state",
                "agent",
                "tenant",
                name="task_ended",
                condition=Q(state__in=ENDED),
            ),
            models.Index("state", models.F("id").desc(), name="task_admin_state"),
            # tasks for people, oldest first (a2a_console/queue/waiting.py), of a state or of tenants
            models.Index(
                "status_at",
                "id",
                "state",
                "tenant",
                name="task_inbox",
                condition=Q(is_task=True, state__in=WAITING),
            ),
            models.Index("agent", models.F("id").desc(), name="task_admin_agent"),
        ]
        permissions = [
            ("see_all_tenants", "Can see every tenant"),  # a2a_console/staff.py
            ("answer_task", "Can answer tasks that wait for people, and say who does"),
            ("run_again_task", "Can run tasks again"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Message(models.Model):
    """One turn of a task's history. Its number is that of the event that recorded it."""

    pk = models.CompositePrimaryKey("task_id", "number")
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    number = models.IntegerField()
    role = models.CharField(max_length=16)
    body = models.TextField()
    #: For a task's first message, the beginning of its text (`title_of`, `protocol/titles.py`). It is here and not on the task,
    #: since this row is written once: its full-text index (`a2a_console/search/text_search.py`) has one entry per task,
    #: not one per state.
    opening = models.CharField(max_length=200, blank=True, default="", db_default="")
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.role} {self.number}"


class Artifact(models.Model):
    """One artifact. While it grows, its events are the artifact; when it is closed they are folded into `body`."""

    pk = models.CompositePrimaryKey("task_id", "position")
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="artifacts", db_index=False
    )
    #: Order of creation, from 0; never reused (`index` of the oldest dialects).
    position = models.IntegerField()
    artifact_id = models.TextField()
    #: The first event of the artifact in its present version.
    first_event = models.IntegerField()
    #: The whole artifact as JSON; empty while it grows.
    body = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return self.artifact_id


class Tally(models.Model):
    """The number of tasks in a scope up to an id, so that totalSize counts only later ones."""

    tenant = models.CharField(max_length=256, blank=True, default="")
    owner = models.CharField(max_length=256, blank=True, default="")
    agent = models.CharField(max_length=64)
    through = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "owner", "tenant"], name="one_tally_per_scope")
        ]

    def __str__(self) -> str:
        return f"{self.total} through {self.through}"
