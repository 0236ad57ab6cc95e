"""Runs: an agent's answer to one message, held by a lease while it is under way."""

from __future__ import annotations

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from a2a_tasks.models.task import Task

#: The rounds of a run that waits for the end of an earlier one of its task or context, and of a parked run: both have none
#: until they are released or woken. They lie behind all others, so that no claim reads so far.
BEHIND, PARKED = 2**61, 2**62
#: The condition for runs that wait for a slot, for those behind another one, and for those that are parked; and among the
#: last ones for those whose wait other tasks may end.
WAITS_FOR_SLOT = Q(status="queued", round__lt=BEHIND)
IS_BEHIND = Q(status="queued", round__gte=BEHIND, round__lt=PARKED)
IS_PARKED = Q(status="queued", round__gte=PARKED)
WAITS_FOR_TASKS = Q(awaits__isnull=False) | Q(awaits_calls=True)


class RunStatus(models.TextChoices):
    """The state of a run."""

    QUEUED = "queued"  #: waits for a process with a free slot, or for the end of an earlier run, or is parked
    RUNNING = "running"  #: held by a process until its lease ends
    ENDED = "ended"  #: the agent ended normally
    FAILED = "failed"  #: the agent raised, or its process died too often
    CANCELED = "canceled"  #: the task was cancelled during the run
    DROPPED = "dropped"  #: the task had ended before the run started


class Run(models.Model):
    """One run. The process that holds `token` until `lease_until` (database clock) may write for the task."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="runs")
    #: Number of the event with the message this run answers.
    input_number = models.IntegerField()
    queue = models.CharField(max_length=64)
    #: The slug of its agent, as in its task: claims read the waiting runs of one agent after another.
    agent = models.CharField(max_length=64, blank=True, default="", db_default="")
    #: The tenant or principal whose share of the slots it counts for (`Caller.quota_key`). Four columns keep their earlier
    #: names, so that processes of an earlier release work on (docs/decisions/0002).
    quota_key = models.CharField(
        max_length=256, blank=True, default="", db_default="", db_column="share"
    )
    #: Number of its round: runs start in rounds, one of each quota key per round (`store/backend/fair_queue.py`); 0 = started at
    #: once; BEHIND = it waits for an earlier run (`store/behind.py`); PARKED = it waits for `due_at`, or for the end of a
    #: task (`store/parking.py`).
    round = models.BigIntegerField(default=0, db_default=0)
    status = models.CharField(max_length=16, choices=RunStatus.choices)
    attempt = models.IntegerField(default=0)
    token = models.CharField(max_length=40, blank=True, default="")
    worker = models.CharField(max_length=128, blank=True, default="")
    #: Duration of this run's lease, in seconds; stored here so that processes of two deployments agree.
    lease_seconds = models.FloatField(default=0)
    lease_until = models.DateTimeField(null=True)
    #: Number of runs in its process at the last heartbeat, including this one; 0 = unknown.
    runs_in_process = models.IntegerField(default=0, db_default=0, db_column="company")
    #: Deaths that count against MAX_ATTEMPTS: alone in its process, since the last progress of an attempt.
    deaths = models.IntegerField(default=0, db_default=0)
    #: Consecutive deaths of processes that carried other runs as well. They lead to quarantine (`store/quarantine.py`).
    shared_deaths = models.IntegerField(default=0, db_default=0)
    #: The task's newest event at the last death, and the most events that one attempt wrote before it died.
    died_at_event = models.IntegerField(default=0, db_default=0)
    max_events = models.IntegerField(default=0, db_default=0, db_column="furthest")
    #: Upper bound of the lifetime of an attempt that died, in seconds.
    longest_life = models.FloatField(default=0, db_default=0)
    #: The key of its context if the runs of the context wait for each other (`Agent.one_at_a_time`); null = they do not.
    ordered_in = models.BigIntegerField(null=True)
    #: The step in which it was parked last; empty = never. Later attempts record no values that came before that step.
    parked_in = models.CharField(max_length=200, blank=True, default="", db_default="")
    #: Number of values that its agent had yielded then.
    said = models.IntegerField(default=0, db_default=0)
    #: The key of the task whose end wakes it; null = only `due_at` does.
    awaits = models.BigIntegerField(null=True)
    #: True if it is parked until the calls of its turn that it awaits have ended (`Delegation.awaited`).
    awaits_calls = models.BooleanField(default=False, db_default=False)
    #: The key of the sum of a budget (`BudgetUse`) that has nothing left for it; null = none, or it is not parked any more.
    waits_for_budget = models.BigIntegerField(null=True)
    due_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    #: The attempts that ended before the run did, as `store/segments.py` writes them.
    past = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    #: The parameters of the request besides the message (output modes, metadata, extensions), as JSON.
    request = models.TextField(blank=True, default="")
    #: Notes about attempts that died or were stopped, then the traceback of a failed run. For operators only.
    error = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["task"], condition=Q(status="running"), name="one_run_of_a_task_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(status="running", lease_until__isnull=False) & ~Q(token="")
                | ~Q(status="running") & Q(token=""),
                name="a_running_run_has_token_and_lease",
            ),
        ]
        indexes = [
            models.Index(
                "queue", "round", "id", name="run_due_by_round", condition=Q(status="queued")
            ),
            models.Index(
                *("queue", "agent", "round", "id"),
                name="run_due_by_agent",
                condition=Q(status="queued"),
            ),
            models.Index("id", name="run_behind", condition=IS_BEHIND),
            models.Index(
                "quota_key", "queue", "round", name="run_share", condition=Q(status="queued")
            ),
            models.Index("lease_until", name="run_leased", condition=Q(status="running")),
            models.Index(
                *("queue", "agent", "round", "id"),
                name="run_suspect",
                condition=Q(status="queued", shared_deaths__gte=2),
            ),
            models.Index("due_at", name="run_parked", condition=IS_PARKED),
            models.Index(
                "awaits", name="run_awaiting", condition=IS_PARKED & Q(awaits__isnull=False)
            ),
            models.Index("id", name="run_waits_for_tasks", condition=IS_PARKED & WAITS_FOR_TASKS),
            models.Index(
                "waits_for_budget",
                name="run_waits_for_budget",
                condition=IS_PARKED & Q(waits_for_budget__isnull=False),
            ),
            models.Index(
                "task", "id", name="run_unfinished", condition=Q(status__in=["queued", "running"])
            ),
            models.Index(
                *("ordered_in", "id"),
                name="run_ordered",
                condition=Q(status__in=["queued", "running"], ordered_in__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_parked(self) -> bool:
        """True if it has given its slot back until it is woken."""
        return self.status == RunStatus.QUEUED and self.round >= PARKED

    @property
    def is_behind(self) -> bool:
        """True if it waits for the end of an earlier run of its task or context."""
        return self.status == RunStatus.QUEUED and BEHIND <= self.round < PARKED

    @property
    def standing(self) -> str:
        """The status of the run, or "parked" or "behind"."""
        return "parked" if self.is_parked else "behind" if self.is_behind else self.status
