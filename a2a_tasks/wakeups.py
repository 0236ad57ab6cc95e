"""Hints: "task T has events up to n", "there is due work", "stop run R", "look at the switches". Never data, never needed.

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
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

import redis
import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from a2a_tasks.outages import Outage
from a2a_tasks.protocol.lifecycle import Recorded

__all__ = [
    "Committed",
    "Due",
    "Hint",
    "Stop",
    "Subscriber",
    "Switched",
    "announce",
    "listen",
    "prefix",
]

log = logging.getLogger(__name__)
RECONNECT_SECONDS = 1.0
#: Longest a command to Redis waits.
PATIENCE_SECONDS = 1.0
#: Longest a reader of the log waits for Redis to confirm that it will hear of it.
CONFIRM_SECONDS = 0.5
#: A subscriber that hears nothing for so long asks whether Redis is there, and gives it as long again to answer.
SILENCE_SECONDS = 2.0
#: Hints that wait to be published; the oldest give way.
MOST_WAITING = 10_000
_unsaid = Outage(log, "hints are not getting through")
_unheard = Outage(log, "no hints from other processes")


@functools.cache
def prefix() -> str:
    """What this host's channels and keys begin with: Redis's pub/sub knows no databases, and hosts may share a server."""
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


@dataclass(frozen=True, slots=True)
class Switched:
    """An operator has switched something of an agent."""


Hint = Committed | Stop | Due | Switched
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
    _tell_here(hint)
    if settings.REDIS_URL and not isinstance(
        hint, Due
    ):  # due work is Celery's bell (execution/bell.py)
        _publisher.put(hint)


def _tell_here(hint: Hint) -> None:
    for callback in tuple(_listeners):
        try:
            callback(hint)
        except Exception:
            log.exception("a listener failed over %s", hint)


def channel(task: int) -> str:
    """The Redis channel of a task's hints."""
    return f"{prefix()}:task:{task}"


def _stop_channel() -> str:
    return f"{prefix()}:stop"


def _switched_channel() -> str:
    return f"{prefix()}:switched"


def _message(hint: Committed | Stop | Switched) -> tuple[str, str]:
    if isinstance(hint, Switched):
        return _switched_channel(), ""
    if isinstance(hint, Stop):
        return _stop_channel(), str(hint.run)
    return channel(hint.task), str(hint.last)


class _Publisher:
    """One thread that publishes what is put to it, many at a time. If Redis is away, hints are dropped."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, str]] = deque(maxlen=MOST_WAITING)
        self._some = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, hint: Committed | Stop | Switched) -> None:
        self._waiting.append(_message(hint))
        self._some.set()
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()

    def _batch(self) -> list[tuple[str, str]]:
        """What waits, in order, each once; waits for it."""
        self._some.wait()
        self._some.clear()
        return list(dict.fromkeys(self._waiting.popleft() for _ in range(len(self._waiting))))

    def _run(self) -> None:
        client = redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
            retry=Retry(NoBackoff(), 1),  # on a new connection, since the old one may have died
        )
        while True:
            batch = self._batch()
            try:
                with client.pipeline(transaction=False) as pipe:
                    for hint in batch:
                        pipe.publish(*hint)
                    pipe.execute()
            except redis.RedisError as fault:
                self._waiting.clear()  # old hints help nobody: their readers have polled
                _unsaid.count(fault)


_publisher = _Publisher()


@contextlib.asynccontextmanager
async def _at_most(seconds: float) -> AsyncIterator[None]:
    """Leave the block after so many seconds, or with whatever goes wrong: nobody fails for want of a hint.

    (While its connection breaks, redis-py raises AttributeError and others.)
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except Exception as fault:  # noqa: BLE001 - see above
        log.debug("Redis did not confirm: %r", fault)


class Subscriber:
    """One Redis connection that hears the hints of other processes for one event loop.

    It reconnects by itself; what was said meanwhile is lost, and found by polling.
    """

    def __init__(self, callback: Callable[[Hint], None], *, everything: bool = False) -> None:
        """`everything`: hear of all tasks, not only of those followed."""
        self._callback, self._everything = callback, everything
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
        async with _at_most(CONFIRM_SECONDS):
            if self._wanted[name] == 1:
                await self._pubsub.subscribe(name)
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
            async with _at_most(CONFIRM_SECONDS):
                await self._pubsub.unsubscribe(name)

    async def _read(self) -> None:
        while True:
            try:
                await self._listen()
            except Exception as fault:  # noqa: BLE001 - whatever it is, the next connection is made
                _unheard.count(fault)
            self._pubsub = None
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        """Hear what is said on one connection, until it breaks. Raises redis.RedisError, OSError."""
        client = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
            retry=AsyncRetry(NoBackoff(), 0),  # `_read` begins anew, and `follow` must not wait
        )
        async with client, client.pubsub() as pubsub:
            await pubsub.subscribe(_stop_channel(), _switched_channel(), *self._wanted)
            if self._everything:
                await pubsub.psubscribe(f"{prefix()}:task:*")
            self._pubsub = pubsub
            asked = False
            while True:
                message = await pubsub.get_message(timeout=SILENCE_SECONDS)
                if message is not None:
                    self._hear(message)
                elif asked:
                    raise redis.TimeoutError("Redis is silent")
                else:
                    await pubsub.ping()
                asked = message is None

    def _hear(self, message: dict[str, bytes]) -> None:
        name = (message["channel"] or b"").decode()  # the answer to a ping names none
        if message["type"] == "subscribe":  # type: ignore[comparison-overlap]
            if name in self._acknowledged:
                self._acknowledged[name].set()
        elif message["type"] in ("message", "pmessage"):  # type: ignore[comparison-overlap]
            try:
                self._pass_on(_hint(name, message["data"].decode()))
            except (
                Exception
            ):  # nonsense from somebody else on this Redis must not end the listening
                log.exception("a hint on %s failed", name)

    def _pass_on(self, hint: Hint) -> None:
        """To who made it; what was switched concerns the whole process."""
        if isinstance(hint, Switched):
            _tell_here(hint)
        else:
            self._callback(hint)


def _hint(name: str, data: str) -> Hint:
    if name == _switched_channel():
        return Switched()
    if name == _stop_channel():
        return Stop(int(data))
    return Committed(int(name.rpartition(":")[2]), int(data))
