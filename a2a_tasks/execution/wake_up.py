"""The wake-up of Celery's workers: a message for each queue with due runs. It contains the queue's name and no data.

Publishing takes a millisecond and may block, so one thread does it. Hints during a publication and shortly after share
one message: a job costs the worker more than a query of the table. Workers also poll, so a lost message costs a second.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time

from a2a_tasks import process_lifetime, pubsub
from a2a_tasks.execution.celery_app import app
from a2a_tasks.execution.dispatch import by_workers
from a2a_tasks.execution.jobs import carry_due_runs
from a2a_tasks.outages import ThrottledLogger

__all__ = ["install"]

logger = logging.getLogger(__name__)
#: Minimum seconds between two messages.
MIN_INTERVAL_SECONDS = 0.01
_outage = ThrottledLogger(logger, "the broker did not take a wake-up of workers")


class _WakeUps:
    def __init__(self) -> None:
        self._due: set[str] = set()
        self._lock = threading.Lock()
        self._has_due = threading.Event()
        self._publishing = threading.Lock()
        self._thread: threading.Thread | None = None

    def on_hint(self, hint: pubsub.Hint) -> None:
        """Note the queue of a hint, and wake the publishing thread. Any thread."""
        if not isinstance(hint, pubsub.RunQueued) or not by_workers():
            return
        with self._lock:
            self._due.add(hint.queue)
            if self._thread is None or not self._thread.is_alive():  # also after a fork
                self._thread = threading.Thread(target=self._run, name="wake-up", daemon=True)
                self._thread.start()
        self._has_due.set()

    def _run(self) -> None:
        while True:
            self._has_due.wait()
            self._has_due.clear()
            self.publish()
            time.sleep(MIN_INTERVAL_SECONDS)

    def publish(self) -> None:
        """Publish the noted queues; returns when they are published, by this thread or another."""
        with self._publishing:
            with self._lock:
                due, self._due = self._due, set()
            for queue in due:
                self._publish_queue(queue)

    def _publish_queue(self, queue: str) -> None:
        try:
            app.send_task(carry_due_runs.name, queue=queue, expires=60, retry=False)
        except Exception as fault:  # noqa: BLE001 - any broker's error; workers poll
            _outage.warning(fault)


_publisher = _WakeUps()
_installed = pubsub.listen(_publisher.on_hint)


def install() -> None:
    """Publish every run that becomes due in this process, from now on to its end."""
    _installed.__enter__()
    process_lifetime.on_stop(functools.partial(asyncio.to_thread, _publisher.publish))
