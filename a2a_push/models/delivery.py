"""Deliveries: each notification of a webhook once, and every attempt at it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from a2a_push.models.push_config import PushConfig
from a2a_push.models.receiver import Receiver


class DeliveryStatus(models.TextChoices):
    """The state of a delivery."""

    PENDING = "pending"  #: has further attempts
    DELIVERED = "delivered"  #: was answered by 2xx
    DEAD = "dead"  #: has no further attempts, until an operator replays it
    CANCELLED = "cancelled"  #: its webhook was deleted first


class Trigger(models.TextChoices):
    """The origin of an attempt."""

    SCHEDULE = "schedule"  #: the retry schedule
    OPERATOR = "operator"  #: an operator replayed it, or sent it at once


class Delivery(models.Model):
    """One notification: of one event, or of several joined. Its body is frozen before the first attempt."""

    #: Null once the webhook is deleted; the delivery is kept.
    config = models.ForeignKey(
        PushConfig,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="deliveries",
        db_index=False,
    )
    # No constraint in the database: its check would lock the task's row, and block its agent.
    task = models.ForeignKey(
        "a2a_tasks.Task",
        on_delete=models.CASCADE,
        related_name="deliveries",
        db_constraint=False,
        db_index=False,
    )
    receiver = models.ForeignKey(
        Receiver, on_delete=models.PROTECT, related_name="deliveries", db_index=False
    )
    #: Numbers of the first and the last event in the notification.
    number = models.IntegerField()
    through = models.IntegerField()
    webhook_id = models.CharField("webhook id", max_length=40, unique=True)
    dialect = models.CharField(max_length=8)
    content_type = models.CharField(max_length=64)
    #: The body; empty = it is long and stored in the DeliveryBody with the same task, events and dialect.
    body = models.TextField()
    status = models.CharField(max_length=16, choices=DeliveryStatus.choices)
    #: Attempts since it was made or last replayed; the schedule uses this number.
    attempts = models.IntegerField(default=0)
    #: Time of the next attempt; null = at once, or never again.
    next_at = models.DateTimeField("next attempt", null=True, blank=True)
    #: The reason why it waits, or is dead.
    reason = models.TextField(blank=True, default="")
    #: The origin of the next attempt.
    trigger = models.CharField(max_length=16, choices=Trigger.choices, default=Trigger.SCHEDULE)
    replays = models.IntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.CheckConstraint(
                condition=Q(status="pending", settled_at__isnull=True)
                | ~Q(status="pending") & Q(settled_at__isnull=False),
                name="a_delivery_is_pending_or_settled",
            ),
        ]
        indexes = [
            models.Index("task", "number", name="delivery_of_task"),
            models.Index("config", "id", name="delivery_of_config"),
            models.Index("receiver", models.F("id").desc(), name="delivery_of_receiver"),
            models.Index("config", "id", name="delivery_pending", condition=Q(status="pending")),
            models.Index("created_at", name="delivery_dead", condition=Q(status="dead")),
            models.Index(  # retention, and statistics of deliveries by time
                "settled_at",
                "status",
                "receiver",
                name="delivery_settled",
                condition=Q(settled_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.webhook_id


class DeliveryBody(models.Model):
    """A long body, stored once for all deliveries of the same task, events and dialect (decision 19)."""

    # No constraint in the database, for the same reason as with deliveries.
    task = models.ForeignKey(
        "a2a_tasks.Task",
        on_delete=models.CASCADE,
        related_name="delivery_bodies",
        db_constraint=False,
        db_index=False,
    )
    number = models.IntegerField()
    through = models.IntegerField()
    dialect = models.CharField(max_length=8)
    #: Size in bytes.
    size = models.IntegerField()
    body = models.TextField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["task", "number", "through", "dialect"], name="one_body_per_notification"
            )
        ]

    def __str__(self) -> str:
        return f"task {self.task_id}: {self.number} to {self.through} in {self.dialect}"


class Attempt(models.Model):
    """One request and its result."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries")
    #: Counted from 1 since the delivery was made or last replayed.
    number = models.IntegerField()
    trigger = models.CharField(max_length=16, choices=Trigger.choices)
    started_at = models.DateTimeField()
    #: Seconds until the end of the answer.
    seconds = models.FloatField()
    #: Status of the answer; null = there was none.
    status = models.SmallIntegerField("HTTP status", null=True, blank=True)
    #: The kind of the fault, one of `a2a_tasks.outbound.FaultKind`; empty = none.
    fault = models.CharField(max_length=16, blank=True, default="")
    #: The beginning of the answer.
    excerpt = models.TextField(blank=True, default="")
    #: A description of the result.
    detail = models.TextField(blank=True, default="")
    worker = models.CharField(max_length=128, blank=True, default="")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.number}: {self.status or self.fault}"
