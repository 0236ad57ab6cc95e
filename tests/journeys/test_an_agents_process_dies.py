"""The process of an agent is killed, by whom it may be or because its task is cancelled: the host goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.backend import SQLITE, backend
from tests.journeys.hosts import Host
from tests.journeys.pids import gone, pid_of, pids
from tests.journeys.wire import plain

COMPLETED, CANCELED = "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"


async def test_a_killed_process_is_one_attempt_and_the_next_begins_at_once(
    site: Host, tmp_path: Path
) -> None:
    """At once: nobody waits for the end of a lease of the shared host."""
    trace = tmp_path / "trace"
    async with plain(site.here, "mortal") as client:
        task = await client.start(str(trace))
        os.kill(await pid_of(trace), signal.SIGKILL)
        ended = await client.until(task, COMPLETED)
    assert ended["artifacts"][0]["parts"] == [{"text": "attempt 2"}]
    assert len(set(pids(trace))) == 2


async def test_cancelled_ones_that_hear_nothing_are_killed_in_time(
    site: Host, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if backend() != SQLITE:
        request.getfixturevalue("workers").exactly(1)  # those wait for three seconds only

    async def cancelled(agent: str) -> None:
        trace = tmp_path / agent
        async with plain(site.here, agent) as here, plain(site.there, agent) as there:
            task = await here.start(str(trace))
            pid = await pid_of(trace)
            assert (await there.cancel(task))["status"]["state"] == CANCELED
            await gone(pid)
            last = (await here.log(task))[-1].said["statusUpdate"]["status"]["state"]
            assert last == CANCELED

    await asyncio.gather(cancelled("doomed-mortal"), cancelled("doomed-locked"))
    async with plain(site.here, "doomed-mortal") as client:  # there is room for another one
        second = tmp_path / "second"
        task = await client.start(str(second))
        await pid_of(second)
        await client.cancel(task)
