"""A worker is killed between two steps of an agent; the next one takes the second, and not the first again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.models import Step
from tests.journeys.hosts import QUICK, web, worker
from tests.journeys.waiting import eventually
from tests.journeys.wire import Plain, plain

pytestmark = pytest.mark.backend("stack")
DONE, FAILED = "TASK_STATE_COMPLETED", "TASK_STATE_FAILED"
NAP = 4.0


def words(path: Path) -> list[str]:
    """What the agent left in its file."""
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def moments(path: Path) -> list[float]:
    """When."""
    return [float(line.split()[1]) for line in path.read_text().splitlines()]


async def says(client: Plain, task: str, text: str) -> None:
    """Wait until the task's status has this text."""

    async def look() -> bool:
        return text in str((await client.get(task))["status"])

    await eventually(look, f"{task} saying {text}")


async def asleep(task: str, blocker: DjangoDbBlocker) -> None:
    """Wait until the moment of waking is kept, which no client is told."""

    def look() -> bool:
        with blocker.unblock():
            try:
                return Step.objects.filter(task__public_id=task).exists()
            finally:
                connections.close_all()

    await eventually(lambda: asyncio.to_thread(look), f"{task} sleeping")


@pytest.mark.parametrize("agent", ["stepper", "thread-stepper"])
async def test_the_first_step_stays_taken_when_its_worker_is_killed(
    agent: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    with web(QUICK) as site, worker(1, QUICK) as doomed:
        async with plain(site.url, agent) as client:
            task = await client.start(str(trace))
            await says(client, task, "Between.")
            assert words(trace) == ["one"]
            doomed.kill()
            with worker(2, QUICK):
                await client.until(task, DONE)
    assert words(trace) == ["one", "two"]


async def test_a_sleep_goes_on_where_it_was(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    trace = tmp_path / "trace"
    with web(QUICK) as site, worker(1, QUICK) as doomed:
        async with plain(site.url, "napper") as client:
            task = await client.start(f"{trace} {NAP}")
            await asleep(task, django_db_blocker)
            doomed.kill()
            with worker(2, QUICK):
                await client.until(task, DONE)
    first, second, *more, woke = moments(trace)
    assert words(trace) == ["began", "began", *("began" for _ in more), "woke"]
    assert woke - first >= NAP
    assert woke - second < NAP, "the sleep began anew"


async def test_who_must_not_act_twice_fails_where_its_client_sees_it(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with web(QUICK) as site, worker(1, QUICK) as doomed:
        async with plain(site.url, "careful") as client:
            task = await client.start(str(trace))
            await says(client, task, "I have acted.")
            doomed.kill()
            with worker(2, QUICK):
                failed = await client.until(task, FAILED)
    assert "The process carrying this task died" in str(failed["status"]["message"])
    assert words(trace) == ["acted"]
