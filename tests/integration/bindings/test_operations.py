"""Every operation over every binding: the same question gets the same answer (R-160)."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.models import Message, Task
from a2a_tasks.protocol.fields import parse_rfc3339
from a2a_tasks.store.db import run_in_thread
from tests.support.bindings.peers import Fault, Peer, message
from tests.support.bindings.puppet import Puppet
from tests.support.rows import rows

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("peer", share=3)]


async def refused(peer: Peer, operation: str, params: Any = None, **headers: str) -> Fault:
    with pytest.raises(Fault) as caught:
        await peer.call(operation, params, headers)
    return caught.value


class TestSendMessage:
    async def test_makes_the_ids_of_task_and_context(self, peer: Peer) -> None:
        first, second = await peer.send(), await peer.send()
        assert len({first["id"], second["id"]}) == 2
        assert first["contextId"]
        assert first["contextId"] != second["contextId"]

    async def test_keeps_by_which_binding_it_came_and_how_it_began(self, peer: Peer) -> None:
        task = await peer.send("echo hi")
        row = await run_in_thread(Task.objects.get, public_id=task["id"])
        assert row.origin_binding == peer.name
        first = await run_in_thread(Message.objects.get, task=row, number=1)
        assert first.opening == "echo hi"

    async def test_may_be_answered_by_a_message_alone(self, peer: Peer) -> None:
        answer = await peer.call("SendMessage", message("message hello"))
        assert answer.keys() == {"message"}
        assert answer["message"]["role"] == "ROLE_AGENT"
        assert answer["message"]["parts"] == [{"text": "hello"}]
        assert answer["message"]["contextId"]
        assert "taskId" not in answer["message"]

    async def test_leaves_no_task_behind_a_message(self, peer: Peer) -> None:
        await peer.call("SendMessage", message("message hello"))
        assert (await peer.call("ListTasks"))["tasks"] == []

    async def test_may_not_wait_at_once_and_still_get_a_message(self, peer: Peer) -> None:
        configuration = {"returnImmediately": True}
        answer = await peer.call(
            "SendMessage", {**message("message hi"), "configuration": configuration}
        )
        assert answer.keys() == {"message"}

    async def test_gives_the_parts_back_as_they_came(self, peer: Peer) -> None:
        parts = [
            {"text": "a\x00b é \U0001f600"},
            {"raw": "+/8=", "filename": "x.bin", "mediaType": "application/octet-stream"},
            {"url": "https://example.com/x"},
            {"data": {"a": [1, 1.5, None, {"data": True}]}},
            {"data": None},
            {"data": 2**63},
            {"text": "x", "metadata": {"k": {"l": []}}},
        ]
        task = await peer.send(parts=parts)
        assert task["artifacts"][0]["parts"][1:] == parts
        assert task["history"][0]["parts"] == parts


class TestAMessageToATask:
    async def test_that_is_working_waits_its_turn(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        task = await peer.send("one", configuration={"returnImmediately": True})
        first = await puppet.hand()
        at_once = {"returnImmediately": True}
        await peer.send("two", taskId=task["id"], configuration=at_once)
        first.say(first.turn.ask("What?"))
        first.end()
        second = await puppet.hand()
        assert second.turn.text == "two"
        second.end()


class TestAContext:
    async def test_of_the_clients_choice_is_kept(self, peer: Peer) -> None:
        chosen = "my/context: é"
        tasks = [await peer.send(contextId=chosen) for _ in range(2)]
        assert {task["contextId"] for task in tasks} == {chosen}
        assert tasks[0]["id"] != tasks[1]["id"]

    async def test_may_be_256_letters_long(self, peer: Peer) -> None:
        assert (await peer.send(contextId="é" * 256))["contextId"] == "é" * 256


class TestTheAgent:
    async def test_is_told_what_came_beside_the_message(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        params = {
            **message("hi", metadata={"m": 1}),
            "metadata": {"k": [1]},
            "configuration": {"acceptedOutputModes": ["text/plain"]},
        }
        headers = {"a2a-extensions": "urn:x:two, urn:unknown"}
        sent = asyncio.create_task(peer.call("SendMessage", params, headers))
        hand = await puppet.hand()
        assert hand.turn.metadata == {"k": [1]}
        assert hand.turn.message.metadata == {"m": 1}
        assert hand.turn.accepted_output_modes == ("text/plain",)
        assert hand.turn.extensions == ("urn:x:two",)
        hand.end()
        await sent


class TestGetTask:
    async def test_shows_an_artifact_that_still_grows(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        async with peer.stream("SendStreamingMessage", message()) as stream:
            task = (await peer.next(stream))["task"]
            hand = await puppet.hand()
            page = hand.turn.stream("page")
            hand.say(page.write("a"), page.write("b"))
            while (await peer.next(stream)).get("artifactUpdate", {}).get("append") is not True:
                pass
            (artifact,) = (await peer.call("GetTask", {"id": task["id"]}))["artifacts"]
            assert [part["text"] for part in artifact["parts"]] == ["a", "b"]
            hand.end()

    @rows("operation", ["GetTask", "CancelTask", "SubscribeToTask"])
    @rows("id_", ["unknown", "a/b", "a:b", "é", "a\x00b", "..", "x" * 1000])
    async def test_like_others_knows_no_unknown_task(
        self, peer: Peer, operation: str, id_: str
    ) -> None:
        fault = await refused(peer, operation, {"id": id_})
        assert fault.reason == "TASK_NOT_FOUND"
        told = fault.metadata["taskId"]
        assert told == id_ or (peer.name == "GRPC" and told == f"{id_[: len(told) - 1]}…")

    @rows("operation", ["GetTask", "CancelTask", "SubscribeToTask"])
    async def test_like_others_knows_no_task_of_another_agent_or_tenant(
        self, peer: Peer, puppet: Puppet, operation: str
    ) -> None:
        task = await peer.send("ask What?")
        for other, params in ((peer.at("/agents/puppet"), {}), (peer, {"tenant": "acme"})):
            fault = await refused(other, operation, {"id": task["id"], **params})
            assert fault.reason == "TASK_NOT_FOUND"


class TestATenant:
    async def test_has_tasks_of_its_own(self, peer: Peer) -> None:
        sent = (await peer.call("SendMessage", {**message("echo x"), "tenant": "acme"}))["task"]
        found = await peer.call("GetTask", {"id": sent["id"], "tenant": "acme"})
        assert found["id"] == sent["id"]
        assert (await peer.call("ListTasks", {"tenant": "acme"}))["totalSize"] == 1
        assert (await peer.call("ListTasks"))["totalSize"] == 0


class TestListTasks:
    async def test_of_nothing_has_all_four_members(self, peer: Peer) -> None:
        assert await peer.call("ListTasks") == {
            "tasks": [],
            "nextPageToken": "",
            "pageSize": 50,
            "totalSize": 0,
        }

    async def test_is_walked_page_by_page(self, peer: Peer) -> None:
        sent = {(await peer.send())["id"] for _ in range(5)}
        seen: list[str] = []
        token = ""
        for left in (3, 1, 0):
            page = await peer.call("ListTasks", {"pageSize": 2, "pageToken": token})
            assert (page["pageSize"], page["totalSize"]) == (2, 5)
            seen += [task["id"] for task in page["tasks"]]
            token = page["nextPageToken"]
            assert bool(token) == bool(left)
        assert len(seen) == 5
        assert set(seen) == sent

    async def test_shows_artifacts_only_if_asked(self, peer: Peer) -> None:
        await peer.send("echo hi")
        await peer.send("fail x")
        plain = await peer.call("ListTasks")
        assert all("artifacts" not in task for task in plain["tasks"])
        no = await peer.call("ListTasks", {"includeArtifacts": False})
        assert all("artifacts" not in task for task in no["tasks"])
        shown = await peer.call("ListTasks", {"includeArtifacts": True})
        assert sorted(len(task.get("artifacts", [])) for task in shown["tasks"]) == [0, 1]

    async def test_filters_by_everything_at_once(self, peer: Peer) -> None:
        done = await peer.send("echo hi", contextId="c")
        await peer.send("fail x", contextId="c")
        await peer.send("echo hi")
        params = {"contextId": "c", "status": "TASK_STATE_COMPLETED"}
        page = await peer.call("ListTasks", params)
        assert [task["id"] for task in page["tasks"]] == [done["id"]]
        assert page["totalSize"] == 1

    async def test_filters_by_time_inclusively(self, peer: Peer) -> None:
        task = await peer.send()
        at = task["status"]["timestamp"]
        later = parse_rfc3339(at) + datetime.timedelta(milliseconds=1)
        found = await peer.call("ListTasks", {"statusTimestampAfter": at})
        assert found["totalSize"] == 1
        none = await peer.call("ListTasks", {"statusTimestampAfter": later.isoformat()})
        assert none["totalSize"] == 0

    async def test_filters_by_a_time_long_ago(self, peer: Peer) -> None:
        await peer.send()
        for at in ("0001-01-01T00:00:00Z", "0999-01-01T00:00:00Z"):
            page = await peer.call("ListTasks", {"statusTimestampAfter": at})
            assert page["totalSize"] == 1, at

    @rows("context", ["unknown", "a\x00b", "x" * 1000])
    async def test_finds_nothing_in_an_unknown_context(self, peer: Peer, context: str) -> None:
        assert (await peer.call("ListTasks", {"contextId": context}))["tasks"] == []

    @rows("token", ["x", "a:b:c", "\x00", "é", "x" * 5000])
    async def test_refuses_a_token_that_is_not_its_own(self, peer: Peer, token: str) -> None:
        fault = await refused(peer, "ListTasks", {"pageToken": token})
        assert (fault.reason, fault.fields) == ("INVALID_PARAMS", ["pageToken"])

    async def test_refuses_a_token_of_another_tenant(self, peer: Peer) -> None:
        for _ in range(2):
            await peer.send()
        token = (await peer.call("ListTasks", {"pageSize": 1}))["nextPageToken"]
        assert token
        params = {"pageToken": token, "tenant": "acme"}
        assert (await refused(peer, "ListTasks", params)).fields == ["pageToken"]

    @rows(
        ("params", "field"),
        [
            ({"pageSize": 0}, "pageSize"),
            ({"pageSize": 101}, "pageSize"),
            ({"historyLength": -1}, "historyLength"),
            ({"status": 99}, "status"),
            ({"tenant": "a\x00"}, "tenant"),
        ],
    )
    async def test_says_which_parameter_is_wrong(
        self, peer: Peer, params: dict[str, Any], field: str
    ) -> None:
        fault = await refused(peer.at("/agents/demo/a2a/1.0"), "ListTasks", params)
        assert (fault.reason, fault.fields) == ("INVALID_PARAMS", [field])


class TestAnAgentWithARequiredExtension:
    URI = "urn:a2a:tck:required-extension"

    @pytest.fixture
    def strict(self, peer: Peer, settings: Settings) -> Peer:
        settings.A2A_DISABLED_AGENTS = ""
        return peer.at("/agents/strict")

    @rows(
        ("operation", "params"),
        [
            ("SendMessage", message()),
            ("SendStreamingMessage", message()),
            ("GetTask", {"id": "t"}),
            ("ListTasks", {}),
            ("CancelTask", {"id": "t"}),
            ("SubscribeToTask", {"id": "t"}),
        ],
    )
    async def test_refuses_those_who_do_not_announce_it(
        self, strict: Peer, operation: str, params: dict[str, Any]
    ) -> None:
        fault = await refused(strict, operation, params)
        assert fault.reason == "EXTENSION_SUPPORT_REQUIRED"
        assert fault.metadata == {"uri": self.URI}
