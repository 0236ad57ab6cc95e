"""The published Python clients, with their defaults, follow an agent that says nothing for 8 and for 20 seconds.

Both read with httpx, whose default is an error after 5 seconds without a byte.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from a2a.client import A2AClientTimeoutError, ClientConfig, create_client
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import Role, SendMessageRequest, TaskState

from lab.clients.programs.environments import HERE, python_of
from lab.clients.published import bare
from tests.journeys.hosts import host
from tests.journeys.sdk import BINDINGS, said

pytestmark = pytest.mark.timeout(600)
SECONDS = ("8", "20")


@pytest.fixture(scope="module")
def agent(emptied: None) -> Iterator[str]:
    """The address of the silent agent of a host."""
    with host() as made:
        yield f"{made.here}/agents/silent"


async def listen(url: str, binding: str, seconds: str) -> str:
    """All texts that a2a-sdk 1.3.0 hears, in a stream."""
    config = ClientConfig(supported_protocol_bindings=[binding])
    message = new_text_message(seconds, role=Role.ROLE_USER)
    async with await create_client(url, client_config=config) as client:
        events = [e async for e in client.send_message(SendMessageRequest(message=message))]
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    return "".join(map(get_stream_response_text, events))


async def test_a2a_sdk_1_3_0_follows_it(agent: str) -> None:
    cases = [(binding, seconds) for binding in BINDINGS for seconds in SECONDS]
    heard = await asyncio.gather(*(listen(agent, *case) for case in cases))
    assert heard == ["done"] * len(cases)


async def wait(url: str, binding: str, **config: Any) -> str:
    """The artifact of a task that a2a-sdk 1.3.0 waits for, without a stream."""
    made = ClientConfig(streaming=False, supported_protocol_bindings=[binding], **config)
    message = new_text_message("8", role=Role.ROLE_USER)
    async with await create_client(url, client_config=made) as client:
        (answer,) = [e async for e in client.send_message(SendMessageRequest(message=message))]
    return said(*answer.task.artifacts)


async def test_a2a_sdk_1_3_0_waits_for_it_over_json_rpc(agent: str) -> None:
    assert await wait(agent, "JSONRPC") == "done"


async def test_a2a_sdk_1_3_0_waits_for_it_over_http_json_without_its_timeout(agent: str) -> None:
    with pytest.raises(A2AClientTimeoutError):
        await wait(agent, "HTTP+JSON")
    async with httpx.AsyncClient(timeout=None) as patient:  # noqa: S113 - what the docs say
        assert await wait(agent, "HTTP+JSON", httpx_client=patient) == "done"


@pytest.mark.parametrize("way", ["stream", "wait"])
async def test_a2a_sdk_0_3_26_follows_it_and_waits_for_it(agent: str, way: str) -> None:
    python = python_of(HERE / "sdk_03.txt", print)

    async def run(seconds: str) -> str:
        command = [str(python), str(HERE / "silence_03.py"), f"{agent}/a2a/0.3", seconds, way]
        process = await asyncio.create_subprocess_exec(
            *command, env=bare(os.environ), stdout=asyncio.subprocess.PIPE
        )
        told, _ = await process.communicate()
        return str(json.loads(told))

    assert await asyncio.gather(*map(run, SECONDS)) == ["done"] * len(SECONDS)
