"""The number of series in `/metrics` does not grow with tenants, callers and tasks."""

from __future__ import annotations

import asyncio
import functools
import json
import re

import pytest
from pytest_django import Settings

from tests.support.bindings.client import Client
from tests.support.bindings.fixtures import client, host, local

__all__ = ["client", "host", "local"]

pytestmark = pytest.mark.django_db
TENANTS = 1000
#: What the demo agent is told: it answers, asks, fails, and answers without a task.
TEXTS = ("echo hi", "ask", "fail", "message hi")


async def send(client: Client, number: int, text: str, verb: str) -> None:
    """Send a message in a tenant of its own."""
    message = {"messageId": f"m-{number}", "role": "ROLE_USER", "parts": [{"text": text}]}
    body = json.dumps({"tenant": f"tenant-{number}", "message": message}).encode()
    answer = await client.ask("POST", f"/agents/demo/message:{verb}", body, {"a2a-version": "1.0"})
    assert answer.status == 200, answer.body


async def series(client: Client) -> set[str]:
    """The names and labels that are shown now."""
    text = (await client.get("/metrics")).body.decode()
    return {line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.usefixtures("host")
async def test_a_thousand_tenants_add_no_series(client: Client, settings: Settings) -> None:
    settings.A2A_METRICS_PEERS = "127.0.0.1"
    for text in TEXTS:
        for verb in ("send", "stream"):
            await send(client, 0, text, verb)
    before = await series(client)
    assert any(re.search(r'a2a_waiting_for_people\{agent="demo"', line) for line in before)
    for first in range(0, TENANTS, 50):
        numbers = range(first, first + 50)
        texts = [TEXTS[number % len(TEXTS)] for number in numbers]
        verbs = [("send", "stream")[number // len(TEXTS) % 2] for number in numbers]
        await asyncio.gather(*map(functools.partial(send, client), numbers, texts, verbs))
    assert await series(client) - before == set()
