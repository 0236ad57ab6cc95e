"""The life cycle of this process: serving, then draining, then stopped.

The launcher (`manage.py serve`) drives it. Code that holds something open for a client, or runs a background helper,
registers callbacks here. This module imports nothing of the host, so that every package may use it.

    process_lifetime.on_start(poller.start)                # awaited in the serving loop, before the first connection
    unregister = process_lifetime.on_drain(stream.end)     # asked to end; called once, must not block
    process_lifetime.on_stop(hub.close)                    # awaited after the last request, before the loop ends
    if process_lifetime.is_draining(): ...                 # /readyz answers 503

A drain is final: a process that drains never serves again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable

__all__ = [
    "Lifetime",
    "begin_drain",
    "drain_seconds",
    "is_draining",
    "on_drain",
    "on_start",
    "on_stop",
    "start",
    "stop",
]

logger = logging.getLogger(__name__)

DrainCallback = Callable[[], object]
LoopCallback = Callable[[], Awaitable[None]]
Unregister = Callable[[], None]


class Lifetime:
    """The life cycle of one process. The module's functions belong to this process's own; tests make others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = False
        self._draining = False
        self._deadline = 0.0
        self._ids = iter(range(2**63))
        self._start_callbacks: dict[int, LoopCallback] = {}
        self._drain_callbacks: dict[int, DrainCallback] = {}
        self._stop_callbacks: dict[int, LoopCallback] = {}

    def on_start(self, callback: LoopCallback) -> Unregister:
        """Register `callback` to be awaited once by `start()`, in order of registration. Returns the unregister.

        Only serving processes call `start()`. Commands, tests and workers do not, so helpers must also start themselves
        at their first use. Raises RuntimeError if the process has started already.
        """
        with self._lock:
            if self._started:
                raise RuntimeError(f"{callback!r} came too late: the process has started")
            key = next(self._ids)
            self._start_callbacks[key] = callback
        return lambda: self._forget(self._start_callbacks, key)

    async def start(self) -> None:
        """Await the start callbacks. Exceptions reach the caller: a host that cannot start must not serve."""
        with self._lock:
            self._started = True
            callbacks = list(self._start_callbacks.values())
            self._start_callbacks.clear()
        for callback in callbacks:
            await callback()

    def is_draining(self) -> bool:
        """Return whether the process has been asked to end. Cheap; callable from any thread."""
        return self._draining

    def drain_seconds(self) -> float:
        """Return the seconds left of the drain, for helpers that finish work in `stop()`; 0.0 before and after it."""
        return max(0.0, self._deadline - time.monotonic())

    def begin_drain(self, seconds: float = 0.0) -> None:
        """Ask every registered callback to end its work within `seconds`. Idempotent; callable from any thread.

        The callbacks run in the thread of the caller. An exception of one is logged, and the others are still called.
        """
        with self._lock:
            if self._draining:
                return
            self._deadline = time.monotonic() + seconds
            self._draining = True
            callbacks = list(self._drain_callbacks.values())
            self._drain_callbacks.clear()
        for callback in callbacks:
            _tell(callback)

    def on_drain(self, callback: DrainCallback) -> Unregister:
        """Register `callback` to be called once when the drain begins; at once if it has begun. Returns the unregister.

        The callback may be called from any thread and must not block: set an event, `call_soon_threadsafe`. A stream
        that opens while the process drains is therefore notified as well.
        """
        with self._lock:
            if not self._draining:
                key = next(self._ids)
                self._drain_callbacks[key] = callback
                return lambda: self._forget(self._drain_callbacks, key)
        _tell(callback)
        return lambda: None

    def on_stop(self, callback: LoopCallback) -> Unregister:
        """Register `callback` to be awaited once by `stop()`, last registered first. Returns the unregister."""
        with self._lock:
            key = next(self._ids)
            self._stop_callbacks[key] = callback
        return lambda: self._forget(self._stop_callbacks, key)

    async def stop(self) -> None:
        """Begin the drain if it has not begun, then await the stop callbacks one by one, last registered first.

        Idempotent: a callback is awaited once. An exception is logged, and the other callbacks are still awaited.
        """
        self.begin_drain()
        while (callback := self._take_last()) is not None:
            try:
                await callback()
            except Exception:  # one failing helper must not keep the others from being stopped
                logger.exception("stopping %r failed", callback)

    def _take_last(self) -> LoopCallback | None:
        with self._lock:
            return self._stop_callbacks.popitem()[1] if self._stop_callbacks else None

    def _forget(
        self, callbacks: dict[int, DrainCallback] | dict[int, LoopCallback], key: int
    ) -> None:
        with self._lock:
            callbacks.pop(key, None)


def _tell(callback: DrainCallback) -> None:
    try:
        callback()
    except Exception:  # one broken listener must not keep the rest of the process from ending
        logger.exception("%r failed at the drain", callback)


_process = Lifetime()
on_start = _process.on_start
start = _process.start
is_draining = _process.is_draining
drain_seconds = _process.drain_seconds
begin_drain = _process.begin_drain
on_drain = _process.on_drain
on_stop = _process.on_stop
stop = _process.stop
