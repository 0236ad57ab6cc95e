"""Quarantine: the way a run starts again after its process has died, and the deaths that count against it.

If a process dies with several runs, the cause is unknown, so only a death without other runs counts (MAX_ATTEMPTS).
One run may still be the cause. Shared deaths move each run, step by step, into a process without other runs:

1. After the first shared death all runs start again at once: most deaths are not caused by a run.
2. After the second one in a row they start in small groups (`GROUP` in a process). A run leaves its group when it has
   lived longer than ever before.
3. After the third one each run starts in a process of its own.

An attempt that got further than all earlier attempts, by a kept step or by more events, resets the count of its own
deaths. If it died together with other runs, it resets the count of shared deaths, too. The number of resets is
limited, since a run may get further and kill its process each time. Such a run gets a process of its own as well, and
its task fails in the end. See docs/decisions/0004.
"""

from __future__ import annotations

import enum

from a2a_tasks.models import Run

__all__ = ["CLEARED", "GROUP", "RENEWED", "Quarantine", "count_death"]

#: Maximum number of suspects in one process, until each of them has lived longer than ever before.
GROUP = 10
#: Number of the last attempt of a run that can reset the count of its shared deaths by getting further.
CLEARED = 6
#: Number of the last attempt of a run that can reset the count of its own deaths by getting further.
RENEWED = 30


class Quarantine(enum.IntEnum):
    """A way to start a run. Its value is the number of consecutive shared deaths from which it applies."""

    NONE = 0
    GROUP = 2
    PROCESS = 3

    @classmethod
    def after(cls, shared_deaths: int) -> Quarantine:
        """Return the quarantine of a run with this number of shared deaths."""
        return max(stage for stage in cls if stage <= shared_deaths)


def count_death(run: Run, last_event: int, *, others: int, stepped: bool) -> None:
    """Count a death of the run's process, which held `others` other runs. The row is not saved.

    `stepped`: True if the attempt has kept a step.
    """
    events = last_event - max(run.died_at_event, run.input_number)
    further = stepped or events > run.max_events
    if further and run.attempt <= RENEWED:
        run.deaths = 0
    if others:
        cleared = further and run.attempt <= CLEARED
        run.shared_deaths = 1 if cleared else run.shared_deaths + 1
    else:  # a run that died without other runs stays in quarantine, however far it got
        run.deaths += 1
    run.died_at_event, run.max_events = last_event, max(run.max_events, events)
    run.longest_life = max(run.longest_life, _life(run))


def _life(run: Run) -> float:
    """Return the longest possible life of this attempt, in seconds.

    Its last heartbeat came one lease before the lease's end, and the next heartbeat did not come.
    """
    if run.started_at is None or run.lease_until is None:
        return 0.0
    return (run.lease_until - run.started_at).total_seconds() - run.lease_seconds / 2
