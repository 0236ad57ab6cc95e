"""Grants: rights of callers on agents. `access/grants.py` makes and reads them."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

#: Means every agent, or every caller.
ALL = "*"


class GrantRight(models.TextChoices):
    """The rights that can be granted."""

    USE = "use", "use: send messages to it, and see what comes of them"
    SEE = "see", "see: its card, alone and in the catalogue"
    OPERATE = "operate", "operate: see and cancel all its tasks, by the management API"


class Grant(models.Model):
    """One right of one grantee on one agent, or on all agents. A row is made and deleted, never changed."""

    #: A slug, or `ALL`.
    agent = models.CharField(max_length=64)
    #: A principal, `scope:<scope>`, `tenant:<tenant>`, or `ALL`.
    grantee = models.CharField("who", max_length=264)
    right = models.CharField("may", max_length=16, choices=GrantRight.choices)
    created_at = models.DateTimeField("since", db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "grantee", "right"], name="a_right_is_granted_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.grantee} may {self.right} {self.agent}"
