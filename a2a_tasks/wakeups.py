"""Hints: "task T has events up to n", "there is due work", "stop run R". Never data, never needed.

Everybody who hears a hint reads the database; everybody also polls, so that all is correct with hints switched off
and only slower (law 1). In the process a hint is a function call, thread-safe; between processes it is a Redis
publish by one background thread, so that a writer never waits for Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import redis
import redis.asyncio
from django.conf import settings

from a2a_tasks.protocol.lifecycle import Recorded

__all__ = ["Committed", "Due", "Hint", "Stop", "Subscriber", "announce", "listen"]

log = logging.getLogger(__name__)
RECONNECT_SECONDS = 1.0


@functools.cache
def _prefix() -> str:
    """Names this host's channels: Redis's pub/sub knows no databases, and hosts may share a server."""
    host = f"{settings.SECRET_KEY}/{settings.DATABASES['default']['NAME']}"
    return f"a2a:{hashlib.sha256(host.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Committed:
    """A task has new events, up to `last`. In the writer's own process the events come along."""

    task: int
    last: int
    events: Sequence[Recorded] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """A run has lost its task: its agent is to be stopped."""

    run: int


@dataclass(frozen=True, slots=True)
class Due:
    """A run is waiting for a process."""

    queue: str


Hint = Committed | Stop | Due
_listeners: set[Callable[[Hint], None]] = set()


@contextlib.contextmanager
def listen(callback: Callable[[Hint], None]) -> Iterator[None]:
    """Call `callback` with every hint of this process, in the thread that gives it, until the block ends."""
    _listeners.add(callback)
    try:
        yield
    finally:
        _listeners.discard(callback)


def announce(hint: Hint) -> None:
    """Give a hint to this process and the others. Call it after the commit. Never blocks, never raises."""
    for callback in tuple(_listeners):
        try:
            callback(hint)
        except Exception:
            log.exception("a listener failed over %s", hint)
    if settings.REDIS_URL and not isinstance(
        hint, Due
    ):  # due work is Celery's bell (execution/bell.py)
        _publisher.put(hint)


def channel(task: int) -> str:
    """The Redis channel of a task's hints."""
    return f"{_prefix()}:task:{task}"


def _stop_channel() -> str:
    return f"{_prefix()}:stop"


def _message(hint: Committed | Stop) -> tuple[str, str]:
    if isinstance(hint, Stop):
        return _stop_channel(), str(hint.run)
    return channel(hint.task), str(hint.last)


class _Publisher:
    """One thread that publishes what is put to it, many at a time. If Redis is away, hints are dropped."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Committed | Stop] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, hint: Committed | Stop) -> None:
        self._waiting.put(hint)
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()

    def _batch(self) -> list[Committed | Stop]:
        found = [self._waiting.get()]
        with contextlib.suppress(queue.Empty):
            while len(found) < 1000:  # noqa: PLR2004 - a pipeline of a sane size
                found.append(self._waiting.get_nowait())
        return found

    def _run(self) -> None:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2
        )
        while True:
            batch = self._batch()
            try:
                with client.pipeline(transaction=False) as pipe:
                    for hint in dict.fromkeys(map(_message, batch)):
                        pipe.publish(*hint)
                    pipe.execute()
            except redis.RedisError as fault:
                log.warning("hints are not getting through: %s", fault)


_publisher = _Publisher()


class Subscriber:
    """One Redis connection that hears the hints of other processes for one event loop.

    It reconnects by itself; what was said meanwhile is lost, and found by polling.
    """

    def __init__(self, callback: Callable[[Hint], None]) -> None:
        self._callback = callback
        self._wanted: dict[str, int] = {}
        self._acknowledged: dict[str, asyncio.Event] = {}
        self._pubsub: redis.asyncio.client.PubSub | None = None
        self._reader: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin listening, if hints go over Redis at all."""
        if settings.REDIS_URL and self._reader is None:
            self._reader = asyncio.create_task(self._read())

    async def close(self) -> None:
        """Stop listening."""
        reader, self._reader = self._reader, None
        while (
            reader is not None and not reader.done()
        ):  # redis-py swallows a cancellation now and then
            reader.cancel()
            await asyncio.wait({reader}, timeout=0.1)

    async def follow(self, name: str) -> None:
        """Hear a channel. Returns once Redis has said so, or after a moment if it does not."""
        self.start()
        if self._reader is None:
            return
        self._wanted[name] = self._wanted.get(name, 0) + 1
        acknowledged = self._acknowledged.setdefault(name, asyncio.Event())
        if self._pubsub is None:
            return  # the reader subscribes to everything wanted when it connects
        with contextlib.suppress(redis.RedisError, OSError, TimeoutError):
            if self._wanted[name] == 1:
                await self._pubsub.subscribe(name)
            async with asyncio.timeout(0.5):
                await acknowledged.wait()

    async def unfollow(self, name: str) -> None:
        """Hear a channel no longer."""
        left = self._wanted.get(name, 0) - 1
        if left > 0:
            self._wanted[name] = left
            return
        self._wanted.pop(name, None)
        self._acknowledged.pop(name, None)
        if self._pubsub is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                await self._pubsub.unsubscribe(name)

    async def _read(self) -> None:
        while True:
            try:
                await self._listen()
            except (redis.RedisError, OSError) as fault:
                log.warning("no hints from other processes: %s", fault)
            self._pubsub = None
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        async with (
            redis.asyncio.Redis.from_url(settings.REDIS_URL) as client,
            client.pubsub() as pubsub,
        ):
            await pubsub.subscribe(_stop_channel(), *self._wanted)
            self._pubsub = pubsub
            async for message in pubsub.listen():
                self._hear(message)

    def _hear(self, message: dict[str, bytes]) -> None:
        name = message["channel"].decode()
        if message["type"] == "subscribe":  # type: ignore[comparison-overlap]
            if name in self._acknowledged:
                self._acknowledged[name].set()
        elif message["type"] == "message":  # type: ignore[comparison-overlap]
            try:
                self._callback(_hint(name, message["data"].decode()))
            except (
                Exception
            ):  # nonsense from somebody else on this Redis must not end the listening
                log.exception("a hint on %s failed", name)


def _hint(name: str, data: str) -> Hint:
    if name == _stop_channel():
        return Stop(int(data))
    return Committed(int(name.rpartition(":")[2]), int(data))
