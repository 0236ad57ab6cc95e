"""The wake-up of workers, and where runs are executed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from a2a_tasks import pubsub, wake_ups
from a2a_tasks.execution import dispatch, jobs, wake_up, worker
from tests.support.execution.host import hosting
from tests.support.execution.waiting import eventually
from tests.support.proxy import Behaviour, Proxy


class Broker:
    """Takes rings; the first of them as long as it is told to."""

    def __init__(self) -> None:
        self.rings: list[str] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.broken = False

    def send_task(self, name: str, *, queue: str, **_: Any) -> None:
        self.rings.append(queue)
        self.begun.set()
        self.go.wait(30)
        if self.broken:
            raise ConnectionError("no broker")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Broker:
    """A broker instead of Celery's, workers to call, and no Redis for hints."""
    settings.A2A_RUNS, settings.REDIS_URL = "celery", ""
    found = Broker()
    monkeypatch.setattr(wake_up, "app", found)
    return found


class Notice(threading.Event):
    """An event that counts how often it is waited for."""

    waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        return super().wait(timeout)


class TestWakeUp:
    def test_one_after_another_wait_for_nothing(
        self, broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(wake_up, "MIN_INTERVAL_SECONDS", 3600)
        broker.go.set()
        one = wake_up._WakeUps()
        notice = one._has_due = Notice()
        for number in range(1, 4):
            one.on_hint(pubsub.RunQueued("agents"))
            eventually(lambda: notice.waits > len(broker.rings) == number)  # noqa: B023 - called here

    def test_it_rings_once_for_many(self, broker: Broker) -> None:
        one = wake_up._WakeUps()
        one.on_hint(pubsub.RunQueued("agents"))
        assert broker.begun.wait(10)
        for _ in range(100):
            one.on_hint(pubsub.RunQueued("agents"))
            one.on_hint(pubsub.RunQueued("slow"))
        broker.go.set()
        eventually(lambda: len(broker.rings) == 3)
        assert broker.rings[0] == "agents"
        assert sorted(broker.rings[1:]) == ["agents", "slow"]

    def test_a_broker_that_is_away_is_rung_again_next_time(self, broker: Broker) -> None:
        broker.broken = True
        broker.go.set()
        one = wake_up._WakeUps()
        one.on_hint(pubsub.RunQueued("agents"))
        eventually(lambda: len(broker.rings) == 1)
        broker.broken = False
        one.on_hint(pubsub.RunQueued("agents"))
        eventually(lambda: len(broker.rings) == 2)

    def test_whoever_tells_does_not_wait_for_the_broker(self, broker: Broker) -> None:
        one = wake_up._WakeUps()
        one.on_hint(pubsub.RunQueued("agents"))
        assert broker.begun.wait(10)
        one.on_hint(pubsub.RunQueued("agents"))  # returns, though the broker hangs
        broker.go.set()
        eventually(lambda: len(broker.rings) == 2)  # its thread must not ring in the next test

    def test_other_hints_and_local_runs_ring_nothing(self, broker: Broker, settings: Any) -> None:
        one = wake_up._WakeUps()
        one.on_hint(pubsub.Stop(1))
        one.on_hint(pubsub.Committed(1, 1))
        settings.A2A_RUNS = "local"
        one.on_hint(pubsub.RunQueued("agents"))
        assert one._thread is None
        assert broker.rings == []


@pytest.mark.backend("stack")
class TestOverRedis:
    @pytest.fixture(autouse=True)
    def _url(self, broker: Broker, settings: Any) -> None:
        settings.REDIS_URL = self.url = os.environ["REDIS_URL"]

    @contextmanager
    def woken(self) -> Iterator[threading.Event]:
        """Listen as a worker of the queue does; the event is set when it is woken."""
        woken = threading.Event()
        listener = wake_ups.Listener(lambda: ["agents"], lambda: True, woken.set)
        listener.start()
        try:
            yield woken
        finally:
            listener.close()

    def test_a_worker_hears_without_a_message_of_celery(self, broker: Broker) -> None:
        with self.woken() as woken:
            wake_up._WakeUps().on_hint(pubsub.RunQueued("agents"))
            assert woken.wait(30)
        assert broker.rings == []

    def test_redis_that_is_away_is_logged_and_tried_again(
        self, broker: Broker, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        faults: list[BaseException] = []
        monkeypatch.setattr(wake_up._outage, "warning", faults.append)
        server = urlsplit(self.url)
        with (
            Proxy(server.port or 6379, server.hostname or "127.0.0.1") as proxy,
            self.woken() as woken,
        ):
            settings.REDIS_URL = f"redis://127.0.0.1:{proxy.port}{server.path}"
            one = wake_up._WakeUps()
            proxy.behave(Behaviour(refusing=True))
            one.on_hint(pubsub.RunQueued("agents"))
            eventually(lambda: faults)
            proxy.behave()
            one.on_hint(pubsub.RunQueued("agents"))
            assert woken.wait(30)


class TestDispatch:
    @pytest.mark.parametrize(
        ("runs", "url", "expected"),
        [
            ("auto", "", False),
            ("auto", "redis://x", True),
            ("local", "redis://x", False),
            ("celery", "", True),
        ],
    )
    def test_workers_carry_runs_if_there_is_a_broker_or_it_is_said(
        self, runs: str, url: str, expected: bool, settings: Any
    ) -> None:
        settings.A2A_RUNS, settings.A2A_CELERY_BROKER_URL = runs, url
        assert dispatch.by_workers() is expected

    async def test_with_workers_nothing_is_held_here(self, settings: Any) -> None:
        settings.A2A_RUNS = "celery"
        assert dispatch.preclaim("agents") is None
        await dispatch.ensure_started()
        assert not any(
            True for loop in dispatch._runners if not loop.is_closed() and loop.is_running()
        )

    @pytest.mark.django_db
    async def test_without_workers_each_run_is_held_by_this_loops_runner(
        self, settings: Any
    ) -> None:
        settings.A2A_RUNS = "local"
        async with hosting():
            one, other = dispatch.preclaim("agents"), dispatch.preclaim("agents")
            assert one is not None
            assert other is not None
            assert one.token != other.token
            assert one.worker == other.worker


class TestJobs:
    def test_the_ring_wakes_the_worker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        woken: list[int] = []
        monkeypatch.setattr(worker, "wake", lambda: woken.append(1))
        jobs.carry_due_runs()
        assert woken == [1]
