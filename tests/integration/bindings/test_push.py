"""Webhooks over every binding: registered, shown without their secrets, taken away."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django import Settings

from tests.support.bindings.peers import Fault, Peer, state_of
from tests.support.bindings.puppet import Puppet
from tests.support.push.inbox import delivering, inbox

pytestmark = pytest.mark.django_db

CREATE = "CreateTaskPushNotificationConfig"
GET = "GetTaskPushNotificationConfig"
LIST = "ListTaskPushNotificationConfigs"
DELETE = "DeleteTaskPushNotificationConfig"
SECRETS = ("token-7f3a", "credentials-91bc")
WEBHOOK: dict[str, Any] = {
    "url": "https://hooks.example.com/a2a",
    "token": SECRETS[0],
    "authentication": {"scheme": "Bearer", "credentials": SECRETS[1]},
}


@pytest.fixture
def pushing(peer: Peer, puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> Peer:
    monkeypatch.setattr(Puppet, "push_notifications", True)
    return peer.at("/agents/puppet")


async def begun(peer: Peer, **configuration: Any) -> str:
    task = await peer.send(configuration={"returnImmediately": True, **configuration})
    found: str = task["id"]
    return found


async def refused(peer: Peer, operation: str, params: dict[str, Any]) -> Fault:
    with pytest.raises(Fault) as caught:
        await peer.call(operation, params)
    assert not any(secret.encode() in caught.value.response.body for secret in SECRETS)
    return caught.value


class TestWebhooks:
    async def test_are_registered_read_and_taken_away(self, pushing: Peer) -> None:
        task = await begun(pushing)
        made = await pushing.call(CREATE, {"taskId": task, "id": "c", **WEBHOOK})
        assert made == {
            "id": "c",
            "taskId": task,
            "url": WEBHOOK["url"],
            "authentication": {"scheme": "Bearer"},
        }
        assert await pushing.call(GET, {"taskId": task, "id": "c"}) == made
        assert (await pushing.call(LIST, {"taskId": task}))["configs"] == [made]
        for _ in range(2):
            assert not await pushing.call(DELETE, {"taskId": task, "id": "c"})
        assert (await pushing.call(LIST, {"taskId": task}))["configs"] == []
        fault = await refused(pushing, GET, {"taskId": task, "id": "c"})
        assert fault.reason == "TASK_NOT_FOUND"

    async def test_come_in_pages(self, pushing: Peer) -> None:
        task = await begun(pushing)
        for name in "abc":
            await pushing.call(CREATE, {"taskId": task, "id": name, **WEBHOOK})
        page = await pushing.call(LIST, {"taskId": task, "pageSize": 2})
        assert [config["id"] for config in page["configs"]] == ["a", "b"]
        token = page["nextPageToken"]
        page = await pushing.call(LIST, {"taskId": task, "pageToken": token})
        assert [config["id"] for config in page["configs"]] == ["c"]

    async def test_are_counted(self, pushing: Peer, settings: Settings) -> None:
        settings.A2A_MAX_PUSH_CONFIGS = 1
        task = await begun(pushing, taskPushNotificationConfig=WEBHOOK)
        fault = await refused(pushing, CREATE, {"taskId": task, "id": "c", **WEBHOOK})
        assert fault.fields == ["id"]


class TestAWebhookThatComesWithALaterMessage:
    """Inline, with an answer to the agent's question."""

    @pytest.fixture(autouse=True)
    def own_receiver(self, settings: Settings) -> None:
        """Let webhooks go to this machine."""
        settings.A2A_WEBHOOK_ALLOW_HTTP = True
        settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
        settings.A2A_POLL_SECONDS = 0.05

    async def test_is_told_the_task_and_then_its_events(
        self, pushing: Peer, puppet: Puppet
    ) -> None:
        task = await begun(pushing)
        first = await puppet.hand()
        first.say(first.turn.ask("Which?"))
        first.end()
        await first.ended()
        async with inbox() as receiver, delivering():
            webhook = {"id": "late", "url": receiver.url()}
            inline = {"taskPushNotificationConfig": webhook, "returnImmediately": True}
            await pushing.send("blue", taskId=task, configuration=inline)
            second = await puppet.hand()
            await receiver.has(1)
            second.say(second.turn.artifact("painted"))
            second.end()
            await receiver.has(3)
        beginning = json.loads(receiver.seen[0].body)["task"]
        assert (beginning["id"], beginning["history"][-1]["parts"]) == (task, [{"text": "blue"}])
        assert state_of(beginning) in {"submitted", "working"}
        assert receiver.said[-2:] == ["painted", "completed"]
        (config,) = (await pushing.call(LIST, {"taskId": task}))["configs"]
        assert config["id"] == "late"
