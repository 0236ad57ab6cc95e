"""Receivers: the state of the addresses of webhooks, across all tasks."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Receiver(models.Model):
    """One address at which a tenant has webhooks: scheme, host, port and path, without the query."""

    tenant = models.CharField(max_length=256, blank=True, default="")
    address = models.TextField()
    #: Digest of tenant and address, which together are too long for an index.
    digest = models.CharField(max_length=64, unique=True, editable=False)
    #: JSON of `a2a_push.breaker.Breaker`.
    breaker = models.TextField(blank=True, default="{}")
    #: Time at which the breaker lets an attempt through; null = it is closed, or the receiver is disabled.
    probe_at = models.DateTimeField("next probe", null=True, blank=True)
    #: Nothing is sent before this time, by the receiver's Retry-After.
    paused_until = models.DateTimeField(null=True, blank=True)
    #: Time at which it was disabled; null = it is not. A disabled receiver gets nothing until it is enabled.
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.TextField(blank=True, default="")
    #: True if its last answer was quick, and 2xx or 410: it may get several notifications at a time.
    well = models.BooleanField(default=False)
    delivered = models.BigIntegerField(default=0)
    failed = models.BigIntegerField("failed attempts", default=0)
    last_success_at = models.DateTimeField("last success", null=True, blank=True)
    last_failure_at = models.DateTimeField("last failure", null=True, blank=True)
    #: Duration of the last attempt.
    last_seconds = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.address
