"""The same key in every dialect and binding: one task, and a conflict in the dialect's own words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from a2a_tasks.models import Run, Task
from a2a_tasks.store.db import run_in_thread
from tests.support.bindings.client import Client, Response
from tests.support.dialects.clients import WIRES, JsonRpc, Piece, Wire

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("repeating", share=2)]


@dataclass
class Repeating:
    """A client that says the same thing, or not quite, under one key."""

    wire: Wire

    def __post_init__(self) -> None:
        grammar = self.wire.grammar
        self.params = grammar.send([Piece("text", "chunks 3")], "", "", waits=True, history=None)

    def asked(self, operation: str, params: Any = None) -> tuple[str, str, bytes, dict[str, str]]:
        method, path, body, headers = self.wire._asked(operation, params or self.params)
        return method, path, body, {**headers, "idempotency-key": "k1"}

    async def ask(self, params: Any = None) -> Response:
        """A send, answered."""
        assert self.wire.client is not None
        return await self.wire.client.ask(*self.asked("send", params))


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def repeating(request: pytest.FixtureRequest, host: None, client: Client) -> Repeating:
    """A client of the demo agent, over each wire."""
    return Repeating(request.param.of(client, "demo"))


async def test_a_send_that_comes_again_is_the_same_task(repeating: Repeating) -> None:
    once, again = await repeating.ask(), await repeating.ask()
    assert once.status == 200
    assert again.json == once.json
    assert (await run_in_thread(Task.objects.count), await run_in_thread(Run.objects.count)) == (
        1,
        1,
    )


async def test_another_one_is_a_conflict(repeating: Repeating) -> None:
    await repeating.ask()
    text = json.dumps(repeating.params).replace("chunks 3", "chunks 4")
    refused = await repeating.ask(json.loads(text))
    assert "IDEMPOTENCY_CONFLICT" in refused.body.decode()
    if isinstance(repeating.wire.binding, JsonRpc):
        assert (refused.status, refused.json["error"]["code"]) == (200, -32602)
    else:
        assert refused.status == 422
    assert await run_in_thread(Task.objects.count) == 1
