"""Log lines of runs: lines that an agent's code logs while it works. For operators; clients never see them."""

from __future__ import annotations

from django.db import models

from a2a_tasks.models.run import Run


class RunLine(models.Model):
    """One line. Lines are written with a delay, and a line may be missing: only the log of the process is complete."""

    pk = models.CompositePrimaryKey("run_id", "number")
    # No constraint in the database, as for steps: a line must not wait for a run's row, which its heartbeat locks.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="lines", db_index=False, db_constraint=False
    )
    #: Number of the line within the run, through all its attempts, from 1.
    number = models.IntegerField()
    #: The attempt that logged it.
    attempt = models.IntegerField()
    #: Time by the clock of the process.
    at = models.DateTimeField()
    #: Level of `logging`: 20 = INFO.
    level = models.SmallIntegerField()
    logger = models.CharField(max_length=128)
    text = models.TextField()

    def __str__(self) -> str:
        return f"line {self.number}"
