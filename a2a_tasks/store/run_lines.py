"""The log lines of runs: written in batches a moment after they were logged, and read by operators.

Writes take no lock and are not fenced: lines of an attempt that has lost its task still show what the attempt did.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import operator
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from django.db import transaction
from django.db.models import Count, Max, QuerySet

from a2a_tasks.models import Run, RunLine

__all__ = ["MAX_LENGTH", "RunLogLine", "count_lines", "cut_lines", "of", "of_run", "write"]

#: Maximum number of characters of a line; the rest is cut off.
MAX_LENGTH = 2000
MAX_LOGGER_LENGTH = 128


@dataclasses.dataclass(frozen=True, slots=True)
class RunLogLine:
    """A line, as it was logged."""

    run: int
    attempt: int
    at: datetime.datetime
    #: The number of the level in `logging`.
    level: int
    logger: str
    text: str


@transaction.atomic
def write(lines: Sequence[RunLogLine]) -> None:
    """Write lines of any runs, each after the existing lines of its run. Lines of deleted runs are dropped."""
    numbers = _next_numbers({line.run for line in lines})
    rows = [row for line in lines if (row := _row(line, numbers)) is not None]
    # Two attempts may log at once if one has lost its task: then one of two lines with the same number is enough.
    RunLine.objects.bulk_create(rows, ignore_conflicts=True)


def _next_numbers(runs: Collection[int]) -> dict[int, Iterator[int]]:
    there = Run.objects.filter(pk__in=runs).values_list("pk", flat=True)
    lines_of_runs = RunLine.objects.filter(run__in=runs).values_list("run")
    last: dict[int, int] = defaultdict(int, lines_of_runs.annotate(Max("number")).order_by())
    return {run: iter(range(last[run] + 1, 2**31)) for run in there}


def _row(line: RunLogLine, numbers: dict[int, Iterator[int]]) -> RunLine | None:
    if line.run not in numbers:
        return None
    return RunLine(
        run_id=line.run,
        number=next(numbers[line.run]),
        attempt=line.attempt,
        at=line.at,
        level=line.level,
        logger=line.logger[:MAX_LOGGER_LENGTH],
        text=line.text[:MAX_LENGTH],
    )


def of(task: int) -> QuerySet[RunLine]:
    """Return the lines of all runs of a task, by time."""
    return RunLine.objects.filter(run__task=task).order_by("at", "run_id", "number")


def count_lines(tasks: Collection[int]) -> dict[int, int]:
    """Return the number of log lines of each of these tasks, without tasks that have none."""
    rows = RunLine.objects.filter(run__task__in=tasks).order_by().values_list("run__task_id")
    return dict(rows.annotate(Count("number")))


def cut_lines(task: int, limit: int) -> int:
    """Delete the first lines of a task's runs, at most `limit`; return the number of deleted lines."""
    rows = RunLine.objects.filter(run__task=task).order_by("run_id", "number")
    keys = list(rows.values_list("run_id", "number")[:limit])
    gone = 0
    for run, of_one in itertools.groupby(keys, key=operator.itemgetter(0)):
        *_, (_, last) = of_one
        gone += RunLine.objects.filter(run=run, number__lte=last).delete()[0]
    return gone


def of_run(run: int, *, after: int = 0) -> QuerySet[RunLine]:
    """Return the lines of a run after a number, in order."""
    return RunLine.objects.filter(run=run, number__gt=after).order_by("number")
