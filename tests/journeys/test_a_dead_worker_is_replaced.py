"""A worker is killed with agents at work; another one finishes every task."""

from __future__ import annotations

import asyncio

import pytest

from tests.journeys.hosts import QUICK, web, worker
from tests.journeys.wire import TERMINAL, folded, plain

pytestmark = pytest.mark.backend("stack")
TASKS, PIECES = 12, 30
DONE = "TASK_STATE_COMPLETED"


async def test_a_second_worker_finishes_what_the_killed_one_had_begun() -> None:
    with web(QUICK) as site, worker(1, QUICK) as doomed:
        async with plain(site.url, "ticker") as client:
            tasks = [await client.start(str(PIECES)) for _ in range(TASKS)]
            async with client.resume(tasks[0]) as stream:
                await stream.read(until=6)
                await asyncio.gather(*(client.until(t, "TASK_STATE_WORKING") for t in tasks))
                doomed.kill()
                with worker(2, QUICK):
                    begun, *events = await stream.read()
                    ended = [await client.until(task, DONE) for task in tasks]

            whole = [{"text": f"#{i};"} for i in range(PIECES)]
            assert [task["artifacts"][0]["parts"] for task in ended] == [whole] * TASKS
            assert folded(begun.said["task"], events).items() <= ended[0].items()
            for task in tasks:
                log = await client.log(task)
                states = [
                    e.said.get("statusUpdate", {}).get("status", {}).get("state") for e in log
                ]
                assert [state for state in states if state in TERMINAL] == [DONE]
                assert states[-1] == DONE
                assert [event.number for event in log] == list(range(2, log[-1].number + 1))
