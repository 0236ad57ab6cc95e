"""Many clients send one request under one key, to every process at once: one task comes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.journeys.hosts import Host
from tests.journeys.sdk import word
from tests.journeys.waiting import PATIENCE
from tests.journeys.wire import message

pytestmark = pytest.mark.backend("stack")
SENDS, KEYS = 30, 4


async def test_one_task_comes_of_each_key(site: Host) -> None:
    own = word()

    async def send(url: str, text: str, **more: Any) -> dict[str, Any]:
        request = message(f"echo {text}")
        request["message"] |= more
        headers = {"Idempotency-Key": f"{own}-{text}"}
        answer = await http.post(f"{url}/agents/demo/message:send", json=request, headers=headers)
        assert answer.status_code == 200, answer.text
        task: dict[str, Any] = answer.json()["task"]
        return task

    # Its pool would close connections of requests that begin, when the machine is busy (findings/).
    limits = httpx.Limits(max_connections=None, keepalive_expiry=None)
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False, limits=limits) as http:
        context = (await send(site.here, "first"))["contextId"]
        sends = [
            (site.webs[n // KEYS % len(site.webs)].url, str(n % KEYS)) for n in range(SENDS * KEYS)
        ]
        answers = await asyncio.gather(*(send(*each, contextId=context) for each in sends))
        for key in range(KEYS):
            found = answers[key::KEYS]
            assert len({task["id"] for task in found}) == 1
            assert {task["status"]["state"] for task in found} == {"TASK_STATE_COMPLETED"}
            assert {task["artifacts"][0]["parts"][0]["text"] for task in found} == {str(key)}
        asked = {"contextId": context}
        listed = (await http.get(f"{site.here}/agents/demo/tasks", params=asked)).json()
        assert listed["totalSize"] == 1 + KEYS
