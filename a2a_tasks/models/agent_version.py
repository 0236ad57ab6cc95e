"""Versions of agents that environments of their own have announced. `store/versions.py` writes them."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class AgentVersion(models.Model):
    """One version of an agent whose code is in another environment."""

    slug = models.CharField("agent", max_length=64)
    version = models.CharField(max_length=32)
    environment = models.CharField(max_length=64)
    #: The agent as JSON (`agents/declaration.py`), and its SHA-256.
    declaration = models.TextField()
    digest = models.CharField(max_length=64)
    #: The signature with the key of the environment; empty = unsigned.
    signature = models.CharField(max_length=64, blank=True, default="")
    #: The version of the host in that environment.
    host = models.CharField(max_length=32)
    announced_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "version of an agent"
        verbose_name_plural = "versions of agents"
        constraints = [
            models.UniqueConstraint(fields=["slug", "version"], name="a_version_is_announced_once")
        ]

    def __str__(self) -> str:
        return f"{self.slug} {self.version}"
