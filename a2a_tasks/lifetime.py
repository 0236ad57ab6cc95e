"""The life of this process: serving, then draining, then stopped.

The launcher (`manage.py serve`) drives it; whoever holds something open for a client, or runs something beside the
requests, registers here to be told. Imports nothing of the host, so that every room may use it.

    lifetime.on_start(poller.start)                # awaited in the serving loop, before the first connection
    unregister = lifetime.on_drain(stream.end)     # asked to end; called once, must not block
    lifetime.on_stop(hub.close)                    # awaited after the last request, before the loop ends
    if lifetime.draining(): ...                    # /readyz answers 503

Draining is one way: a process that drains never serves again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable

__all__ = [
    "Lifetime",
    "begin_drain",
    "drain_left",
    "draining",
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
    """One process's life. The module's functions are those of the process's own; tests make others."""

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
        """Have `callback` awaited once by `start()`, in order of registration. Returns the unregister.

        Only a served process starts: commands, tests and workers do not, so helpers must also start by themselves
        at their first use. RuntimeError when the process has started already.
        """
        with self._lock:
            if self._started:
                raise RuntimeError(f"{callback!r} came too late: the process has started")
            key = next(self._ids)
            self._start_callbacks[key] = callback
        return lambda: self._forget(self._start_callbacks, key)

    async def start(self) -> None:
        """Await the start callbacks. An exception is the caller's: a host that cannot start must not serve."""
        with self._lock:
            self._started = True
            callbacks = list(self._start_callbacks.values())
            self._start_callbacks.clear()
        for callback in callbacks:
            await callback()

    def draining(self) -> bool:
        """Has the process been asked to end? Cheap; any thread."""
        return self._draining

    def drain_left(self) -> float:
        """Seconds left of the drain, for helpers that finish work in `stop()`; 0.0 when none, or none began."""
        return max(0.0, self._deadline - time.monotonic())

    def begin_drain(self, seconds: float = 0.0) -> None:
        """Ask everything open to end, within `seconds`. Idempotent; any thread. Callbacks run in the caller's.

        An exception of a callback is logged and does not keep the others from being told.
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
        """Have `callback` called once when the drain begins; at once when it already has. Returns the unregister.

        The callback may be called from any thread and must not block: set an event, `call_soon_threadsafe`.
        A stream that opens while the process drains is therefore told as well, not forgotten.
        """
        with self._lock:
            if not self._draining:
                key = next(self._ids)
                self._drain_callbacks[key] = callback
                return lambda: self._forget(self._drain_callbacks, key)
        _tell(callback)
        return lambda: None

    def on_stop(self, callback: LoopCallback) -> Unregister:
        """Have `callback` awaited once by `stop()`. Last registered is first stopped. Returns the unregister."""
        with self._lock:
            key = next(self._ids)
            self._stop_callbacks[key] = callback
        return lambda: self._forget(self._stop_callbacks, key)

    async def stop(self) -> None:
        """Begin the drain if nobody has, then await the stop callbacks one by one, last registered first.

        Idempotent: a callback is awaited once. An exception is logged and does not keep the others from stopping.
        """
        self.begin_drain()
        while (callback := self._take_last()) is not None:
            try:
                await callback()
            except Exception:  # whatever a helper does wrong, the others still have to be stopped
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
        logger.exception("%r failed when told to drain", callback)


_process = Lifetime()
on_start = _process.on_start
start = _process.start
draining = _process.draining
drain_left = _process.drain_left
begin_drain = _process.begin_drain
on_drain = _process.on_drain
on_stop = _process.on_stop
stop = _process.stop
