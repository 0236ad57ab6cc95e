"""The watchdog of a worker's bell: do messages of the broker still reach this process?

A broker connection may die without a word, or stay up while Celery consumes nothing. Polling carries the work
meanwhile; the watchdog says so, has Celery connect anew, and when that does not help ends the worker as soon as it
carries nothing, for its supervisor to start another. A worker that hears nothing rings itself: over a new connection,
into a queue of its own that it consumes together with its others. If that cannot be done the broker is away, and
waiting is right. See docs/decisions/0084.

It also ends a worker in which no Python code has run for that long: an agent is in a C function that keeps the
interpreter's lock, so the worker neither beats nor claims, and does not end by itself. See docs/decisions/0176.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import signals
from celery.worker import state
from kombu.entity import Exchange, Queue

from a2a_tasks import process
from a2a_tasks.conf import conf
from a2a_tasks.execution import worker

__all__ = ["Watchdog"]

logger = logging.getLogger(__name__)
#: Seconds after which the broker forgets the queue of a worker that is gone.
FORGOTTEN = 3600.0
#: The job in the queue: by name, since this module stands below the jobs.
JOB = "a2a_tasks.execution.jobs.answer_watchdog"
#: Looks in the time until the worker counts as deaf.
LOOKS = 4
#: Longest that Celery sleeps between two attempts to connect (30 s), and the attempt.
BETWEEN_ATTEMPTS = 40.0
#: Seconds Celery gets after the drain to end the worker in good order.
LAST_SECONDS = 2.0
EXIT_CODE = 1


class Watchdog:
    """Looks again and again whether the bell is heard. The functions say how a worker rings itself, and what it does."""

    def __init__(
        self,
        seconds: float,
        *,
        ring: Callable[[], None],
        busy: Callable[[], bool],
        connected: Callable[[], bool],
        reconnect: Callable[[], None],
        leave: Callable[[], bool],
    ) -> None:
        self._seconds = seconds
        self._ring, self._busy, self._connected = ring, busy, connected
        self._reconnect, self._leave = reconnect, leave
        self._heard = threading.Event()
        #: Has the bell ever been heard? If not, another worker would not hear it either.
        self._ever = False
        #: When it rang itself and has heard nothing since; None = all is well.
        self._silent_since: float | None = None
        #: Celery was about to connect when it was last looked at.
        self._asleep = False
        self._reconnected = self._troubled = False

    def hear(self, **_: Any) -> None:
        """A message has come in. Any thread."""
        self._heard.set()

    def watch(self) -> None:
        """Look for ever."""
        while True:
            time.sleep(self._seconds / LOOKS)
            try:
                self.look(time.monotonic())
            except Exception:
                logger.exception("the watchdog could not look")

    def look(self, now: float) -> None:
        """See whether the bell was heard since the last look, and do what has to be done if it was not for long."""
        if self._heard.is_set():
            self._well()
        elif self._busy():
            return  # what has come in waits for its turn; the rest waits for that
        elif not self._reaches_broker():
            self._silent_since = None
        elif self._silent_since is None or self._just_connected():
            self._silent_since = now
        else:
            self._silent(now - self._silent_since - BETWEEN_ATTEMPTS * self._asleep)

    def _just_connected(self) -> bool:
        """Has Celery connected since the last look? Then its bell has had no time yet."""
        before, self._asleep = self._asleep, not self._connected()
        return before and not self._asleep

    def _well(self) -> None:
        if self._troubled:
            logger.warning("the bell is heard again")
        self._heard.clear()
        self._ever, self._silent_since = True, None
        self._reconnected = self._troubled = False

    def _reaches_broker(self) -> bool:
        try:
            self._ring()
        except Exception as fault:  # noqa: BLE001 - any broker's error
            self._troubled = True
            logger.warning("the broker does not answer: %s; work is found by polling", fault)
            return False
        return True

    def _silent(self, seconds: float) -> None:
        if seconds >= self._seconds and not self._reconnected:
            logger.warning(
                "the bell is silent for %.0f s although the broker answers; connecting anew",
                seconds,
            )
            self._reconnected = self._troubled = True
            self._reconnect()
        elif seconds >= 2 * self._seconds:
            leaves = self._ever and self._leave()
            logger.error(
                "the bell is silent for %.0f s; %s",
                seconds,
                "this worker ends" if leaves else "work is found by polling",
            )


class _Worker:
    """What the watchdog does to a Celery worker."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def ring(self) -> None:
        """Send this worker a job over a new connection. Raises the broker's errors."""
        queue = worker.WATCHDOG + self._consumer.hostname
        with self._consumer.app.connection_for_write() as connection:
            connection.connect()  # once: whoever publishes first would try again and again
            self._consumer.app.send_task(
                JOB, queue=queue, connection=connection, expires=60, retry=False
            )

    def busy(self) -> bool:
        """Are all its threads at work?"""
        return len(state.reserved_requests) >= int(self._consumer.controller.concurrency)

    def connected(self) -> bool:
        """Does Celery believe it is?"""
        return self._consumer.connection is not None

    def reconnect(self) -> None:
        """Have Celery's own loop meet a broken connection: it connects anew and loses nothing."""
        if self._consumer.hub is not None and self.connected():
            self._consumer.hub.call_soon(_break_connection)

    def leave(self) -> bool:
        """End the process if it carries no runs; False if it does."""
        if worker.carrying():
            return False
        threading.Thread(target=_end, name="leaving", daemon=True).start()
        return True


def _break_connection() -> None:
    raise ConnectionResetError("the watchdog heard nothing over this connection")


def _end() -> None:
    """Drain, have Celery leave its loop, and be gone even if that is what hangs."""
    try:
        worker.stop()
        state.should_stop = EXIT_CODE
        time.sleep(LAST_SECONDS)
    finally:
        process.leave_now(EXIT_CODE)


def _end_when_stuck(seconds: float) -> None:
    """Have the process end, with a trace of all threads, when this thread has not run for so many seconds.

    The timer is a thread of C, which does not need the interpreter's lock. Each call begins it anew.
    """
    while True:
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
        time.sleep(seconds / LOOKS)


def own_queue(name: str) -> Queue:
    """The queue in which the worker of that name rings itself. Nothing else must come into it."""
    key = worker.WATCHDOG + name
    return Queue(key, Exchange("watchdog"), routing_key=key, expires=FORGOTTEN)  # type: ignore[no-untyped-call]


@signals.celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def _on_setup(sender: str = "", instance: Any = None, **_: Any) -> None:
    """Consume the worker's own queue, too."""
    if conf.WATCHDOG_SECONDS:
        instance.app.amqp.queues.select_add(own_queue(sender))


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _on_ready(sender: Any = None, **_: Any) -> None:
    if not conf.WATCHDOG_SECONDS:
        return
    seconds = float(conf.WATCHDOG_SECONDS)
    threading.Thread(target=_end_when_stuck, args=(seconds,), name="pulse", daemon=True).start()
    hands = _Worker(sender)
    dog = Watchdog(
        seconds,
        ring=hands.ring,
        busy=hands.busy,
        connected=hands.connected,
        reconnect=hands.reconnect,
        leave=hands.leave,
    )
    signals.task_received.connect(dog.hear, weak=False)
    threading.Thread(target=dog.watch, name="watchdog", daemon=True).start()
