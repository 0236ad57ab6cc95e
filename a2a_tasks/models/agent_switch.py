"""Switches of agents: what operators have set while the host runs. `store/switches.py` writes them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class SwitchState(models.TextChoices):
    """How far an agent is on."""

    ON = "on"  #: as its class says
    DRAINING = "draining"  #: what there is goes on; no new tasks
    OFF = "off"  #: to clients there is no such agent; what was accepted is finished


class AgentSwitch(models.Model):
    """What was set of one agent. Agents without a row are on."""

    slug = models.CharField("agent", max_length=64, unique=True)
    state = models.CharField(max_length=16, choices=SwitchState.choices, default=SwitchState.ON)
    #: Runs of it that may be under way at once, on the whole host; null = any number.
    max_running = models.IntegerField(null=True, blank=True)
    #: Where its runs wait instead of the queue its class names; empty = there.
    queue = models.CharField(max_length=64, blank=True, default="")
    #: Who set it last, when, and why.
    by = models.CharField(max_length=256)
    at = models.DateTimeField(db_default=Now())
    reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        verbose_name = "agent"
        verbose_name_plural = "agents"
        constraints = [
            models.CheckConstraint(
                condition=Q(max_running__isnull=True) | Q(max_running__gte=0),
                name="a_limit_is_not_negative",
            )
        ]

    def __str__(self) -> str:
        return self.slug
