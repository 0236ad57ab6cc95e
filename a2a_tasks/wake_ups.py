"""Wake-ups of workers over Redis: a list for each queue. A wake-up reaches one of the workers that wait for it.

Over pub/sub, each accepted message would make every worker query the table. A wake-up says only that there is work, so a
lost one costs what a lost hint does: workers also poll. See docs/decisions/0040.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from a2a_tasks import pubsub
from a2a_tasks.conf import project
from a2a_tasks.outages import ThrottledLogger

if TYPE_CHECKING:
    import redis

__all__ = ["Listener", "push"]

logger = logging.getLogger(__name__)
#: Maximum number of wake-ups of a queue that no worker has taken. One is enough to find all due runs.
MAX_WAITING = 64
#: Seconds after which a queue without workers forgets its wake-ups.
KEPT_SECONDS = 60
#: Seconds that Redis lets a worker wait for a wake-up before it answers that there is none.
WAIT_SECONDS = 1.0
#: Seconds between two looks for a free slot.
BUSY_SECONDS = 0.05
_unheard = ThrottledLogger(logger, "wake-ups cannot be read from Redis (falling back to polling)")


def connect() -> redis.Redis:
    """Return a client whose commands fail after PATIENCE_SECONDS; one that waits in Redis, that much later."""
    import redis  # noqa: PLC0415 - a host without Redis does not load it
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    return redis.Redis.from_url(
        project.REDIS_URL,
        socket_timeout=WAIT_SECONDS + pubsub.PATIENCE_SECONDS,
        socket_connect_timeout=pubsub.PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 1),  # on a new connection, since the old one may have died
    )


def push(client: redis.Redis, queues: Collection[str]) -> None:
    """Wake one worker of each of these queues. Raises redis.RedisError."""
    with client.pipeline(transaction=False) as pipe:
        for queue in queues:
            pipe.rpush(_key(queue), "")
            pipe.ltrim(_key(queue), -MAX_WAITING, -1)
            pipe.expire(_key(queue), KEPT_SECONDS)
        pipe.execute()


def _key(queue: str) -> str:
    return f"{pubsub.prefix()}:due:{queue}"


class Listener:
    """A thread that calls `wake` for each wake-up of some queues. It takes none while its process has no free slot."""

    def __init__(
        self,
        list_queues: Callable[[], Collection[str]],
        has_room: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        self._list_queues, self._has_room, self._wake = list_queues, has_room, wake
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin to listen, if there is Redis."""
        if project.REDIS_URL:
            threading.Thread(target=self._run, name="wake-ups", daemon=True).start()

    def close(self) -> None:
        """Take no more wake-ups. Returns at once; one that comes in this moment is given to another worker."""
        self._closed.set()

    def _run(self) -> None:
        client = connect()
        while not self._closed.is_set():
            if not self._has_room():
                self._closed.wait(BUSY_SECONDS)
                continue
            try:
                self._take(client)
            except Exception as fault:  # noqa: BLE001 - redis-py raises others while a connection breaks; workers poll
                _unheard.warning(fault)
                self._closed.wait(pubsub.RECONNECT_SECONDS)

    def _take(self, client: redis.Redis) -> None:
        queues = {_key(queue).encode(): queue for queue in self._list_queues()}
        found: Any = client.blpop(list(queues), timeout=WAIT_SECONDS)
        if found is None:
            return
        if self._closed.is_set():
            push(client, [queues[found[0]]])
        else:
            self._wake()
