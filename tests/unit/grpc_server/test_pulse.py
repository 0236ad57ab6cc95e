"""Who is silent is asked before it is given up, and only its own silence counts."""

from __future__ import annotations

import asyncio
import time

from a2a_project.grpc_server.limits import Limits
from a2a_project.grpc_server.pulse import Pulse
from tests.support.grpc_server.client import PATIENCE


async def test_the_time_in_which_we_stood_still_is_nobodys_silence() -> None:
    asked, given_up = asyncio.Event(), asyncio.Event()
    limits = Limits(alive_seconds=0.05, answer_seconds=0.05, request_seconds=0.2)
    pulse = Pulse(limits, asked.set, given_up.set)
    pulse.begin()
    time.sleep(0.5)  # noqa: ASYNC251 - nothing else stops a loop
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
        assert not given_up.is_set()
        await given_up.wait()
    pulse.end()
