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


class Task(models.Model):
    """One task. Bodies are JSON text and never queried inside; what is filtered or sorted is a column."""

    #: In PostgreSQL its collation is "C" (migration 0015), so that the unique index finds it by its beginning, too.
    public_id = models.CharField("task id", max_length=256)
    tenant = models.CharField(max_length=256, blank=True, default="")
    #: Whose drawer it lies in: a principal's, or `caller.TENANTS` if its tenant shares it.
    owner = models.CharField(max_length=256, blank=True, default="")
    #: Who made it, if that is not the owner.
    maker = models.CharField(max_length=256, blank=True, db_default="")
    agent = models.CharField(max_length=64)
    context = models.ForeignKey(
        Context, on_delete=models.PROTECT, related_name="tasks", db_index=False
    )
    #: False while an agent that may answer with a direct Message has not spoken, and for ever if it did so.
    is_task = models.BooleanField("shown to clients", default=True)
    state = models.CharField(max_length=32, choices=STATES)
    status_at = models.DateTimeField("status since")
    #: The Message in the status, as JSON; empty = none.
    status_message = models.TextField(blank=True, default="")
    metadata = models.TextField(blank=True, default="")
    #: What the agent keeps between turns (`turn.memory`), as JSON.
    memory = models.TextField(blank=True, default="")
    #: Number of the newest event; events are numbered from 1 without gaps.
    last_event = models.IntegerField(default=0)
    #: The fence: token of the run that may write; empty = nobody. It lies on this row because this row is what
    #: every writer locks, so that a token taken away is seen by a writer already waiting.
    run_token = models.CharField(max_length=40, blank=True, default="")
    #: How many batches that run has written: one that comes again is known by it.
    batches = models.IntegerField(default=0, db_default=0)
    origin_dialect = models.CharField(max_length=8)
    #: `protocol/binding.py`; empty = by none: an operator had it run again, or it is older than this column.
    origin_binding = models.CharField(max_length=16, blank=True, default="", db_default="")
    #: The ended task whose id this one took over (dialects that begin ended tasks anew). Without constraint and
    #: index: it is followed by hand, and every task would pay for them.
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
            models.Index(  # totalSize: tasks newer than the tally (store/tally.py)
                "tenant",
                "owner",
                "agent",
                "id",
                name="task_tally",
                condition=Q(is_task=True),
            ),
            models.Index(  # rows that may yet become tasks; the tally stops before the oldest
                "id",
                name="task_undecided",
                condition=Q(is_task=False) & ~Q(state__in=ENDED),
            ),
            models.Index(  # what ended when, and how long it took: figures are read from this alone
                "status_at",
                "state",
                "agent",
                "tenant",
                "created_at",
                name="task_ended",
                condition=Q(state__in=ENDED),
            ),
            models.Index("state", models.F("id").desc(), name="task_admin_state"),
            models.Index(  # work for people, oldest first (store/waiting.py)
                "status_at",
                "id",
                name="task_waiting",
                condition=Q(is_task=True, state__in=WAITING),
            ),
            models.Index("agent", models.F("id").desc(), name="task_admin_agent"),
        ]
        permissions = [
            ("see_all_tenants", "Can see every tenant"),  # admin/staff.py
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
    #: Of a task's first message the beginning of its text (`protocol/opening.py`). It is here and not with the task,
    #: since this row is written once: its index of words (`store/words.py`) costs a task one entry, not one a state.
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
    #: Order of creation, from 0; never used again (`index` of the oldest dialects).
    position = models.IntegerField()
    artifact_id = models.TextField()
    #: The event with which the artifact, as it is now, begins.
    first_event = models.IntegerField()
    #: The whole artifact as JSON; empty while it grows.
    body = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return self.artifact_id


class Tally(models.Model):
    """How many tasks a scope has up to an id, so that totalSize counts only what came after."""

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
