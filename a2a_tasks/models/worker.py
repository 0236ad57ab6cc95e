"""Workers: the processes of this host, as each says of itself. Whose a run is, its lease decides, not these rows."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class WorkerKind(models.TextChoices):
    """What a process is for."""

    WEB = "web"  #: serves HTTP; on the embedded host it also runs agents and sends webhooks
    GRPC = "grpc"  #: serves gRPC
    WORKER = "worker"  #: runs agents
    PUSHER = "pusher"  #: sends webhooks
    BEAT = "beat"  #: rings for the recurring jobs


class Worker(models.Model):
    """One process. It says again and again that it is there, and says that it leaves when it ends in good order."""

    #: As runs and webhooks name whoever holds them: `host:pid`.
    name = models.CharField(max_length=128, unique=True)
    kind = models.CharField(max_length=16, choices=WorkerKind.choices)
    #: The queues it takes from: a list of names.
    queues = models.JSONField(default=list)
    #: The agents it can run: slug to the version on the card, as its code has it.
    agents = models.JSONField(default=dict)
    #: How many runs it carries at once at the most, and how many it carried when it was seen.
    slots = models.IntegerField(default=0)
    running = models.IntegerField(default=0)
    host = models.CharField(max_length=128)
    pid = models.IntegerField()
    #: Of its code: A2A_RELEASE.
    version = models.CharField(max_length=64, blank=True, default="")
    #: It takes nothing new, and ends soon.
    draining = models.BooleanField(default=False)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    #: When it ended in good order. No page shows it then; what agents it had is still known.
    left_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "worker"
        #: A claim looks for who was seen; with no index its plan is one that reads a whole table (docs/decisions/0179).
        indexes = [models.Index(fields=["seen_at"], name="worker_seen")]

    def __str__(self) -> str:
        return self.name
