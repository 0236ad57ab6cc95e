"""Log lines of runs: what an agent's code told the log while it worked. For operators; clients see none of it."""

from __future__ import annotations

from django.db import models

from a2a_tasks.models.run import Run


class RunLine(models.Model):
    """One line. They are written a moment later, and a line may be missing: the log of the process has all of them."""

    pk = models.CompositePrimaryKey("run_id", "number")
    # No constraint in the database, as for steps: a line must not wait for a run's row, which its heartbeat locks.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="lines", db_index=False, db_constraint=False
    )
    #: Counts the lines of the run, through all its attempts, from 1.
    number = models.IntegerField()
    #: The attempt that said it.
    attempt = models.IntegerField()
    #: By the clock of the process.
    at = models.DateTimeField()
    #: As `logging` has it: 20 = INFO.
    level = models.SmallIntegerField()
    logger = models.CharField(max_length=128)
    text = models.TextField()

    def __str__(self) -> str:
        return f"line {self.number}"
