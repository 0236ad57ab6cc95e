"""The process of an agent is killed, by whom it may be or because its task is cancelled: the host goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.hosts import Host, host
from tests.journeys.pids import gone, pid_of, pids
from tests.journeys.wire import plain

COMPLETED, CANCELED = "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"
#: Seconds within which a cancelled agent is gone whatever it does: 8 by the settings' defaults, and more for a busy machine.
FORCED = 30.0


@pytest.fixture(scope="module")
def running(emptied: None) -> Iterator[Host]:
    """A host whose leases are long: nobody waits for the end of one."""
    with host({"A2A_LEASE_SECONDS": "180", "A2A_BEAT_SECONDS": "60"}) as made:
        yield made


async def test_a_killed_process_is_one_attempt_and_the_next_begins_at_once(
    running: Host, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    async with plain(running.here, "mortal") as client:
        task = await client.start(str(trace))
        os.kill(await pid_of(trace), signal.SIGKILL)
        ended = await client.until(task, COMPLETED)
    assert ended["artifacts"][0]["parts"] == [{"text": "attempt 2"}]
    assert len(set(pids(trace))) == 2


@pytest.mark.parametrize("agent", ["mortal", "locked"])
async def test_a_cancelled_one_that_hears_nothing_is_killed_in_time(
    running: Host, agent: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    async with plain(running.here, agent) as here, plain(running.there, agent) as there:
        task = await here.start(str(trace))
        pid = await pid_of(trace)
        assert (await there.cancel(task))["status"]["state"] == CANCELED
        await gone(pid, FORCED)
        last = (await here.log(task))[-1].said["statusUpdate"]["status"]["state"]
        assert last == CANCELED
        second = tmp_path / "second"
        task = await here.start(str(second))
        await pid_of(second)
        await here.cancel(task)
