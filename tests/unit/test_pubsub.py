"""Hints: told to everybody at once, hurting nobody, and lost without harm."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from django.conf import settings

from a2a_tasks import pubsub
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.pubsub import Committed, RunQueued, Stop, Subscriber, listen, publish
from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.log_context import LogContext
from tests.support.execution.waiting import eventually, until
from tests.support.processes import python
from tests.support.proxy import Behaviour, Proxy
from tests.support.subscribers import cut_off

LAST_WORDS = """
import django
django.setup()
from a2a_tasks import pubsub
pubsub.LAST_SECONDS = pubsub.PATIENCE_SECONDS = 30.0
pubsub.publish(pubsub.OverridesChanged())
"""


class TestInTheProcess:
    def test_everybody_who_listens_hears_in_the_thread_that_tells(self) -> None:
        heard: list[Any] = []
        with listen(heard.append), listen(lambda hint: heard.append(threading.current_thread())):
            publish(RunQueued("q"))
        publish(RunQueued("later"))
        assert RunQueued("q") in heard
        assert threading.current_thread() in heard
        assert len(heard) == 2

    def test_whoever_listens_to_one_kind_hears_no_other(self) -> None:
        heard: list[Any] = []
        with listen(heard.append, Stop):
            publish(RunQueued("q"))
            publish(Stop(7))
        publish(Stop(8))
        assert heard == [Stop(7)]

    def test_a_listener_that_raises_harms_neither_the_teller_nor_the_others(self) -> None:
        """What was announced is committed: the client must get its answer, and the others their hint."""
        heard: list[Any] = []

        def broken(hint: Any) -> None:
            raise LookupError(hint)

        with listen(heard.append), listen(broken), listen(lambda hint: heard.append(hint)):
            publish(RunQueued("q"))
        assert heard == [RunQueued("q"), RunQueued("q")]

    def test_one_may_leave_while_being_told(self) -> None:
        heard: list[Any] = []
        staying = [listen(heard.append), listen(lambda hint: heard.append(hint))]

        def leave(_: Any) -> None:
            leaving.__exit__(None, None, None)

        leaving = listen(leave)
        with staying[0], staying[1]:
            leaving.__enter__()
            publish(RunQueued("q"))
            publish(RunQueued("later"))
        assert heard == [RunQueued("q"), RunQueued("q"), RunQueued("later"), RunQueued("later")]


@pytest.mark.backend("stack")
class TestBetweenProcesses:
    async def test_a_followed_task_and_every_stop_is_heard(self) -> None:
        heard: list[Any] = []
        subscriber = Subscriber(heard.append)
        try:
            await subscriber.follow(pubsub.channel(7))
            await until(lambda: subscriber._pubsub is not None)
            await subscriber.follow(pubsub.channel(8))
            publish(Committed(9, 1))
            publish(Committed(8, 2))
            publish(Stop(3))
            await until(lambda: Stop(3) in heard)
            assert heard == [Committed(8, 2), Stop(3)]
            await subscriber.unfollow(pubsub.channel(8))
            publish(Committed(8, 3))
            publish(Committed(7, 4))
            await until(lambda: Committed(7, 4) in heard)
            assert Committed(8, 3) not in heard
        finally:
            await subscriber.close()

    async def test_the_last_words_of_a_process_that_ends_at_once_are_heard(self) -> None:
        heard: list[Any] = []
        subscriber = Subscriber(heard.append)
        try:
            subscriber.start()
            await until(lambda: subscriber._pubsub is not None)
            with listen(heard.append):
                with python(["-c", LAST_WORDS]) as process:
                    await asyncio.to_thread(process.process.wait, 60)
                await until(lambda: pubsub.OverridesChanged() in heard)
        finally:
            await subscriber.close()

    async def test_a_follower_that_is_cancelled_at_any_moment_is_cancelled(self) -> None:
        """What redis-py sends is waited for by `asyncio.wait_for`, which may keep a cancellation to itself."""
        subscriber = Subscriber(lambda hint: None)
        try:
            subscriber.start()
            await until(lambda: subscriber._pubsub is not None)
            for turns in range(40):
                following = asyncio.ensure_future(subscriber.follow(pubsub.channel(100 + turns)))
                for _ in range(turns):
                    await asyncio.sleep(0)
                if following.cancel():
                    with pytest.raises(asyncio.CancelledError):
                        await following
        finally:
            await subscriber.close()

    async def test_two_followers_of_one_task_need_one_subscription_until_both_left(self) -> None:
        heard: list[Any] = []
        subscriber = Subscriber(heard.append)
        try:
            for _ in range(2):
                await subscriber.follow(pubsub.channel(7))
            await until(lambda: subscriber._pubsub is not None)
            await subscriber.unfollow(pubsub.channel(7))
            publish(Committed(7, 1))
            await until(lambda: heard == [Committed(7, 1)])
        finally:
            await subscriber.close()

    async def test_who_follows_what_is_followed_already_need_not_wait(self) -> None:
        """The channel was subscribed to when the connection came; its acknowledgement is remembered."""
        subscriber = Subscriber(lambda hint: None)
        name = pubsub.channel(7)
        try:
            await subscriber.follow(name)  # nobody is connected yet
            await until(lambda: subscriber._pubsub is not None)
            await until(
                lambda: name in subscriber._acknowledged and subscriber._acknowledged[name].is_set()
            )
        finally:
            await subscriber.close()

    async def test_it_ends_at_the_first_cancellation_whatever_redis_does_with_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """redis-py swallows one that comes while it connects."""
        monkeypatch.setattr(pubsub, "RECONNECT_SECONDS", 60.0)
        for steps in range(60):
            subscriber = Subscriber(lambda hint: None)
            subscriber.start()
            reader = subscriber._reader
            assert reader is not None
            for _ in range(steps):
                await asyncio.sleep(0)
            reader.cancel()
            ended, _ = await asyncio.wait({reader}, timeout=pubsub.RECONNECT_SECONDS / 2)
            assert ended, steps

    async def test_nonsense_on_a_channel_stops_nothing(self) -> None:
        heard: list[Any] = []
        subscriber = Subscriber(heard.append)
        client = redis.Redis.from_url(settings.REDIS_URL)
        try:
            subscriber.start()
            await until(lambda: subscriber._pubsub is not None)
            await asyncio.to_thread(client.publish, pubsub._stops_channel(), "nonsense")
            publish(Stop(5))
            await until(lambda: heard == [Stop(5)])
        finally:
            client.close()
            await subscriber.close()

    async def test_a_connection_that_breaks_is_made_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pubsub, "RECONNECT_SECONDS", 0.05)
        heard: list[Any] = []
        subscriber = Subscriber(heard.append)
        try:
            await subscriber.follow(pubsub.channel(7))
            await until(lambda: subscriber._pubsub is not None)
            await asyncio.to_thread(cut_off)

            async def told() -> bool:
                publish(Committed(7, 2))
                return Committed(7, 2) in heard

            await until(told)
        finally:
            await subscriber.close()

    async def test_a_connection_that_breaks_while_somebody_begins_to_follow_is_their_loss_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """redis-py then raises what it likes, as the fault lab saw; the request must not fail."""

        async def broken(name: str) -> None:
            raise AttributeError("'NoneType' object has no attribute 'writelines'")

        subscriber = Subscriber(lambda hint: None)
        try:
            subscriber.start()
            await until(lambda: subscriber._pubsub is not None)
            monkeypatch.setattr(subscriber._pubsub, "subscribe", broken)
            await subscriber.follow(pubsub.channel(7))
            await subscriber.unfollow(pubsub.channel(7))
        finally:
            await subscriber.close()

    async def test_a_redis_that_falls_silent_is_left_for_a_new_connection(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pubsub, "RECONNECT_SECONDS", 0.05)
        monkeypatch.setattr(pubsub, "SILENCE_SECONDS", 0.1)
        heard: list[Any] = []
        server = urlsplit(settings.REDIS_URL)
        with Proxy(server.port or 6379, server.hostname or "127.0.0.1") as proxy:
            settings.REDIS_URL = f"redis://127.0.0.1:{proxy.port}{server.path}"
            subscriber = Subscriber(heard.append)
            try:
                await subscriber.follow(pubsub.channel(7))
                await until(lambda: subscriber._pubsub is not None)
                proxy.behave(Behaviour.black_hole())
                await until(lambda: subscriber._pubsub is None)
                proxy.behave()
                await until(lambda: subscriber._pubsub is not None)

                async def told() -> bool:
                    publish(Committed(7, 2))
                    return Committed(7, 2) in heard

                await until(told)
            finally:
                await subscriber.close()


@pytest.mark.backend("stack")
class TestConnections:
    """Of clients of Redis."""

    def test_end_with_their_event_loop(self) -> None:
        """Synchronous views have a loop for each call."""

        async def ask() -> Any:
            client = await pubsub.connect()
            assert await client.ping()
            assert await pubsub.connect() is client
            return client.connection_pool

        pool = asyncio.run(ask())
        (connection,) = pool._available_connections
        assert not connection.is_connected
        assert pool not in [client.connection_pool for client, _ in pubsub._clients.values()]

    def test_that_a_task_has_lost_end_as_well(self) -> None:
        """A task that is cancelled again while it gives its connection back."""

        async def lose() -> Any:
            pool: Any = (await pubsub.connect()).connection_pool
            return await pool.get_connection()

        assert not asyncio.run(lose()).is_connected


class TestWithoutRedis:
    async def test_following_costs_nothing(self, settings: Any) -> None:
        settings.REDIS_URL = ""
        subscriber = Subscriber(lambda hint: None)
        await subscriber.follow(pubsub.channel(7))
        await subscriber.unfollow(pubsub.channel(7))
        await subscriber.close()
        assert subscriber._reader is None

    async def test_a_redis_out_of_reach_delays_nobody(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        publisher = pubsub._Publisher()
        monkeypatch.setattr(pubsub, "_publisher", publisher)
        publish(Committed(1, 1))
        subscriber = Subscriber(lambda hint: None)
        await asyncio.wait_for(subscriber.follow(pubsub.channel(7)), 20)
        await asyncio.wait_for(subscriber.unfollow(pubsub.channel(7)), 20)
        await subscriber.close()
        assert await asyncio.to_thread(publisher._done.wait, 20), "or it would log in another test"

    async def test_an_outage_is_not_logged_in_the_name_of_the_first_request(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        logger = logging.getLogger("tests.subscription")  # others log that Redis is away, too
        monkeypatch.setattr(pubsub, "_unheard", ThrottledLogger(logger, "away"))
        named: list[LogContext] = []

        class Naming(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                named.append(log_context.current.get())

        handler, before = Naming(), log_context.current.get()
        logger.addHandler(handler)
        log_context.current.set(LogContext("request-1", tenant="/acme"))
        try:
            subscriber = Subscriber(lambda hint: None)
            await subscriber.follow(pubsub.channel(7))
            await until(lambda: bool(named))
            await subscriber.close()
        finally:
            log_context.current.set(before)
            logger.removeHandler(handler)
        assert named == [LogContext()]

    def test_hints_that_nobody_takes_are_bounded_and_told_of_once(
        self, settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        # In words of its own: a publisher of another test may still be telling.
        away = ThrottledLogger(pubsub.log, "the Redis of this test is away")
        monkeypatch.setattr(pubsub, "_unsaid", away)
        publisher = pubsub._Publisher()
        for n in range(2 * pubsub.MAX_WAITING):
            publisher.put(Committed(n, 1))

        def told() -> list[str]:
            return [line for line in caplog.messages if "of this test is away" in line]

        # They are taken before it is known that nobody has them.
        eventually(lambda: told() and not publisher._waiting)
        assert publisher._waiting.maxlen == pubsub.MAX_WAITING
        assert len(told()) == 1
