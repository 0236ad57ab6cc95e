"""The wake-up of Celery's workers for queues with due runs. It contains the queue's name and no data.

It goes over Redis (`a2a_tasks.wake_ups`), and without REDIS_URL as a Celery message. Either may block, so one thread does
it. Hints during a publication and shortly after share one wake-up. Workers also poll, so a lost one costs a second.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from a2a_tasks import process_lifetime, pubsub, wake_ups
from a2a_tasks.conf import project
from a2a_tasks.execution.celery_app import app
from a2a_tasks.execution.dispatch import by_workers
from a2a_tasks.execution.jobs import carry_due_runs
from a2a_tasks.outages import ThrottledLogger

if TYPE_CHECKING:
    import redis

__all__ = ["install"]

logger = logging.getLogger(__name__)
#: Seconds after a wake-up in which a hint shows that many runs become due, and further seconds that it then waits.
BUSY_SECONDS, MIN_INTERVAL_SECONDS = 0.002, 0.01
_outage = ThrottledLogger(logger, "a wake-up of workers was not taken")


class _WakeUps:
    def __init__(self) -> None:
        self._due: set[str] = set()
        self._lock = threading.Lock()
        self._has_due = threading.Event()
        self._publishing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._redis: redis.Redis | None = None

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
            time.sleep(BUSY_SECONDS)
            if self._has_due.is_set():
                time.sleep(MIN_INTERVAL_SECONDS)

    def publish(self) -> None:
        """Publish the noted queues; returns when they are published, by this thread or another."""
        with self._publishing:
            with self._lock:
                due, self._due = self._due, set()
            try:
                self._send(due)
            except Exception as fault:  # noqa: BLE001 - any broker's error; workers poll
                _outage.warning(fault)

    def _send(self, queues: Collection[str]) -> None:
        if project.REDIS_URL:
            self._redis = self._redis or wake_ups.connect()
            wake_ups.push(self._redis, queues)
            return
        for queue in queues:
            app.send_task(carry_due_runs.name, queue=queue, expires=60, retry=False)


_publisher = _WakeUps()
_installed = pubsub.listen(_publisher.on_hint, pubsub.RunQueued)


def install() -> None:
    """Publish every run that becomes due in this process, from now on to its end."""
    _installed.__enter__()
    process_lifetime.on_stop(functools.partial(asyncio.to_thread, _publisher.publish))
