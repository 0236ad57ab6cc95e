"""A worker is killed with everything at work that a worker may carry: the host says so, and another one ends what was begun."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import PARKED, Run, Task
from tests.journeys.fixtures import Ask
from tests.journeys.hosts import Host, Workers
from tests.journeys.pids import gone, pid_of
from tests.journeys.secrets import SECRET, hand_over, is_nowhere
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import TERMINAL, Plain, folded, plain

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(300)]
DONE, FAILED, WORKING = "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_WORKING"
TASKS, PIECES = 12, 30
#: Seconds of a sleep: more than it takes to find a worker dead and to start another one, on a quiet machine.
NAP = 9.0


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


# Stories: what comes before the `yield` happens on the worker that is killed, what comes after it when there is another one.


@asynccontextmanager
async def a_secret(site: Host, ask: Ask) -> AsyncIterator[None]:
    """A secret that was handed over outlives the process that had it, and is nowhere else."""
    async with plain(site.here, "doomed-demo") as client:
        task = await client.start("secret token 2")
        await hand_over(client, site.there, task)
        yield
        ended = await client.until(task, DONE)
        assert ended["artifacts"][-1]["parts"] == [{"text": f"token has {len(SECRET)} characters"}]
        assert SECRET not in str(ended) + str(await client.log(task))
    await is_nowhere(ask)


@asynccontextmanager
async def a_step(site: Host, agent: str, trace: Path) -> AsyncIterator[None]:
    """The first step stays taken, the second one is taken."""
    async with plain(site.here, agent) as client:
        task = await client.start(str(trace))
        await says(client, task, "Between.")
        assert words(trace) == ["one"]
        yield
        await client.until(task, DONE)
        assert words(trace) == ["one", "two"]


@asynccontextmanager
async def a_sleep(site: Host, trace: Path, ask: Ask) -> AsyncIterator[None]:
    """It is parked, and goes on where it was: it is neither dropped nor begun anew, and no attempt is lost."""
    async with plain(site.here, "napper") as client:
        task = await client.start(f"{trace} {NAP}")
        runs = Run.objects.filter(task__public_id=task)
        await eventually(lambda: ask(runs.filter(round=PARKED).exists), f"{task} parked")
        yield
        await client.until(task, DONE)
        assert (await ask(runs.get)).attempt == 1
    first, _, woke = moments(trace)
    assert words(trace) == ["began", "began", "woke"], "the sleep began anew"
    assert woke - first >= NAP


@asynccontextmanager
async def an_act(site: Host, trace: Path) -> AsyncIterator[None]:
    """Who must not act twice fails, where its client sees it."""
    async with plain(site.here, "careful") as client:
        task = await client.start(str(trace))
        await says(client, task, "I have acted.")
        yield
        failed = await client.until(task, FAILED)
        assert "The process carrying this task died" in str(failed["status"]["message"])
        assert words(trace) == ["acted"]


@asynccontextmanager
async def a_process(site: Host, trace: Path) -> AsyncIterator[None]:
    """The process of an agent does not outlive its runner, though it hears nothing; its task does."""
    async with plain(site.here, "doomed-locked") as client:
        task = await client.start(str(trace))
        pid = await pid_of(trace)
        yield
        await gone(pid)
        await client.until(task, DONE)


@asynccontextmanager
async def many_tasks(site: Host) -> AsyncIterator[None]:
    """Each is completed once and whole, and whoever listened hears all of it, without a gap."""
    async with plain(site.here, "doomed-ticker") as client:
        tasks = await asyncio.gather(*(client.start(str(PIECES)) for _ in range(TASKS)))
        async with client.resume(tasks[0]) as stream:
            await stream.read(until=6)
            await asyncio.gather(*(client.until(task, WORKING) for task in tasks))
            yield
            begun, *events = await stream.read()
        ended = [await client.until(task, DONE) for task in tasks]
        whole = [{"text": f"#{i};"} for i in range(PIECES)]
        assert [task["artifacts"][0]["parts"] for task in ended] == [whole] * TASKS
        assert folded(begun.said["task"], events).items() <= ended[0].items()
        for log in [await client.log(task) for task in tasks]:
            updates = [event.said.get("statusUpdate", {}) for event in log]
            states = [update.get("status", {}).get("state") for update in updates]
            assert [state for state in states if state in TERMINAL] == [DONE]
            assert states[-1] == DONE
            assert [event.number for event in log] == list(range(2, log[-1].number + 1))


class Diagnosis:
    """What an operator is told of tasks under way, over the management API."""

    def __init__(self, http: httpx.AsyncClient, ask: Ask) -> None:
        self._http, self._ask = http, ask

    async def of(self, task: str) -> dict[str, Any]:
        """Why the task stands as it does."""
        number = await self._ask(lambda: Task.objects.get(public_id=task).pk)
        answer = await self._http.get(f"/api/v1/tasks/{number}/diagnosis")
        found: dict[str, Any] = answer.raise_for_status().json()
        return found

    async def becomes(self, task: str, kind: str, text: str = "") -> dict[str, Any]:
        """Wait until it is this, and says that."""

        async def look() -> dict[str, Any] | None:
            found = await self.of(task)
            return found if found["kind"] == kind and text in found["sentence"] else None

        return await eventually(look, f"{task} diagnosis as {kind}")


@asynccontextmanager
async def diagnosis(site: Host, ask: Ask) -> AsyncIterator[Diagnosis]:
    """For an operator with a key."""
    key = (await ask(lambda: issue("operator", scopes=("admin:read",)))).key
    async with httpx.AsyncClient(
        base_url=site.there, headers={"X-API-Key": key}, timeout=PATIENCE, trust_env=False
    ) as http:
        yield Diagnosis(http, ask)


async def test_the_host_says_why_its_tasks_stand_and_the_next_worker_ends_what_was_begun(
    site: Host, workers: Workers, ask: Ask, tmp_path: Path
) -> None:
    (doomed,) = workers.exactly(1)
    async with AsyncExitStack() as stories:
        why = await stories.enter_async_context(diagnosis(site, ask))
        client = await stories.enter_async_context(plain(site.here, "doomed-ticker"))
        echo = await stories.enter_async_context(plain(site.here, "doomed-demo"))
        for story in (
            a_process(site, tmp_path / "process"),
            a_secret(site, ask),
            a_step(site, "stepper", tmp_path / "step"),
            a_step(site, "thread-stepper", tmp_path / "thread-step"),
            an_act(site, tmp_path / "act"),
            a_sleep(site, tmp_path / "sleep", ask),
            many_tasks(site),
        ):
            await stories.enter_async_context(story)
        task = await client.start("100000")
        running = (await why.becomes(task, "working"))["sentence"]
        name = running.removeprefix("Running on ").partition(" ")[0]
        doomed.kill()
        lost = await why.becomes(task, "lost", name)
        assert lost["next"].startswith("Attempt 2 begins")
        waiting = await echo.start("echo x")
        nobody = await why.becomes(waiting, "no-worker")
        assert nobody["needs"] == "operator"
        assert f"{name} did; its last heartbeat came" in nobody["sentence"]
        workers.exactly(1)
        await echo.until(waiting, DONE)
        await why.becomes(task, "working", "attempt 2")
        await client.cancel(task)


async def test_a_deploy_ends_the_process_of_an_agent_and_its_task_goes_on_elsewhere(
    site: Host, workers: Workers, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    (runner,) = workers.exactly(1)
    async with plain(site.here, "doomed-mortal") as client:
        task = await client.start(str(trace))
        pid = await pid_of(trace)
        os.killpg(os.getpgid(pid), signal.SIGTERM)  # as a supervisor does to all of a group
        assert runner.stop(PATIENCE) == 0
        await gone(pid)
        workers.exactly(1)
        os.kill(await pid_of(trace, attempt=2), signal.SIGKILL)
        await client.until(task, DONE)
