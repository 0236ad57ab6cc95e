"""The bell: tells Celery's workers that runs are due. It carries a queue's name and nothing else.

Publishing costs a millisecond and may block, so one thread does it; whatever comes in meanwhile rings once.
Workers also poll, so a lost ring costs a second.
"""

from __future__ import annotations

import logging
import threading

from a2a_tasks import wakeups
from a2a_tasks.execution.dispatch import by_workers
from a2a_tasks.execution.jobs import carry_due_runs

__all__ = ["install"]

logger = logging.getLogger(__name__)


class _Bell:
    def __init__(self) -> None:
        self._due: set[str] = set()
        self._lock = threading.Lock()
        self._rung = threading.Event()
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
            with self._lock:
                due, self._due = self._due, set()
            for queue in due:
                self._ring(queue)

    def _ring(self, queue: str) -> None:
        try:
            carry_due_runs.apply_async(queue=queue, expires=60, retry=False)
        except Exception as fault:  # noqa: BLE001 - any broker's error; workers poll
            logger.warning("the bell of %s did not ring: %s", queue, fault)


_bell = _Bell()
_installed = wakeups.listen(_bell.hear)


def install() -> None:
    """Ring for every run that becomes due in this process, from now on."""
    _installed.__enter__()
