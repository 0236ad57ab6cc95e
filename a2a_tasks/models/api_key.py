"""API keys: their stored properties. `access/api_keys.py` makes and reads them."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone


class ApiKey(models.Model):
    """One client's key, through all its rotations. No secret can be read from a row."""

    #: The public part of the key; it identifies the caller.
    prefix = models.CharField(max_length=16, unique=True)
    name = models.CharField(max_length=200)
    tenant = models.CharField(max_length=128, blank=True, default="")
    #: Separated by spaces, as in RFC 6749.
    scopes = models.CharField(max_length=2000, blank=True, default="")
    #: Rate limit of the key, in place of A2A_RATE_PER_CALLER; empty = that setting applies.
    rate = models.CharField(max_length=64, blank=True, default="", db_default="")
    #: SHA-256 of the secret, in hexadecimal.
    digest = models.CharField(max_length=64)
    #: The secret before the last rotation, valid until `previous_until`.
    previous_digest = models.CharField(max_length=64, blank=True, default="")
    previous_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    rotated_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField("expires", null=True, blank=True)
    revoked_at = models.DateTimeField(null=True)
    #: Accurate to about a minute.
    last_used_at = models.DateTimeField(null=True)
    #: The last use of the previous secret, accurate to a minute: recent if a client has not yet changed.
    previous_used_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.prefix} ({self.name})"

    @property
    def state(self) -> str:
        """`live`, `expired` or `revoked`; only live keys work."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "live"
