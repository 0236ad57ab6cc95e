"""What ended, counted up ahead for the dashboard. Nothing but tasks, in numbers: it may be thrown away at any time."""

from __future__ import annotations

from django.db import models


class EndedSums(models.Model):
    """What ended in a period that begins then, in those of its slots that are over (`store/sums.py`)."""

    period = models.CharField(max_length=16)
    since = models.DateTimeField()
    #: As JSON.
    body = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["period", "since"], name="what_ended_is_counted_up_once_a_period"
            )
        ]

    def __str__(self) -> str:
        return f"{self.period} from {self.since:%Y-%m-%d %H:%M}"
