"""Hints: "task T has events up to n", "there is due work", "stop run R", "look at the switches".

A hint carries no data and is never needed: receivers read the database, and they also poll it. Without hints everything
is correct and only slower (law 1). Within the process a hint is a thread-safe function call. Between processes it is a
Redis publish by one background thread, so that a writer never waits for Redis.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import functools
import hashlib
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings

from a2a_tasks.conf import project
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.lifecycle import LogEvent

if TYPE_CHECKING or project.REDIS_URL:  # then it is loaded before the first request
    import redis.asyncio

__all__ = [
    "Committed",
    "RunQueued",
    "Hint",
    "Stop",
    "Subscriber",
    "OverridesChanged",
    "connect",
    "has_subscribers",
    "publish",
    "listen",
    "prefix",
]

log = logging.getLogger(__name__)
RECONNECT_SECONDS = 1.0
#: Maximum seconds that a command to Redis waits.
PATIENCE_SECONDS = 1.0
#: Maximum seconds for which a process that ends waits until its last hints are published.
LAST_SECONDS = 1.0
#: Maximum seconds that a reader of the log waits for Redis to confirm its subscription.
CONFIRM_SECONDS = 0.5
#: A subscriber that hears nothing for so long pings Redis, and waits as long again for the answer.
SILENCE_SECONDS = 2.0
#: Maximum number of hints that wait to be published; the oldest are dropped.
MAX_WAITING = 10_000
#: Maximum number of connections of a client.
CONNECTIONS = 16
_unsaid = ThrottledLogger(log, "Redis publish failed (falling back to polling)")
_unheard = ThrottledLogger(log, "Redis subscription lost (falling back to polling)")


@functools.cache
def prefix() -> str:
    """Return the prefix of this host's channels and keys: hosts may share Redis, and pub/sub ignores its databases."""
    host = f"{settings.SECRET_KEY}/{settings.DATABASES['default']['NAME']}"
    return f"a2a:{hashlib.sha256(host.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Committed:
    """A task has new events, up to `last`. In the writer's own process the hint includes the events."""

    task: int
    last: int
    events: Sequence[LogEvent] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """A run has lost its task: its agent is to be stopped."""

    run: int


@dataclass(frozen=True, slots=True)
class RunQueued:
    """A run is waiting for a process."""

    queue: str


@dataclass(frozen=True, slots=True)
class OverridesChanged:
    """An operator has switched something of an agent."""


Hint = Committed | Stop | RunQueued | OverridesChanged
KINDS: tuple[type[Hint], ...] = (Committed, Stop, RunQueued, OverridesChanged)
_listeners: dict[type[Hint], set[Callable[[Any], None]]] = {kind: set() for kind in KINDS}


@contextlib.contextmanager
def listen(callback: Callable[[Any], None], *kinds: type[Hint]) -> Iterator[None]:
    """Call `callback` with every hint of this process of these kinds (without any: of all), until the block ends.

    It is called in the thread that publishes the hint.
    """
    for kind in kinds or KINDS:
        _listeners[kind].add(callback)
    try:
        yield
    finally:
        for kind in kinds or KINDS:
            _listeners[kind].discard(callback)


def publish(hint: Hint) -> None:
    """Give a hint to this process and the others. Call it after the commit. Never blocks, never raises."""
    _tell_here(hint)
    if project.REDIS_URL and not isinstance(
        hint, RunQueued
    ):  # goes to one worker only (execution/wake_up.py)
        _publisher.put(hint)


def _tell_here(hint: Hint) -> None:
    for callback in tuple(_listeners[type(hint)]):
        try:
            callback(hint)
        except Exception:
            log.exception("a listener failed at %s", hint)


def channel(task: int) -> str:
    """Return the Redis channel of a task's hints."""
    return f"{prefix()}:task:{task}"


def _stops_channel() -> str:
    return f"{prefix()}:stop"


def _switches_channel() -> str:
    return f"{prefix()}:switched"


def _message(hint: Committed | Stop | OverridesChanged) -> tuple[str, str]:
    if isinstance(hint, OverridesChanged):
        return _switches_channel(), ""
    if isinstance(hint, Stop):
        return _stops_channel(), str(hint.run)
    return channel(hint.task), str(hint.last)


class _Publisher:
    """One thread that publishes hints to Redis in batches. If Redis is away, hints are dropped."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, str]] = deque(maxlen=MAX_WAITING)
        self._some = threading.Event()
        #: Set while all hints have been published or dropped.
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, hint: Committed | Stop | OverridesChanged) -> None:
        self._waiting.append(_message(hint))
        self._done.clear()
        self._some.set()
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                if self._thread is None:
                    atexit.register(self._done.wait, LAST_SECONDS)
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        import redis  # noqa: PLC0415 - a host without Redis does not load it
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        client = redis.Redis.from_url(
            project.REDIS_URL,
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
            retry=Retry(NoBackoff(), 1),  # on a new connection, since the old one may have died
        )
        while True:
            self._some.wait()
            self._some.clear()
            waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
            batch = list(dict.fromkeys(waiting))  # in order, without duplicates
            try:
                with client.pipeline(transaction=False) as pipe:
                    for hint in batch:
                        pipe.publish(*hint)
                    pipe.execute()
            except redis.RedisError as fault:
                self._waiting.clear()  # old hints are useless: their readers have polled
                _unsaid.warning(fault)
            if not self._waiting:
                self._done.set()


_publisher = _Publisher()


@contextlib.asynccontextmanager
async def _at_most(seconds: float) -> AsyncIterator[None]:
    """Leave the block after so many seconds, or at any exception: a missing hint must not fail the caller.

    (While its connection breaks, redis-py raises AttributeError and others.)
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except Exception as fault:  # noqa: BLE001 - see above
        log.debug("Redis did not confirm: %r", fault)


#: The event loop, the URL of Redis, the patience in seconds and the number of retries of a client.
_Use = tuple[asyncio.AbstractEventLoop, str, float, int]
_clients: dict[_Use, tuple[redis.asyncio.Redis, AsyncGenerator[redis.asyncio.Redis]]] = {}


async def connect(patience: float = PATIENCE_SECONDS, retries: int = 0) -> redis.asyncio.Redis:
    """Return the Redis client of this event loop with this patience and these retries. It is closed with the loop.

    `patience` is the maximum number of seconds for a command, `retries` the number of times that it is tried again, each
    time on a new connection. A client for each call would lose connections: a task may be cancelled while it closes them.
    """
    use = asyncio.get_running_loop(), project.REDIS_URL, patience, retries
    if use not in _clients:
        opening = _open(use)
        _clients[use] = await anext(opening), opening
    return _clients[use][0]


async def _open(use: _Use) -> AsyncGenerator[redis.asyncio.Redis]:
    """Yield a client, and close it when the event loop ends: then the loop closes its asynchronous generators."""
    import redis.asyncio  # noqa: PLC0415 - a host without Redis does not load it
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415

    _, url, patience, retries = use
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=patience,
        socket_timeout=patience,
        socket_connect_timeout=patience,
        retry=Retry(NoBackoff(), retries),
    )
    try:
        yield redis.asyncio.Redis(connection_pool=pool)
    finally:
        del _clients[use]
        await pool.disconnect()


async def has_subscribers(name: str) -> bool | None:
    """Return whether any process listens to a channel; None if Redis does not tell, False in a host without Redis."""
    if not project.REDIS_URL:
        return False
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            ((_, number),) = await (await connect()).pubsub_numsub(name)
    except Exception as fault:  # noqa: BLE001 - while its connection breaks, redis-py raises AttributeError and others
        log.debug("Redis did not tell the listeners: %r", fault)
        return None
    return bool(number)


class Subscriber:
    """One Redis connection that receives the hints of other processes for one event loop.

    It reconnects by itself. Hints sent meanwhile are lost, and polling finds their events.
    """

    def __init__(self, callback: Callable[[Hint], None], *, everything: bool = False) -> None:
        """`everything`: receive the hints of all tasks, not only of those followed."""
        self._callback, self._everything = callback, everything
        self._wanted: dict[str, int] = {}
        self._acknowledged: dict[str, asyncio.Event] = {}
        self._pubsub: redis.asyncio.client.PubSub | None = None
        self._reader: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin listening, if hints go over Redis at all."""
        if project.REDIS_URL and self._reader is None:
            # It serves all: its log lines must not name the request that came first.
            self._reader = asyncio.create_task(self._read(), context=contextvars.Context())

    async def close(self) -> None:
        """Stop listening."""
        reader, self._reader = self._reader, None
        while (
            reader is not None and not reader.done()
        ):  # redis-py sometimes swallows a cancellation
            reader.cancel()
            await asyncio.wait({reader}, timeout=0.1)

    async def follow(self, name: str) -> None:
        """Subscribe to a channel. Returns once Redis has confirmed it, or after a moment if it does not.

        Raises CancelledError if the task was cancelled meanwhile, also if redis-py has swallowed it: redis-py waits by
        `asyncio.wait_for`, which before Python 3.12 returns a result that comes at the same moment.
        """
        self.start()
        if self._reader is None:
            return
        self._wanted[name] = self._wanted.get(name, 0) + 1
        acknowledged = self._acknowledged.setdefault(name, asyncio.Event())
        if self._pubsub is None:
            return  # the reader subscribes to everything wanted when it connects
        cancelled = _count_cancellations()
        async with _at_most(CONFIRM_SECONDS):
            if self._wanted[name] == 1:
                await self._pubsub.subscribe(name)
            await acknowledged.wait()
        if _count_cancellations() > cancelled:
            raise asyncio.CancelledError

    async def unfollow(self, name: str) -> None:
        """Unsubscribe from a channel."""
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
        """Listen until this task is cancelled.

        redis-py sometimes swallows the CancelledError, so the task is asked too whether it was cancelled.
        """
        while True:
            try:
                await self._listen()
            except Exception as fault:  # noqa: BLE001 - after any failure the next connection is made
                if not _is_cancelled():
                    _unheard.warning(fault)
            self._pubsub = None
            if _is_cancelled():
                return
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        """Receive hints on one connection until it breaks. Raises redis.RedisError, OSError."""
        import redis  # noqa: PLC0415 - a host without Redis does not load it

        client = await connect()  # without retries: `_read` reconnects, and `follow` must not wait
        async with client.pubsub() as pubsub:
            await pubsub.subscribe(_stops_channel(), _switches_channel(), *self._wanted)
            if self._everything:
                await pubsub.psubscribe(f"{prefix()}:task:*")
            self._pubsub = pubsub
            pinged = False
            while not _is_cancelled():
                message = await pubsub.get_message(timeout=SILENCE_SECONDS)
                if message is not None:
                    self._hear(message)
                elif pinged:
                    raise redis.TimeoutError("Redis is silent")
                else:
                    await pubsub.ping()
                pinged = message is None

    def _hear(self, message: dict[str, bytes]) -> None:
        name = (message["channel"] or b"").decode()  # the answer to a ping names no channel
        if message["type"] == "subscribe":  # type: ignore[comparison-overlap]
            if name in self._acknowledged:
                self._acknowledged[name].set()
        elif message["type"] in ("message", "pmessage"):  # type: ignore[comparison-overlap]
            try:
                self._pass_on(_hint(name, message["data"].decode()))
            except (
                Exception
            ):  # an invalid message from another client of this Redis must not end the listening
                log.exception("a hint on %s failed", name)

    def _pass_on(self, hint: Hint) -> None:
        """Give a hint to this subscriber's callback; changed overrides concern the whole process."""
        if isinstance(hint, OverridesChanged):
            _tell_here(hint)
        else:
            self._callback(hint)


def _is_cancelled() -> bool:
    return _count_cancellations() > 0


def _count_cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _hint(name: str, data: str) -> Hint:
    if name == _switches_channel():
        return OverridesChanged()
    if name == _stops_channel():
        return Stop(int(data))
    return Committed(int(name.rpartition(":")[2]), int(data))
