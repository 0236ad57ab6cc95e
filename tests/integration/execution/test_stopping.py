"""Agents that do not end when they are told to: their output is ignored, and their slots go to other runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any

import pytest

from a2a_tasks import pubsub
from a2a_tasks.agents import Turn
from a2a_tasks.execution import agent_call
from a2a_tasks.execution.threads import Threads
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.store import cancel, runs
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing, until_stopped, until_told
from tests.support.execution.host import (
    Client,
    client_state,
    due,
    hosting,
    not_carried,
    runner,
    status,
    status_is,
)
from tests.support.execution.waiting import until
from tests.support.store.world import everything, expire

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
TOO_LATE = "too late"


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, and agents be given up soon."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    settings.A2A_BEAT_SECONDS = 0.1
    settings.A2A_LEASE_SECONDS = 2.0
    settings.A2A_STOP_SECONDS = 0.8


@pytest.fixture
def threads(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Threads:
    """One thread for all agents."""
    settings.A2A_AGENT_THREADS = 1
    made = Threads()
    monkeypatch.setattr(agent_call, "_threads", made)
    return made


async def words() -> list[str]:
    """The bodies of all events of the only task."""
    row = await run_in_thread(Task.objects.get)
    return [event.body for event in await run_in_thread(everything, row.pk)]


async def cancelled_well() -> None:
    """Nothing was written after the cancel."""
    said = await words()
    assert "CANCELED" in said[-1]
    assert not [body for body in said if TOO_LATE in body]


class Deaf:
    """An async agent that takes no notice of any cancellation until the test ends."""

    def __init__(self) -> None:
        self.shrugs = 0
        self.go = asyncio.Event()

    async def __call__(self, turn: Turn) -> AsyncIterator[Any]:
        """Say that it works, and go on."""
        yield turn.working()
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.shrugs += 1
        yield TOO_LATE


class TestAsync:
    async def test_one_that_never_ends_loses_its_slot_and_is_named(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        deaf = Deaf()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            if turn.text == "deaf":
                async for word in deaf(turn):
                    yield word

        with playing(run) as agent:
            first = await due(agent.slug, text="deaf")
            async with runner(slots=1) as made:
                await until(lambda: status_is("working"))
                await due(agent.slug, "task-2", text="go")
                await run_in_thread(cancel.cancel_by_key, first.task)
                await until(lambda: status_is("completed", task="task-2"))
                assert deaf.shrugs > 1, "it was told again and again"
                assert f"agent {agent.slug} does not end" in caplog.text
                await asyncio.wait_for(made.drain(60), 10)
                deaf.go.set()
                await asyncio.sleep(0)
        events = await run_in_thread(everything, first.task)
        assert "CANCELED" in events[-1].body

    async def test_one_that_hangs_while_it_cleans_up_is_interrupted_there(self) -> None:
        steps: list[str] = []

        async def run(turn: Turn) -> AsyncIterator[Any]:
            try:
                yield turn.working()
                await asyncio.Event().wait()
            finally:
                steps.append("cleaning")
                try:
                    await asyncio.Event().wait()
                finally:
                    steps.append("interrupted")

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: client_state(client, task.id, "working"))
                await client.cancel(task.id)
                await until(not_carried)
        assert steps == ["cleaning", "interrupted"]

    async def test_one_that_cleans_up_in_time_is_told_once(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_STOP_SECONDS = 60
        beats = Beats(monkeypatch)
        told, go = [], asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            try:
                await asyncio.Event().wait()
            finally:
                told.append("once")
                await go.wait()
                told.append("done")

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: client_state(client, task.id, "working"))
                await client.cancel(task.id)
                await until(lambda: told == ["once"])
                seen = beats.count
                await until(lambda: beats.count > seen + 3)
                go.set()
                await until(not_carried)
        assert told == ["once", "done"]


class Beats:
    """Counts the heartbeats, which are beaten all the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self._beat = 0, runs.heartbeat
        monkeypatch.setattr(runs, "heartbeat", self)

    def __call__(self, tokens: Collection[str], **more: Any) -> set[str]:
        """Beat, and count."""
        alive = self._beat(tokens, **more)
        self.count += 1
        return alive


class TestThreads:
    async def test_one_that_looks_at_nothing_goes_on_unheard_and_costs_no_thread(
        self, threads: Threads, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.ERROR)
        begun, go, ended = threading.Event(), threading.Event(), threading.Event()

        def run(turn: Turn) -> Iterator[Any]:
            if turn.text == "go":
                yield "fine"
                return
            begun.set()
            go.wait(60)
            try:
                yield TOO_LATE
                yield TOO_LATE
            finally:
                ended.set()

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                stuck = await client.begin("stuck")
                await asyncio.to_thread(begun.wait, 10)
                await client.cancel(stuck.id)
                assert (await client.send("go")).status.state.word == "completed"
                assert f"agent {agent.slug} does not end" in caplog.text
                assert threads._count == 1
                go.set()
                assert await asyncio.to_thread(ended.wait, 10)
        events = await run_in_thread(lambda: everything(Task.objects.get(public_id=stuck.id).pk))
        assert "CANCELED" in events[-1].body
        assert not [event for event in events if TOO_LATE in event.body]

    async def test_one_that_cleans_up_in_time_is_waited_for(self, settings: Any) -> None:
        settings.A2A_STOP_SECONDS = 60
        begun, go, ended = threading.Event(), threading.Event(), threading.Event()

        def run(turn: Turn) -> Iterator[Any]:
            begun.set()
            until_told(turn)
            go.wait(10)
            ended.set()
            yield TOO_LATE

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await asyncio.to_thread(begun.wait, 10)
                await client.cancel(task.id)
                await until(not_carried)
                go.set()
                assert await asyncio.to_thread(ended.wait, 10)
        await cancelled_well()

    async def test_a_step_of_an_async_agent_is_told_in_its_thread(self) -> None:
        begun, ended = threading.Event(), threading.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            def step() -> None:
                begun.set()
                until_told(turn)
                ended.set()

            yield turn.working()
            await turn.step("long", step)

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await asyncio.to_thread(begun.wait, 10)
                await client.cancel(task.id)
                assert await asyncio.to_thread(ended.wait, 10)

    async def test_one_that_has_lost_its_lease_is_told_as_well(self) -> None:
        begun, ended = threading.Event(), threading.Event()

        def run(turn: Turn) -> Iterator[Any]:
            if turn.attempt > 1:
                return
            begun.set()
            until_told(turn)
            ended.set()
            yield TOO_LATE

        with playing(run, queue="elsewhere") as agent:
            await due(agent.slug, queue="elsewhere")
            async with runner("elsewhere"):
                await asyncio.to_thread(begun.wait, 10)
                await until(lambda: run_in_thread(taken_away))
                assert await asyncio.to_thread(ended.wait, 10)
                await until(lambda: status_is("completed"))
        assert not [body for body in await words() if TOO_LATE in body]


def taken_away() -> bool:
    """Let the lease of the only run's first attempt end; has somebody seen it before its next heartbeat?"""
    first = Run.objects.filter(attempt=1, status=RunStatus.RUNNING)
    for run in first:
        expire(run.pk)
        runs.reclaim_expired(max_attempts=3)
    return not first.exists()


class TestDraining:
    """An agent that is stopped by a deploy has not come to its end, whatever it makes of that."""

    async def drained(self, run: Any, begun: threading.Event | None = None) -> None:
        """Begin a run, end its process, and look what is left for the next one."""
        with playing(run) as agent:
            await due(agent.slug)
            async with runner() as made:
                await until(lambda: status_is("working"))
                if begun is not None:
                    await asyncio.to_thread(begun.wait, 10)
                await made.drain(0)
                row = await run_in_thread(Run.objects.get)
                assert (row.status, row.token, row.attempt) == (RunStatus.QUEUED, "", 0)
        assert await status() == "working"
        assert not [body for body in await words() if TOO_LATE in body]

    async def test_one_that_returns_when_it_is_cancelled_is_handed_back(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

        await self.drained(run)

    async def test_one_that_raises_when_it_is_cancelled_is_handed_back(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            try:
                await asyncio.Event().wait()
            finally:
                raise ConnectionError("closing failed")

        await self.drained(run)

    async def test_one_that_goes_on_speaking_is_handed_back_unheard(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield TOO_LATE
                yield turn.complete(TOO_LATE)

        await self.drained(run)

    async def test_one_in_a_thread_is_told(self) -> None:
        begun, told = threading.Event(), threading.Event()

        def run(turn: Turn) -> Iterator[Any]:
            yield turn.working()
            begun.set()
            until_told(turn)
            told.set()
            yield turn.complete(TOO_LATE)

        await self.drained(run, begun)
        assert await asyncio.to_thread(told.wait, 10)


class TestHints:
    async def test_a_cancel_nobody_hints_at_is_seen_between_two_heartbeats(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_BEAT_SECONDS = 60.0
        settings.A2A_LEASE_SECONDS = 180.0
        monkeypatch.setattr(pubsub, "publish", lambda hint: None)
        stopped = asyncio.Event()
        with playing(until_stopped(stopped)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: client_state(client, task.id, "working"))
                await client.cancel(task.id)
                await asyncio.wait_for(stopped.wait(), 20)
