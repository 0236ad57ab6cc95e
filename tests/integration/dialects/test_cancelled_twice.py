"""A second cancel of a task is refused like that of any ended task, in the words of each dialect (A2A 1.0 §3.1.5)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.dialects.clients import WIRES, Refused, Wire

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("wire", share=2)]
#: The statuses over HTTP+JSON.
STATUS = {"v02-http": 409, "v03-http": 409, "dr-http": 409, "v10-http": 400}


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest, client: Client) -> Iterator[Wire]:
    chosen: Wire = request.param
    with playing(lambda turn: turn.ask("More?")) as agent:
        yield chosen.of(client, agent.slug)


async def test_a_second_cancel_is_refused_and_changes_nothing(wire: Wire) -> None:
    """Seed-0 has no code for it, and -32002 there is a session that was not found."""
    task = (await wire.send("begin")).id
    canceled = await wire.cancel(task)
    assert canceled.status.word == "canceled"
    with pytest.raises(Refused) as refused:
        await wire.cancel(task)
    answer = refused.value.response
    assert answer.status == STATUS.get(wire.name, 200)
    if wire.name not in STATUS:
        assert answer.json["error"]["code"] == (-32000 if wire.name == "s0" else -32002)
    assert b"canceled" in answer.body
    assert (await wire.get(task)).status == canceled.status
