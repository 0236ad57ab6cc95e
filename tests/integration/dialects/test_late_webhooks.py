"""A webhook that comes with an answer to the agent's question, in every dialect: it is told what follows, to the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.dialects.clients import BY_NAME, Wire
from tests.support.push.inbox import delivering, inbox

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("wire", share=3)]
#: What each dialect calls the webhook of a message. The oldest have no `configuration` around it.
MEMBERS = {
    **dict.fromkeys(("s0", "v00", "v01", "v02-http", "v03-http"), "pushNotification"),
    **dict.fromkeys(("v02", "v03", "dr", "dr-http"), "pushNotificationConfig"),
    **dict.fromkeys(("v10", "v10-http"), "taskPushNotificationConfig"),
}


@pytest.fixture(autouse=True)
def own_receiver(settings: Settings) -> None:
    """Let webhooks go to this machine."""
    settings.A2A_WEBHOOK_ALLOW_HTTP = True
    settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
    settings.A2A_POLL_SECONDS = 0.05


@pytest.fixture(params=MEMBERS)
def wire(request: pytest.FixtureRequest, client: Client) -> Iterator[Wire]:
    def run(turn: Any) -> Any:
        return "so be it" if turn.text == "enough" else turn.ask("More?")

    with playing(run, push_notifications=True) as agent:
        yield BY_NAME[request.param].of(client, agent.slug)


async def test_a_webhook_with_a_later_message_is_told_the_end(wire: Wire) -> None:
    task = (await wire.send("begin")).id
    async with inbox() as receiver, delivering():
        params = wire._params(["enough"], task, "")
        holder = params.get("configuration", params)
        holder[MEMBERS[wire.name]] = {"url": receiver.url()}
        assert wire.grammar.answer(await wire.call("send", params)).status.word == "completed"
        while not receiver.said or receiver.said[-1] != "completed":
            await receiver.has(len(receiver.seen) + 1)
    assert task.encode() in receiver.seen[0].body
