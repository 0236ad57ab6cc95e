"""The watchdog of a worker: it ends a process in which no Python code runs any more.

An agent is then in a C function that keeps the GIL: the worker neither extends leases nor claims runs, and cannot end
by itself. Other workers take its runs over; its supervisor starts another worker. See docs/decisions/0006.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time

from a2a_tasks.conf import conf

__all__ = ["start"]

#: Resets of the timer within the time after which it ends the process.
RENEWALS = 4


def _end_when_stuck(seconds: float) -> None:
    """End the process, with a trace of all threads, when this thread has not run for so many seconds.

    The timer is a C thread, which does not need the GIL. Each call restarts it.
    """
    while True:
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
        time.sleep(seconds / RENEWALS)


def start() -> None:
    """Start the watchdog of this process, unless it is switched off (`WATCHDOG_SECONDS`)."""
    if seconds := float(conf.WATCHDOG_SECONDS):
        threading.Thread(
            target=_end_when_stuck, args=(seconds,), name="watchdog", daemon=True
        ).start()
