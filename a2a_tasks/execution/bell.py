"""The bell: tells Celery's workers that runs are due. It carries a queue's name and nothing else.

Publishing costs a millisecond and may block, so one thread does it; whatever comes in meanwhile, or in the moment
after, rings once: a job costs the worker more than a look at the table. Workers also poll, so a lost ring costs a second.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time

from a2a_tasks import lifetime, wakeups
from a2a_tasks.execution.dispatch import by_workers
from a2a_tasks.execution.jobs import carry_due_runs
from a2a_tasks.outages import Outage

__all__ = ["install"]

logger = logging.getLogger(__name__)
#: Seconds from one ring to the next, at least.
REST = 0.01
_outage = Outage(logger, "the bell did not ring")


class _Bell:
    def __init__(self) -> None:
        self._due: set[str] = set()
        self._lock = threading.Lock()
        self._rung = threading.Event()
        self._ringing = threading.Lock()
        self._thread: threading.Thread | None = None

    def hear(self, hint: wakeups.Hint) -> None:
        """Any thread: remember the queue, and have the thread ring."""
        if not isinstance(hint, wakeups.Due) or not by_workers():
            return
        with self._lock:
            self._due.add(hint.queue)
            if self._thread is None or not self._thread.is_alive():  # also after a fork
                self._thread = threading.Thread(target=self._run, name="bell", daemon=True)
                self._thread.start()
        self._rung.set()

    def _run(self) -> None:
        while True:
            self._rung.wait()
            self._rung.clear()
            self.ring()
            time.sleep(REST)

    def ring(self) -> None:
        """Ring for what was heard so far; returns when that is done, by whomever."""
        with self._ringing:
            with self._lock:
                due, self._due = self._due, set()
            for queue in due:
                self._ring(queue)

    def _ring(self, queue: str) -> None:
        try:
            carry_due_runs.apply_async(queue=queue, expires=60, retry=False)
        except Exception as fault:  # noqa: BLE001 - any broker's error; workers poll
            _outage.count(fault)


_bell = _Bell()
_installed = wakeups.listen(_bell.hear)


def install() -> None:
    """Ring for every run that becomes due in this process, from now on, and to its end."""
    _installed.__enter__()
    lifetime.on_stop(functools.partial(asyncio.to_thread, _bell.ring))
