"""The embedded host is killed with agents at work; started again, it finishes every task."""

from __future__ import annotations

import asyncio

import pytest

from tests.journeys.hosts import QUICK, web
from tests.journeys.wire import plain

pytestmark = pytest.mark.backend("sqlite")
TASKS = 20


async def test_every_task_completes_after_the_restart() -> None:
    with web(QUICK) as host:
        async with plain(host.url, "demo") as client:
            tasks = [await client.start("sleep 2") for _ in range(TASKS)]
            await asyncio.gather(*(client.until(task, "TASK_STATE_WORKING") for task in tasks))
        host.process.kill()
    with web(QUICK) as host:
        async with plain(host.url, "demo") as client:
            ended = [await client.until(task, "TASK_STATE_COMPLETED") for task in tasks]
            for task in ended:
                assert [a["parts"] for a in task["artifacts"]] == [[{"text": "Slept 2 s"}]]
            page = await client.send("echo and it takes new ones")
            assert page["status"]["state"] == "TASK_STATE_COMPLETED"
