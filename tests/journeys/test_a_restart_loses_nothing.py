"""The embedded host is killed with agents at work, and ended with one at work: started again, it finishes every task."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.journeys.fixtures import Ask
from tests.journeys.hosts import QUICK, web
from tests.journeys.pids import gone, pid_of
from tests.journeys.secrets import SECRET, hand_over, is_nowhere
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import Plain, plain

pytestmark = pytest.mark.backend("sqlite")
TASKS = 20
DONE = "TASK_STATE_COMPLETED"
ENVIRON = {**QUICK, "A2A_DRAIN_SECONDS": "1"}


async def is_between_steps(client: Plain, task: str) -> None:
    """Wait until its first step is stored: the agent says so."""

    async def look() -> bool:
        return "Between." in str((await client.get(task))["status"])

    await eventually(look, f"{task} is between its steps")


async def test_every_task_completes_after_a_restart(ask: Ask, tmp_path: Path) -> None:
    """Also one with a secret that was handed over, and those in processes of their own, which end with the host's."""
    locked, mortal = tmp_path / "locked", tmp_path / "mortal"
    with web(ENVIRON) as host:
        async with (
            plain(host.url, "demo") as client,
            plain(host.url, "locked") as other,
            plain(host.url, "stepper") as steps,
        ):
            secret = await client.start("secret token 2")
            await hand_over(client, host.url, secret)
            held = await other.start(str(locked))
            pid = await pid_of(locked)
            tasks = [await steps.start(str(tmp_path / f"step-{n}")) for n in range(TASKS)]
            await asyncio.gather(*(is_between_steps(steps, task) for task in tasks))
        host.process.kill()
        await gone(pid)

    with web(ENVIRON) as host:
        async with (
            plain(host.url, "demo") as client,
            plain(host.url, "locked") as other,
            plain(host.url, "stepper") as steps,
        ):
            for n, task in enumerate(tasks):
                await steps.until(task, DONE)
                taken = (tmp_path / f"step-{n}").read_text().splitlines()
                assert [line.split()[0] for line in taken] == ["one", "two"]
            page = await client.send("echo and it takes new ones")
            assert page["status"]["state"] == DONE
            told = await client.until(secret, DONE)
            length = f"token has {len(SECRET)} characters"
            assert told["artifacts"][-1]["parts"] == [{"text": length}]
            assert SECRET not in str(told) + str(await client.log(secret))
            await other.until(held, DONE)
        await is_nowhere(ask)
        async with plain(host.url, "mortal") as client:
            ended = await client.start(str(mortal))
            pid = await pid_of(mortal)
            os.killpg(os.getpgid(pid), signal.SIGTERM)  # as a supervisor does to all of a group
            assert host.process.stop(PATIENCE) == 0
            await gone(pid)

    with web(ENVIRON) as host:
        async with plain(host.url, "mortal") as client:
            os.kill(await pid_of(mortal, attempt=2), signal.SIGKILL)
            await client.until(ended, DONE)
