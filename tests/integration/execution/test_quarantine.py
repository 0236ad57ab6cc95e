"""Runs in quarantine: a few of them in a process until they have lived long enough, and at last each in its own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_tasks.agents import Turn, registry
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.quarantine import GROUP
from tests.support.agents_under_test import playing
from tests.support.execution.host import due, runner
from tests.support.execution.neighbours.agents import Good, Poison
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def soon(settings: Any) -> None:
    """Let everything be looked at soon."""
    settings.A2A_POLL_SECONDS = 0.1


@pytest.fixture
def neighbours(agent_processes: None) -> Iterator[None]:
    """Host the poison and its neighbour, here and in agents' processes."""
    for cls in (Good, Poison):
        registry.register(cls)
    yield
    for cls in (Good, Poison):
        registry._found.pop(cls.slug)


def mark(**columns: Any) -> Any:
    """Let all runs have died like this."""
    return run_in_thread(lambda: Run.objects.update(**columns))


async def running() -> int:
    return await run_in_thread(Run.objects.filter(status=RunStatus.RUNNING).count)


class TestGroups:
    async def test_suspects_begin_in_a_small_group_and_the_next_when_they_have_lived_longer(
        self,
    ) -> None:
        go, begun, poll = asyncio.Event(), list[str](), asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            begun.append(turn.task_id)
            if turn.text == "look":
                poll.set()
            await go.wait()
            yield "done"

        with playing(run) as agent:
            for n in range(GROUP + 5):
                await due(agent.slug, f"suspect-{n}")
            await mark(shared_deaths=2, longest_life=600)
            async with runner() as made:
                await until(lambda: len(begun) == GROUP)
                await due(agent.slug, "fresh", text="look")
                await asyncio.wait_for(poll.wait(), 20)  # others are begun beside them
                assert len(begun) == GROUP + 1
                for carried in made._active.values():
                    carried._begun -= 601
                await until(lambda: len(begun) == GROUP + 6)
                go.set()
                await until(
                    lambda: run_in_thread(Task.objects.filter(state=TaskState.COMPLETED).count)
                )


@pytest.mark.usefixtures("neighbours")
@pytest.mark.backend("sqlite")
class TestProcessesOfTheirOwn:
    async def test_a_run_that_kills_its_process_kills_nothing_else_and_is_given_up(self) -> None:
        await due("poison", "poison", text="0", queue="neighbours")
        await due("good", "good", text="0", queue="neighbours")
        await mark(shared_deaths=3)
        async with runner("neighbours"):
            await until(
                lambda: run_in_thread(Task.objects.filter(state=TaskState.COMPLETED).exists), 60
            )
            await until(
                lambda: run_in_thread(Task.objects.filter(state=TaskState.FAILED).exists), 60
            )
        failed = await run_in_thread(Run.objects.get, task__agent="poison")
        assert (failed.status, failed.deaths, failed.attempt) == (RunStatus.FAILED, 3, 3)
        assert failed.error.count("the agent's process died with signal 9") == 3

    async def test_no_more_of_them_are_begun_than_there_are_processes(self, settings: Any) -> None:
        settings.A2A_AGENT_PROCESSES = 1
        for n in range(3):
            await due("good", f"task-{n}", text="0.5", queue="neighbours")
        await mark(shared_deaths=3)
        most = 0
        async with runner("neighbours"):
            while await run_in_thread(Task.objects.exclude(state=TaskState.COMPLETED).exists):
                most = max(most, await running())
                await asyncio.sleep(0.02)
        assert most == 1
