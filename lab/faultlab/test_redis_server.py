"""The lab's private Redis can be done everything to that the faults need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lab.faultlab.private import eventually
from lab.faultlab.redis_server import RedisServer

pytestmark = pytest.mark.backend("stack")


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(keep=True) as started:
        yield started


@pytest.fixture
def client(server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server.url(3), socket_timeout=5) as made:
        yield made


def test_a_killed_server_comes_back_with_what_it_had(
    server: RedisServer, client: redis.Redis
) -> None:
    client.set("note", "kept")
    server.kill()
    with pytest.raises(redis.ConnectionError):
        client.get("note")
    server.start()
    assert client.get("note") == b"kept"


def test_a_killed_server_comes_back_empty(server: RedisServer, client: redis.Redis) -> None:
    client.set("note", "lost")
    server.kill()
    server.start(empty=True)
    assert client.get("note") is None


def test_a_server_that_keeps_nothing_comes_back_empty() -> None:
    with RedisServer() as server, server.client() as client:
        client.set("note", "lost")
        server.stop()
        server.start()
        assert client.get("note") is None


def test_everything_is_forgotten(server: RedisServer, client: redis.Redis) -> None:
    client.set("note", "lost")
    server.flushall()
    assert client.get("note") is None


def test_the_connections_of_all_clients_are_closed(server: RedisServer) -> None:
    with server.client() as client, client.pubsub() as hints:
        hints.subscribe("hints")
        assert hints.get_message(timeout=5)
        server.client_kill()
        with pytest.raises(redis.ConnectionError):
            hints.connection.read_response(timeout=5)


def test_a_paused_server_answers_later(server: RedisServer) -> None:
    server.client_pause(3.0)
    with (
        redis.Redis(port=server.port, socket_timeout=0.1, retry=Retry(NoBackoff(), 0)) as client,
        pytest.raises(redis.TimeoutError),
    ):
        client.ping()
    eventually(server.answers, 30, "it does not answer again")


def test_a_full_server_refuses_to_store_and_still_publishes(
    server: RedisServer, client: redis.Redis
) -> None:
    server.full()
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        client.lpush("queue", "bell")
    assert client.publish("hints", "1") == 0
    server.full(on=False)
    assert client.lpush("queue", "bell") == 1
