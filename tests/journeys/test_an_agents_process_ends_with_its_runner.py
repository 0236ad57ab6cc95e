"""The runner of an agent's process is killed, or asked to end: the process does not outlive it, and the task does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import backend
from tests.journeys.hosts import QUICK, web, worker
from tests.journeys.pids import gone, pid_of
from tests.journeys.wire import plain
from tests.processes import Child

COMPLETED = "TASK_STATE_COMPLETED"


@contextmanager
def runner_of(number: int) -> Iterator[tuple[str, Child]]:
    """A host, and that process of it which runs agents."""
    if backend.backend() == backend.SQLITE:
        with web(QUICK) as site:
            yield site.url, site.process
    else:
        with web(QUICK) as site, worker(number, QUICK) as process:
            yield site.url, process


@pytest.mark.parametrize("agent", ["mortal", "locked"])
async def test_it_does_not_outlive_its_runner(agent: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with runner_of(1) as (url, process):
        async with plain(url, agent) as client:
            task = await client.start(str(trace))
            pid = await pid_of(trace)
            process.kill()
            await gone(pid)
    with runner_of(2) as (url, process):
        async with plain(url, agent) as client:
            await client.until(task, COMPLETED)


async def test_a_deploy_ends_it_and_its_task_goes_on_elsewhere(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with runner_of(3) as (url, process):
        async with plain(url, "mortal") as client:
            task = await client.start(str(trace))
            pid = await pid_of(trace)
            os.killpg(os.getpgid(pid), signal.SIGTERM)  # as a supervisor does to all of a group
            assert process.stop(30) == 0
            await gone(pid)
    with runner_of(4) as (url, process):
        async with plain(url, "mortal") as client:
            os.kill(await pid_of(trace, attempt=2), signal.SIGKILL)
            await client.until(task, COMPLETED)
