"""An agent that is being drained, on every wire: what there is can be read, continued and cancelled; nothing begins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_tasks.access import switch_cache
from a2a_tasks.store import switches
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.switches import SwitchState
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.dialects.clients import WIRES, Refused, Wire

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("wire", share=2)]


@pytest.fixture(autouse=True)
def unswitched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing stays switched, and however busy the machine is, what is switched is known."""
    monkeypatch.setattr(switch_cache, "PATIENCE_SECONDS", 20.0)
    switch_cache.forget()
    yield
    switch_cache.forget()


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest, client: Client) -> Iterator[Wire]:
    chosen: Wire = request.param
    with playing(lambda turn: "so be it" if turn.text == "enough" else turn.ask("More?")) as agent:
        yield chosen.of(client, agent.slug)


def slug_of(wire: Wire) -> str:
    assert wire.client is not None
    return wire.client.base.split("/")[2]


async def test_what_there_is_goes_on_and_nothing_begins(wire: Wire) -> None:
    first, second = await wire.send("begin"), await wire.send("begin")
    await run_in_thread(switches.set_state, slug_of(wire), SwitchState.DRAINING)
    with pytest.raises(Refused) as refused:
        await wire.send("begin")
    assert "no new tasks" in str(refused.value)
    assert refused.value.response.header("retry-after") == "60"
    assert (await wire.get(first.id)).status.word == wire.shown("input-required")
    assert (await wire.send("enough", task=first.id)).status.word == "completed"
    assert (await wire.cancel(second.id)).status.word == "canceled"
    await run_in_thread(switches.set_state, slug_of(wire), SwitchState.ON)
    assert (await wire.send("enough")).status.word == "completed"


async def test_one_that_is_off_is_answered_as_one_that_was_never_there(wire: Wire) -> None:
    assert wire.client is not None
    task = (await wire.send("begin")).id
    await run_in_thread(switches.set_state, slug_of(wire), SwitchState.OFF)
    never = wire.of(wire.client, "never")
    assert never.client is not None
    off = await wire.client.ask(*wire._asked("get", {"id": task}))
    missing = await never.client.ask(*never._asked("get", {"id": task}))
    assert off.status == missing.status == 404
    assert (off.headers, off.body) == (missing.headers, missing.body)
