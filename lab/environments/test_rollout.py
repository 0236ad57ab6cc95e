"""An agent that the web processes never import: served, rolled out, rolled back, and gone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from tests.journeys.hosts import QUICK, Host, together
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import message
from tests.support.processes import Child, python

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(900)]
TASKS = 1000
AT_ONCE = 40


@contextmanager
def environment(version: str, name: str = "far", **variables: str) -> Iterator[Child]:
    """Run a worker that has this version of the agent, as `a2a-host-worker` does."""
    about = {
        **QUICK,
        "DJANGO_SETTINGS_MODULE": "a2a_host.worker_settings",
        "A2A_APPS": "lab.environments.far_app",
        "A2A_ENVIRONMENT": name,
        "A2A_PRESENCE_SECONDS": "0.5",
        "FAR_VERSION": version,
        **variables,
    }
    arguments = ["-m", "a2a_host.worker", "-n", f"{name}{version}@%h"]
    with python(arguments, about) as process:
        yield process


def ready(version: str) -> AbstractContextManager[Child]:
    """Run a worker, and wait until it is ready."""

    @contextmanager
    def begin() -> Iterator[Child]:
        with environment(version) as process:
            process.wait_for(" ready.", 120)
            yield process

    return begin()


class Far:
    """The agent, asked at one web process."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http, self._url = http, f"{url}/agents/far"

    async def card(self) -> dict[str, Any] | None:
        """Its 1.0 card, if it is served."""
        answer = await self._http.get(
            f"{self._url}/.well-known/agent-card.json", headers={"A2A-Version": "1.0"}
        )
        return answer.json() if answer.status_code == 200 else None

    async def serves(self, version: str) -> None:
        """Wait until its card has this version."""

        async def look() -> bool:
            found = await self.card()
            return found is not None and found["version"] == version

        await eventually(look, f"version {version} serves")

    async def send(
        self, text: str = "say", context: str = "", task: str = "", **more: Any
    ) -> dict[str, Any]:
        """Send to a context, to a task, or to neither, and return the task."""
        params = message(text, **more)
        if task:
            params["message"]["taskId"] = task
        if context:
            params["message"]["contextId"] = context
        answer = await self._http.post(f"{self._url}/message:send", json=params)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["task"]
        return found

    async def send_all(
        self, texts: Sequence[str], tasks: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Send all texts, some at a time; to these tasks, or each in a conversation of its own."""
        some = asyncio.Semaphore(AT_ONCE)

        async def send(text: str, task: str) -> dict[str, Any]:
            async with some:
                return await self.send(text, task=task)

        named = tasks or [""] * len(texts)
        return await asyncio.gather(*map(send, texts, named))

    async def get(self, task: str) -> dict[str, Any]:
        """The task as it is."""
        found: dict[str, Any] = (await self._http.get(f"{self._url}/tasks/{task}")).json()
        return found


def said(task: dict[str, Any]) -> str:
    """The words of a completed task."""
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    return str(task["artifacts"][0]["parts"][0]["text"])


def version_of(task: dict[str, Any]) -> str:
    return said(task).split()[0]


@pytest.fixture
async def far(site: Host) -> AsyncIterator[Far]:
    """The agent, as a client of the shared host sees it."""
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        yield Far(http, site.here)


def manage(*words: str) -> str:
    """Run `manage.py agent_versions`, and return what it says."""
    with python(["-m", "django", "agent_versions", *words]) as process:
        process.process.wait(60)
        process.stop()
        assert process.process.returncode == 0, process.log
        return process.log


async def test_a_rollout_of_an_agent_that_the_host_never_imported(far: Far) -> None:
    assert await far.card() is None
    with ExitStack() as running:
        first, _ = together(running, ready("1.0"), ready("2.0"))
        await asyncio.to_thread(manage, "serve", "far", "1.0")
        await far.serves("1.0")
        asked = [str(task["id"]) for task in await far.send_all(["ask"] * TASKS)]

        await asyncio.to_thread(manage, "canary", "far", "2.0", "10")

        async def has_canary() -> bool:
            return version_of(await far.send()) == "2.0"

        await eventually(has_canary, "the canary gets conversations")
        begun = Counter(map(version_of, await far.send_all(["say"] * TASKS)))
        assert begun["2.0"] / TASKS == pytest.approx(0.10, abs=0.04)  # four standard deviations

        await asyncio.to_thread(manage, "serve", "far", "2.0")
        await far.serves("2.0")
        answered = await far.send_all(["now"] * TASKS, tasks=asked)
        assert Counter(map(said, answered)) == {"1.0 after 1.0": TASKS}
        assert version_of(await far.send()) == "2.0"

        await asyncio.to_thread(manage, "rollback", "far")
        await far.serves("1.0")
        assert version_of(await far.send()) == "1.0"

        # A version whose workers are gone: its tasks wait until somebody moves their conversation.
        first.stop()
        context = answered[0]["contextId"]
        waiting = await far.send(context=context, configuration={"returnImmediately": True})
        assert "far  1.0  far  workers: 0, unfinished runs: 1  serves" in await asyncio.to_thread(
            manage, "list", "far"
        )
        await asyncio.to_thread(manage, "move", "far", "1.0", "2.0")

        async def is_done() -> bool:
            found = await far.get(waiting["id"])
            return bool(found["status"]["state"] == "TASK_STATE_COMPLETED")

        await eventually(is_done, "the moved task is done")
        assert said(await far.get(waiting["id"])) == "2.0 after 1.0,1.0"

        # Another environment with another card for a version that is alive is refused, and says why.
        with environment("2.0", "stranger", FAR_DESCRIPTION="Another.") as stranger:
            stranger.process.wait(60)
            stranger.stop()
        assert "The agents of this environment are refused: the environment far has" in stranger.log
