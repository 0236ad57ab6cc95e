"""Workers: the processes of this host, as each reports itself. The lease of a run decides its owner, not these rows."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class WorkerKind(models.TextChoices):
    """The role of a process."""

    WEB = "web"  #: serves HTTP; on the embedded host it also runs agents and sends webhooks
    GRPC = "grpc"  #: serves gRPC
    WORKER = "worker"  #: runs agents
    PUSHER = "pusher"  #: sends webhooks
    BEAT = "beat"  #: triggers the recurring jobs


class Worker(models.Model):
    """One process. It reports its presence at intervals, and its end if it ends in good order."""

    #: Its name in the leases of runs and webhooks: `host:pid`.
    name = models.CharField(max_length=128, unique=True)
    kind = models.CharField(max_length=16, choices=WorkerKind.choices)
    #: The queues it takes from: a list of names.
    queues = models.JSONField(default=list)
    #: The agents it can run: slug to the version on the card, by its code.
    agents = models.JSONField(default=dict)
    #: Maximum number of runs at once, and the number at the last report.
    slots = models.IntegerField(default=0)
    running = models.IntegerField(default=0)
    host = models.CharField(max_length=128)
    pid = models.IntegerField()
    #: Version of its code: A2A_RELEASE.
    version = models.CharField(max_length=64, blank=True, default="")
    #: It takes nothing new, and ends soon.
    draining = models.BooleanField(default=False)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    #: The time of its end in good order. Pages no longer show it; its agents are still known.
    left_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "worker"
        #: A claim searches by `seen_at`; without an index its plan reads a whole table (docs/decisions/0002).
        indexes = [models.Index(fields=["seen_at"], name="worker_seen")]

    def __str__(self) -> str:
        return self.name
