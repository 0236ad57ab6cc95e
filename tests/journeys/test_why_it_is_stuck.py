"""A worker is killed: the host says that it lost it, then that nobody is there, then that it goes on."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from a2a_tasks.access.api_keys import issue
from a2a_tasks.store.hop import hop
from a2a_tasks.store.named import named
from tests.execution.waiting import until
from tests.journeys.hosts import QUICK, web, worker
from tests.journeys.wire import plain

pytestmark = [pytest.mark.backend("stack"), pytest.mark.django_db(transaction=True)]
#: Leases that end after the looks.
SLOW = {
    **QUICK,
    "A2A_LEASE_SECONDS": "3",
    "A2A_BEAT_SECONDS": "1",
    "A2A_PRESENCE_SECONDS": "0.3",
    "A2A_MAX_ATTEMPTS": "3",
}


async def test_the_host_says_why_while_a_worker_is_dead() -> None:
    key = (await hop(issue, "operator", scopes=("admin:read",))).key
    with web(SLOW) as site, worker(1, SLOW) as doomed:
        async with plain(site.url, "ticker") as client, httpx.AsyncClient() as http:
            task = await client.start("1000")
            (number,) = await hop(named, task)

            async def why(number: int = number) -> dict[str, Any]:
                url = f"{site.url}/api/v1/tasks/{number}/standing"
                answer = await http.get(url, headers={"X-API-Key": key})
                found: dict[str, Any] = answer.raise_for_status().json()
                return found

            async def stands(kind: str) -> bool:
                return bool((await why())["kind"] == kind)

            await until(lambda: stands("working"))
            first = await why()
            doomed.kill()
            await until(lambda: stands("lost"))
            lost = await why()
            assert lost["sentence"].startswith(first["sentence"].partition(" ")[0])
            assert lost["next"].startswith("Attempt 2 of 3 begins")
            (next_one,) = await hop(named, await client.start("1000"))
            await until(lambda: _is(why, next_one, "no-worker"))
            nobody = await why(next_one)
            assert nobody["needs"] == "operator"
            assert (
                f"{first['sentence'].partition(' ')[0]} did, and has said nothing"
                in nobody["sentence"]
            )
            with worker(2, SLOW):
                await until(lambda: _is(why, next_one, "working"))
                await until(lambda: stands("working"))
                await until(lambda: _second(why))
                await client.cancel(task)


async def _is(why: Any, task: int, kind: str) -> bool:
    return bool((await why(task))["kind"] == kind)


async def _second(why: Any) -> bool:
    return "attempt 2 of 3" in (await why())["sentence"]
