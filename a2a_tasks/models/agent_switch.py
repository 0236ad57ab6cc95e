"""Switches of agents: settings that operators change while the host runs. `store/switches.py` writes them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class SwitchState(models.TextChoices):
    """The state of an agent."""

    ON = "on"  #: takes messages, as its class declares
    DRAINING = "draining"  #: existing tasks go on; no new tasks
    OFF = "off"  #: clients see no such agent; accepted runs are finished


class AgentSwitch(models.Model):
    """The settings of one agent. Agents without a row are on."""

    slug = models.CharField("agent", max_length=64, unique=True)
    state = models.CharField(max_length=16, choices=SwitchState.choices, default=SwitchState.ON)
    #: Maximum number of its runs at once, on the whole host; null = any number.
    max_running = models.IntegerField(null=True, blank=True)
    #: The queue of its runs; empty = the queue that its class names.
    queue = models.CharField(max_length=64, blank=True, default="")
    #: The version that serves; empty = the host chooses.
    version = models.CharField(max_length=32, blank=True, default="", db_default="")
    #: The version that served before, to which a roll-back returns; null = none.
    version_before = models.CharField(max_length=32, null=True, blank=True)  # noqa: DJ001 - null and empty differ
    #: The version that gets a share of the new conversations, in percent; empty = none.
    canary = models.CharField(max_length=32, blank=True, default="", db_default="")
    canary_percent = models.FloatField(default=0, db_default=0)
    #: The operator of the last change, its time, and its reason.
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
            ),
            models.CheckConstraint(
                condition=Q(canary_percent__gte=0, canary_percent__lte=100),
                name="a_canary_gets_at_most_all",
            ),
        ]

    def __str__(self) -> str:
        return self.slug
