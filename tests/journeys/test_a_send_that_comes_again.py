"""Many clients send one request under one key, to every process at once; and a client sends again after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.journeys.hosts import Host, host
from tests.journeys.waiting import PATIENCE
from tests.journeys.wire import Stream, message

pytestmark = pytest.mark.backend("stack")
SENDS, KEYS, PIECES = 60, 4, 60


@pytest.fixture
def running(emptied: None) -> Iterator[Host]:
    """Two web processes and a worker."""
    with host() as running:
        yield running


@pytest.fixture
def http() -> httpx.AsyncClient:
    """Connections, as many as it takes."""
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(timeout=PATIENCE, trust_env=False, limits=limits)


async def test_one_task_comes_of_each_key(running: Host, http: httpx.AsyncClient) -> None:
    async def send(n: int) -> tuple[str, Any]:
        key, url = f"key-{n % KEYS}", running.webs[n // KEYS % 2].url
        answer = await http.post(
            f"{url}/agents/demo/message:send",
            json=message(f"echo {key}"),
            headers={"Idempotency-Key": key},
        )
        assert answer.status_code == 200, answer.text
        return key, answer.json()["task"]

    async with http:
        answers = await asyncio.gather(*[send(n) for n in range(SENDS * KEYS)])
        tasks = {key: [task for own, task in answers if own == key] for key, _ in answers}
        assert len(tasks) == KEYS
        for key, found in tasks.items():
            assert len({task["id"] for task in found}) == 1
            assert {task["status"]["state"] for task in found} == {"TASK_STATE_COMPLETED"}
            assert {task["artifacts"][0]["parts"][0]["text"] for task in found} == {key}
        listed = (await http.get(f"{running.here}/agents/demo/tasks")).json()
        assert listed["totalSize"] == KEYS


async def test_sending_again_elsewhere_tells_what_the_crash_cut_off(
    running: Host, http: httpx.AsyncClient
) -> None:
    doomed, other = running.webs
    request, key = message(str(PIECES)), {"Idempotency-Key": "once"}
    async with http:
        path = "agents/ticker/message:stream"
        async with http.stream("POST", f"{doomed.url}/{path}", json=request, headers=key) as answer:
            seen = Stream(answer)
            await seen.read(until=20)
            doomed.process.kill()
        after = {**key, "Last-Event-ID": str(seen.last)}
        async with http.stream(
            "POST", f"{other.url}/{path}", json=request, headers=after
        ) as answer:
            rest = await Stream(answer).read()
        async with http.stream("POST", f"{other.url}/{path}", json=request, headers=key) as answer:
            begun, *whole = await Stream(answer).read()
        assert [*seen.seen[1:], *rest] == whole
        assert begun.said["task"]["id"] == seen.task_id
        assert [event.number for event in whole] == list(range(2, whole[-1].number + 1))
        listed = (await http.get(f"{other.url}/agents/ticker/tasks")).json()
        assert listed["totalSize"] == 1
