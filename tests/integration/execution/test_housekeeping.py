"""The hourly purge: who does it, for how long, and that it ends when it is told to."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import OperationalError

from a2a_tasks import process_lifetime
from a2a_tasks.execution import dispatch, housekeeping, jobs
from a2a_tasks.execution.celery_app import app
from a2a_tasks.execution.housekeeping import purge_in_this_thread
from a2a_tasks.models import Task
from a2a_tasks.store import queue_statistics
from a2a_tasks.store.backend import sessions
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.purge import Removed, RetentionLimits
from a2a_tasks.store.purge import purge as remove
from tests.integration.store.test_purge import many
from tests.support.execution.host import hosting
from tests.support.execution.waiting import until
from tests.support.store.world import accepted

pytestmark = [pytest.mark.quick_on("sqlite"), pytest.mark.django_db]


@pytest.fixture(autouse=True)
def month(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks stay for a month, and nobody rests."""
    settings.A2A_RETENTION_DAYS = 30.0
    settings.A2A_PURGE_BATCH = 20
    settings.A2A_RUNS = "local"
    monkeypatch.setattr(housekeeping, "MAX_REST_SECONDS", 0.0)


class TestAWorker:
    def test_does_what_retention_says(self) -> None:
        many(20)
        assert purge_in_this_thread(threading.Event()).tasks == 20
        assert Task.objects.count() == 0

    def test_goes_on_an_hour_later_when_its_time_is_up(self, settings: Any) -> None:
        settings.A2A_PURGE_SECONDS = 0.0
        many(20)
        assert purge_in_this_thread(threading.Event()).tasks == 4
        assert purge_in_this_thread(threading.Event()).tasks == 4

    def test_ends_with_its_batch_when_the_worker_ends(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stop, done = threading.Event(), []

        def purge(_: object) -> Iterator[Removed]:
            for _ in range(10):
                stop.set()
                done.append(1)
                yield Removed(tasks=1)

        monkeypatch.setattr(housekeeping, "purge", purge)
        assert purge_in_this_thread(stop).tasks == 1
        assert done == [1]
        assert purge_in_this_thread(stop) == Removed()

    @pytest.mark.django_db(transaction=True)
    def test_goes_on_after_it_lost_against_another_transaction(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lost = [True]

        def purge(limits: RetentionLimits) -> Iterator[Removed]:
            if lost:
                lost.clear()
                raise OperationalError from psycopg.errors.DeadlockDetected()
            yield from remove(limits)

        monkeypatch.setattr(housekeeping, "purge", purge)
        many(20)
        assert purge_in_this_thread(threading.Event()).tasks == 20

    def test_is_called_by_beat_once_an_hour(self, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = app.conf.beat_schedule["purge"]
        assert entry["task"] == jobs.purge_old_tasks.name
        assert entry["schedule"] == 3600
        monkeypatch.setattr(jobs, "ending", threading.Event())
        many(8)
        jobs.purge_old_tasks()
        assert Task.objects.count() == 0


class TestDuties:
    """Other apps have work for whoever runs agents."""

    @pytest.mark.django_db(transaction=True)
    async def test_are_done_by_a_process_that_runs_agents_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done = threading.Event()
        monkeypatch.setattr(
            housekeeping,
            "DUTIES",
            [(lambda: False, pytest.fail), (lambda: not done.is_set(), done.set)],
        )
        monkeypatch.setattr(housekeeping, "DUTY_FIRST", 0.0)
        async with hosting():
            await dispatch.ensure_started()
            await until(done.is_set)

    @pytest.mark.django_db(transaction=True)
    async def test_are_done_though_tools_of_agents_hold_all_threads_of_the_event_loop(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done, go = threading.Event(), threading.Event()
        monkeypatch.setattr(housekeeping, "DUTIES", [(lambda: not done.is_set(), done.set)])
        monkeypatch.setattr(housekeeping, "DUTY_FIRST", 0.0)
        tools = [asyncio.ensure_future(asyncio.to_thread(go.wait)) for _ in range(40)]
        async with hosting():
            await dispatch.ensure_started()
            try:
                await until(done.is_set, 20)
            finally:
                go.set()
                await asyncio.gather(*tools)

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    async def test_include_the_count_of_the_queue_after_a_burst(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", queue_statistics.__name__)
        monkeypatch.setattr(queue_statistics, "MANY", 1)
        monkeypatch.setattr(queue_statistics._Last, "ends", 0.0)
        monkeypatch.setattr(housekeeping, "DUTY_FIRST", 0.0)
        await run_in_thread(accepted, queue="elsewhere")
        keeper = housekeeping.DutyKeeper()
        await until(lambda: "has counted the queued runs again" in caplog.text, 20)
        await keeper.close()

    async def test_have_ended_when_the_process_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A job that is given up goes on at once in the next process."""
        begun, go, ended = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            go.wait(20)
            ended.set()

        monkeypatch.setattr(housekeeping, "DUTIES", [(lambda: True, work)])
        monkeypatch.setattr(housekeeping, "DUTY_FIRST", 0.0)
        monkeypatch.setattr(process_lifetime, "drain_seconds", lambda: 20.0)
        keeper = housekeeping.DutyKeeper()
        await until(begun.is_set)
        asyncio.get_running_loop().call_later(0.1, go.set)
        await keeper.close()
        assert ended.is_set()

    @pytest.mark.django_db(transaction=True)
    async def test_are_silent_about_a_database_that_is_away_of_which_the_store_tells(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        looks: list[int] = []

        def look() -> bool:
            looks.append(1)
            raise OperationalError("the server has gone away")

        monkeypatch.setattr(housekeeping, "DUTIES", [(look, pytest.fail)])
        for name in ("DUTY_FIRST", "DUTY_EVERY"):
            monkeypatch.setattr(housekeeping, name, 0.0)
        async with hosting():
            await dispatch.ensure_started()
            await until(lambda: len(looks) > 3)
        assert "housekeeping failed" not in caplog.text


class TestAProcessThatRunsAgentsItself:
    async def test_purges_beside_its_runner(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(housekeeping, "FIRST", 0.0)
        await run_in_thread(many, 40, live=10)

        async def purged() -> bool:
            return await run_in_thread(Task.objects.count) == 4

        async with hosting():
            await dispatch.ensure_started()
            await until(purged, 20)

    @pytest.mark.django_db(transaction=True)
    async def test_goes_on_after_a_batch_that_took_longer_than_a_request_may(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_DATABASE_SECONDS = 1.0
        monkeypatch.setattr(sessions, "SILENCE_SECONDS", 0.25)
        monkeypatch.setattr(housekeeping, "FIRST", 0.0)
        began, end, done = threading.Event(), threading.Event(), threading.Event()

        def purge(_: object) -> Iterator[Removed]:
            began.set()
            end.wait(20)
            yield Removed(tasks=1)
            done.set()

        monkeypatch.setattr(housekeeping, "purge", purge)
        async with hosting():
            await dispatch.ensure_started()
            await until(began.is_set)
            late = time.monotonic() + sessions.longest() + 0.5
            await until(lambda: time.monotonic() > late)
            end.set()
            await until(done.is_set)

    async def test_tries_again_after_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(housekeeping, "FIRST", 0.0)
        monkeypatch.setattr(housekeeping, "EVERY", 0.0)
        calls: list[int] = []

        def purge(_: object) -> Iterator[Removed]:
            calls.append(1)
            raise LookupError("once more")

        monkeypatch.setattr(housekeeping, "purge", purge)
        async with hosting():
            await dispatch.ensure_started()
            await until(lambda: len(calls) > 2, 20)
