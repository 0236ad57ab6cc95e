"""Wake-ups over a real Redis: each reaches one worker that can use it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from a2a_tasks import pubsub, wake_ups
from a2a_tasks.outages import ThrottledLogger
from tests.support.execution.waiting import eventually

pytestmark = pytest.mark.backend("stack")
QUEUES = ("one", "two")


class Worker:
    """A listener, its slots, and the number of times that it was woken."""

    def __init__(self, *, room: bool = True) -> None:
        self.woken, self.room, self.looks = 0, room, 0
        self.listener = wake_ups.Listener(lambda: QUEUES, self._look, self._wake)

    def _look(self) -> bool:
        self.looks += 1
        return self.room

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    """Redis, without wake-ups of earlier tests."""
    with wake_ups.connect() as client:
        client.delete(*map(wake_ups._key, QUEUES))
        yield client


@contextmanager
def listening(*workers: Worker) -> Iterator[None]:
    """Run the listeners of these workers. They have ended when the block has."""
    before = set(threading.enumerate())
    for worker in workers:
        worker.listener.start()
    started = set(threading.enumerate()) - before
    try:
        yield
    finally:
        for worker in workers:
            worker.listener.close()
        for thread in started:
            thread.join(30)


def count(client: redis.Redis, queue: str) -> int:
    """Return the number of wake-ups that nobody has taken."""
    return int(client.llen(wake_ups._key(queue)))


def waiting(client: redis.Redis) -> int:
    """Return the number of listeners that wait in Redis."""
    own = str(client.connection_pool.connection_kwargs["db"])
    return sum(one["db"] == own and one["cmd"] == "blpop" for one in client.client_list())


def test_each_wake_up_reaches_one_worker(client: redis.Redis) -> None:
    first, second = Worker(), Worker()
    with listening(first, second):
        eventually(lambda: waiting(client) == 2)
        for _ in range(10):
            wake_ups.push(client, QUEUES)
        eventually(lambda: first.woken + second.woken == 20)
    assert first.woken > 0
    assert second.woken > 0
    assert [count(client, queue) for queue in QUEUES] == [0, 0]


def test_a_worker_without_a_free_slot_takes_none(client: redis.Redis) -> None:
    busy, free = Worker(room=False), Worker()
    with listening(busy):
        wake_ups.push(client, ["one"])
        eventually(lambda: busy.looks > 2)
        assert count(client, "one") == 1
        with listening(free):
            eventually(lambda: free.woken == 1)
        busy.room = True
        wake_ups.push(client, ["two"])
        eventually(lambda: busy.woken == 1)


def test_a_wake_up_that_comes_while_a_worker_ends_is_given_back(client: redis.Redis) -> None:
    ending, other = Worker(), Worker()
    with listening(ending):
        eventually(lambda: waiting(client) == 1)
        ending.listener.close()
        wake_ups.push(client, ["one"])
    assert ending.woken == 0
    with listening(other):
        eventually(lambda: other.woken == 1)


def test_wake_ups_that_nobody_takes_are_bounded_and_forgotten(client: redis.Redis) -> None:
    for _ in range(2 * wake_ups.MAX_WAITING):
        wake_ups.push(client, ["one"])
    assert count(client, "one") == wake_ups.MAX_WAITING
    assert 0 < client.ttl(wake_ups._key("one")) <= wake_ups.KEPT_SECONDS


def test_a_worker_listens_again_when_redis_has_closed_its_connection(
    client: redis.Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pubsub, "RECONNECT_SECONDS", 0.01)
    quiet = ThrottledLogger(logging.getLogger(wake_ups.__name__), "wake-ups cannot be read")
    monkeypatch.setattr(wake_ups, "_unheard", quiet)
    worker = Worker()
    key = wake_ups._key("one")
    with listening(worker):
        eventually(lambda: waiting(client) == 1)
        client.set(key, "a value of another kind")  # the next command fails
        eventually(lambda: "cannot be read" in caplog.text)
        client.delete(key)
        wake_ups.push(client, ["one"])
        eventually(lambda: worker.woken == 1)


def test_a_worker_listens_on_after_any_failure(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pubsub, "RECONNECT_SECONDS", 0.01)
    worker, faults = Worker(), [AttributeError("the connection is gone")]
    worker.listener._list_queues = lambda: _raise(faults.pop()) if faults else QUEUES
    with listening(worker):
        wake_ups.push(client, ["one"])
        eventually(lambda: worker.woken == 1)
    assert faults == []


def _raise(fault: Exception) -> tuple[str, ...]:
    raise fault


def test_without_redis_nobody_listens(settings: Any) -> None:
    settings.REDIS_URL = ""
    before = threading.active_count()
    Worker().listener.start()
    assert threading.active_count() == before
