"""API keys: what is kept of them. `access/api_keys.py` makes and reads them."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ApiKey(models.Model):
    """One client's key, through all its rotations. No secret can be read from a row."""

    #: The public part of the key; the caller is known by it.
    prefix = models.CharField(max_length=16, unique=True)
    name = models.CharField("what for", max_length=200)
    tenant = models.CharField(max_length=128, blank=True, default="")
    #: Separated by spaces, as in RFC 6749.
    scopes = models.CharField(max_length=2000, blank=True, default="")
    #: How often it may be used, as in A2A_RATE_PER_CALLER, which this replaces; empty = as that says.
    rate = models.CharField(max_length=64, blank=True, default="", db_default="")
    #: SHA-256 of the secret, in hexadecimal.
    digest = models.CharField(max_length=64)
    #: The secret before the last rotation goes on until then.
    previous_digest = models.CharField(max_length=64, blank=True, default="")
    previous_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    rotated_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField("expires", null=True, blank=True)
    revoked_at = models.DateTimeField(null=True)
    #: To about a minute.
    last_used_at = models.DateTimeField(null=True)
    #: The same of the previous secret: does somebody still have to change?
    previous_used_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.prefix} ({self.name})"
