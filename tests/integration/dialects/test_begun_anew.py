"""Who meets a task while it is begun anew under its id finds it: every request is answered (decision 9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_tasks.agents import Agent, Skill, Turn, registry
from tests.support.bindings.client import Client, Response
from tests.support.thorough import examples

pytestmark = pytest.mark.django_db
ROUNDS = examples(10, quick=4)
CLIENTS = 8
NOT_CANCELABLE = -32000  # of seed-0
TASK_ENDED = -32004


class Quick(Agent, abstract=True):
    """Is done with everything at once, and takes webhooks."""

    slug = "quick"
    name = "Quick"
    description = "Is done at once."
    skills = [Skill("quick", "Quick", "Is done at once", tags=["test"])]
    push_notifications = True

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        yield "Done"


@pytest.fixture(autouse=True)
def _quick(host: None) -> Iterator[None]:
    """Host it."""
    registry._found[Quick.slug] = Quick()
    yield
    del registry._found[Quick.slug]


async def ask(client: Client, mount: str, method: str, params: dict[str, Any]) -> Response:
    document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await client.post(f"/agents/quick/a2a/{mount}", document)


async def again(client: Client, name: str) -> Response:
    """Send to a task of 0.1, whether it has ended or not."""
    message = {"role": "user", "parts": [{"type": "text", "text": "again"}]}
    return await ask(client, "0.1", "tasks/send", {"id": name, "message": message})


async def test_every_request_meanwhile_finds_it(client: Client) -> None:
    """R-300. It may be too late for a message of 1.0 and for a cancel, but the task is there for each."""
    more = {"messageId": "m", "taskId": "", "role": "ROLE_USER", "parts": [{"text": "and?"}]}
    hook = {"id": "c", "url": "https://hooks.example.com/a2a"}
    for number in range(ROUNDS):
        name = f"task-{number}"
        assert "result" in (await again(client, name)).json
        late, canceled, *others = await asyncio.gather(
            ask(client, "1.0", "SendMessage", {"message": {**more, "taskId": name}}),
            ask(client, "seed-0", "tasks/cancel", {"id": name}),
            again(client, name),
            ask(client, "1.0", "GetTask", {"id": name}),
            ask(client, "1.0", "CreateTaskPushNotificationConfig", {**hook, "taskId": name}),
        )
        assert "result" in late.json or late.json["error"]["code"] == TASK_ENDED
        assert "result" in canceled.json or canceled.json["error"]["code"] == NOT_CANCELABLE
        for other in others:
            assert (other.status, "result" in other.json) == (200, True), other


async def test_all_who_do_so_at_once_are_answered(client: Client) -> None:
    """One begins it anew; the others speak to what it has begun, or begin it anew once more."""
    for number in range(ROUNDS):
        name = f"task-{number}"
        await again(client, name)
        for answer in await asyncio.gather(*(again(client, name) for _ in range(CLIENTS))):
            assert answer.status == 200, answer
            assert answer.json["result"]["id"] == name
            assert answer.json["result"]["status"]["state"] == "completed"
