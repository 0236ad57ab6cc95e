"""Quarantine: how a run is begun again after its process has died, and which deaths count against it.

A process that dies with several runs says nothing about any one of them, so only a death alone counts (A2A_MAX_ATTEMPTS).
One run may still be the cause. Deaths beside others lead it, step by step, to where it can only die alone:

1. After the first one all runs begin again at once: most deaths have nothing to do with any run.
2. After the second one in a row they begin in small groups (`GROUP` in a process). A run leaves its group when it has
   lived longer than ever before.
3. After the third one each run begins in a process of its own.

An attempt that got further than all attempts before it, by a kept step or by more events, begins both counts anew. It
does so a limited number of times: a run may get further and kill its process each time. It comes to a process of its own
all the same, and is given up in the end.
See docs/decisions/0004.
"""

from __future__ import annotations

import enum

from a2a_tasks.models import Run

__all__ = ["CLEARED", "GROUP", "RENEWED", "Quarantine", "count_death"]

#: Suspects that one process has at once, until each of them has lived longer than ever before.
GROUP = 10
#: So many attempts of a run clear it of suspicion if they get further; later ones do not.
CLEARED = 6
#: So many attempts of a run begin the count of its deaths anew if they get further; later ones do not.
RENEWED = 30


class Quarantine(enum.IntEnum):
    """A way to begin a run. The values are the numbers of deaths beside others, in a row, that lead to it."""

    NONE = 0
    GROUP = 2
    PROCESS = 3

    @classmethod
    def after(cls, shared_deaths: int) -> Quarantine:
        """Return the quarantine of a run with so many deaths beside others."""
        return max(stage for stage in cls if stage <= shared_deaths)


def count_death(run: Run, last_event: int, *, beside: int, stepped: bool) -> None:
    """Count a death of the run's process, which carried `beside` other runs. The row is not saved.

    `stepped`: the attempt has kept a step.
    """
    events = last_event - max(run.died_at_event, run.input_number)
    further = stepped or events > run.furthest
    if further and run.attempt <= RENEWED:
        run.deaths = 0
    if beside:
        cleared = further and run.attempt <= CLEARED
        run.shared_deaths = 1 if cleared else run.shared_deaths + 1
    else:  # a run that died alone stays in quarantine, however far it got
        run.deaths += 1
    run.died_at_event, run.furthest = last_event, max(run.furthest, events)
    run.longest_life = max(run.longest_life, _life(run))


def _life(run: Run) -> float:
    """Longest that this attempt can have lived: its last heartbeat was a lease before the lease's end, the next one did not come."""
    if run.started_at is None or run.lease_until is None:
        return 0.0
    return (run.lease_until - run.started_at).total_seconds() - run.lease_seconds / 2
