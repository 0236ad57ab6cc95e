"""Requirements that no other test holds, each named; `docs/requirements.toml` has them all, with their tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from a2a_tasks.agents.emission import Chunk
from a2a_tasks.protocol.values import Part
from tests.support.bindings.client import Client, Response
from tests.support.bindings.peers import PEERS, Fault, JsonRpc, Peer, message, state_of
from tests.support.bindings.puppet import Puppet
from tests.support.bindings.rpc_peer import Grpc
from tests.support.rows import rows

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("peer", share=3)]

CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]*)*")
#: Members whose content is somebody else's: its names are kept as they are.
FOREIGN = {"metadata", "data", "params"}
#: Every word of the proto that may be written.
ENUMS = re.compile(r"ROLE_(?:USER|AGENT)|TASK_STATE_[A-Z_]+")
#: What goes wrong, and how it is asked for.
WRONG: list[tuple[str, str, dict[str, Any]]] = [
    ("TASK_NOT_FOUND", "GetTask", {"id": "unknown"}),
    ("TASK_NOT_FOUND", "CancelTask", {"id": "unknown"}),
    ("TASK_NOT_FOUND", "SubscribeToTask", {"id": "unknown"}),
    ("TASK_NOT_FOUND", "SendMessage", message(taskId="unknown")),
    ("INVALID_PARAMS", "SendMessage", message(parts=[])),
    ("INVALID_PARAMS", "ListTasks", {"pageSize": 0}),
    ("UNSUPPORTED_OPERATION", "GetExtendedAgentCard", {}),
]


def members(value: object) -> Iterator[tuple[str, object]]:
    """Every member of a document, however deep, except in what is somebody else's."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield name, member
            if name not in FOREIGN:
                yield from members(member)
    elif isinstance(value, list):
        for item in value:
            yield from members(item)


ALL: list[type[Peer]] = [*PEERS, Grpc]


async def written(peer: Peer) -> list[Any]:
    """One answer of every kind: a stream with a status and an artifact, a task, a page, a Message, a card."""
    async with peer.stream("SendStreamingMessage", message("chunks 2")) as stream:
        said = await peer.items(stream)
    id_ = said[0]["task"]["id"]
    card = (await peer.client.get("/.well-known/agent-card.json")).json
    return [
        *said,
        await peer.call("SendMessage", message("ask What?")),
        await peer.call("SendMessage", message("message hi")),
        await peer.call("GetTask", {"id": id_}),
        await peer.call("ListTasks", {"includeArtifacts": True, "historyLength": 5}),
        card,
    ]


async def test_what_is_written_is_in_camel_case_with_enums_of_the_proto_and_one_member_of_a_choice(
    peer: Peer,
) -> None:
    answers = await written(peer)
    found = list(members(answers))
    names = {name for name, _ in found}
    assert {"contextId", "statusUpdate", "nextPageToken", "supportedInterfaces"} <= names
    assert [name for name in names if not CAMEL.fullmatch(name)] == []
    said = {str(value) for name, value in found if name in {"role", "state"}}
    assert {"ROLE_USER", "ROLE_AGENT", "TASK_STATE_COMPLETED"} <= said
    assert [word for word in said if not ENUMS.fullmatch(word)] == []
    chosen = [item for item in answers if item.keys() & {"statusUpdate", "artifactUpdate"}]
    assert chosen
    wrapped = [*chosen, answers[0], await peer.call("SendMessage", message("echo hi"))]
    assert [len(item) for item in wrapped] == [1] * len(wrapped)
    parts = [
        p for name, value in found if name == "parts" and isinstance(value, list) for p in value
    ]
    assert parts
    assert all(len(part.keys() & {"text", "raw", "url", "data"}) == 1 for part in parts)


async def artifacts_of(peer: Peer, puppet: Puppet, *words: Chunk) -> list[dict[str, Any]]:
    """The artifacts of a task whose agent says this; without words, two artifacts and a text."""
    sent = asyncio.create_task(peer.at("/agents/puppet").send())
    hand = await puppet.hand()
    hand.say(*(words or (hand.turn.artifact("a"), hand.turn.artifact("b"), "plain text")))
    hand.end()
    artifacts: list[dict[str, Any]] = (await sent)["artifacts"]
    return artifacts


class TestArtifacts:
    async def test_have_ids_of_their_own_within_a_task(self, peer: Peer, puppet: Puppet) -> None:
        artifacts = await artifacts_of(peer, puppet)
        assert [artifact["parts"][0]["text"] for artifact in artifacts] == ["a", "b", "plain text"]
        assert len({artifact["artifactId"] for artifact in artifacts}) == 3

    async def test_of_one_id_are_one(self, peer: Peer, puppet: Puppet) -> None:
        words = [Chunk(artifact_id="a", parts=(Part(text=text),), last=True) for text in "xy"]
        (artifact,) = await artifacts_of(peer, puppet, *words)
        assert artifact == {"artifactId": "a", "parts": [{"text": "y"}]}


class TestAnExtension:
    async def test_of_an_artifact_arrives_as_it_was_said(self, peer: Peer, puppet: Puppet) -> None:
        said = Chunk(
            artifact_id="a",
            parts=(Part(text="x"),),
            metadata={"urn:x:one": {"Some_Key": [1]}},
            extensions=("urn:x:one",),
            last=True,
        )
        (artifact,) = await artifacts_of(peer, puppet, said)
        assert artifact == {
            "artifactId": "a",
            "parts": [{"text": "x"}],
            "metadata": {"urn:x:one": {"Some_Key": [1]}},
            "extensions": ["urn:x:one"],
        }


class TestAFaultOfAnAgent:
    async def test_is_logged_for_the_operator_alone(
        self, peer: Peer, puppet: Puppet, caplog: pytest.LogCaptureFixture
    ) -> None:
        sent = asyncio.create_task(peer.at("/agents/puppet").send())
        (await puppet.hand()).say(RuntimeError("nobody outside may read this"))
        assert "nobody outside" not in str(await sent)
        assert "nobody outside may read this" in caplog.text


@pytest.mark.usefixtures("host")
class TestEveryBinding:
    @pytest.fixture
    def peers(self, client: Client) -> list[Peer]:
        return [peer(Client(client.app, "/agents/demo")) for peer in ALL]

    async def test_tell_the_same_of_what_was_done_over_the_other(self, peers: list[Peer]) -> None:
        for peer in peers:
            asked = await peer.send("ask What?", contextId="c")
            other = next(found for found in peers if found is not peer)
            answered = await other.send("Alice", taskId=asked["id"])
            found = [await each.call("GetTask", {"id": asked["id"]}) for each in peers]
            assert found == [answered] * len(peers)
            found = [
                await each.call("GetTask", {"id": asked["id"], "historyLength": 1})
                for each in peers
            ]
            assert found == [found[0]] * len(peers)
            listed = {"contextId": "c", "includeArtifacts": True, "historyLength": 2}
            pages = [await each.call("ListTasks", listed) for each in peers]
            assert pages == [pages[0]] * len(peers)

    async def test_cancel_alike_and_err_alike_of_a_task_that_has_ended(
        self, peers: list[Peer]
    ) -> None:
        for peer in peers:
            task = (await peer.send("ask What?"))["id"]
            assert state_of(await peer.call("CancelTask", {"id": task})) == "canceled"
            await self.alike(peers, "TASK_NOT_CANCELABLE", "CancelTask", {"id": task})
            more = message("x", taskId=task)
            await self.alike(peers, "UNSUPPORTED_OPERATION", "SendMessage", more)

    async def test_stream_the_same_of_a_task(self, peers: list[Peer]) -> None:
        async with peers[0].stream("SendStreamingMessage", message("chunks 3")) as stream:
            first, *rest = await peers[0].items(stream)
        after = {"last-event-id": "0"}
        for peer in peers:
            params = {"id": first["task"]["id"]}
            async with peer.stream("SubscribeToTask", params, after) as stream:
                assert await peer.items(stream) == rest

    @rows(("reason", "operation", "params"), WRONG)
    async def test_err_alike(
        self, peers: list[Peer], reason: str, operation: str, params: dict[str, Any]
    ) -> None:
        await self.alike(peers, reason, operation, params)

    async def test_err_alike_where_there_are_no_webhooks(self, client: Client) -> None:
        peers = [peer(Client(client.app, "/agents/tables")) for peer in ALL]
        operation = "ListTaskPushNotificationConfigs"
        await self.alike(peers, "PUSH_NOTIFICATION_NOT_SUPPORTED", operation, {"taskId": "t"})

    async def alike(
        self, peers: list[Peer], reason: str, operation: str, params: dict[str, Any]
    ) -> None:
        """Ask in vain over each binding."""
        faults = []
        for peer in peers:
            with pytest.raises(Fault) as caught:
                await peer.call(operation, params)
            faults.append(caught.value)
        assert [fault.reason for fault in faults] == [reason] * len(peers)
        assert len({fault.error["message"] for fault in faults}) == 1
        assert faults[0].error["message"]
        for fault in faults:
            assert fault.fields == faults[1].fields
            assert fault.metadata == faults[1].metadata or not fault.metadata


@pytest.mark.usefixtures("host")
class TestJsonRpc:
    async def test_streams_whole_responses(self, client: Client) -> None:
        peer = JsonRpc(Client(client.app, "/agents/demo"))
        async with peer.stream("SendStreamingMessage", message("chunks 2")) as stream:
            events = await stream.rest()
        assert len(events) > 3
        for event in events:
            assert event.data.keys() == {"jsonrpc", "id", "result"}
            assert (event.data["jsonrpc"], event.data["id"]) == ("2.0", "q1")


def challenged(response: Response) -> bool:
    return response.status == 401 and bool(response.header("www-authenticate"))


@pytest.mark.usefixtures("host")
class TestAnOlderExtendedCard:
    @rows(
        ("verb", "path"),
        [
            ("POST", "a2a/0.3"),
            ("GET", "a2a/0.3/v1/card"),
            ("GET", "a2a/0.2/agent/authenticatedExtendedCard"),
            ("GET", "agent/authenticatedExtendedCard"),
        ],
    )
    async def test_is_for_callers_with_credentials(
        self, client: Client, puppet: Puppet, monkeypatch: pytest.MonkeyPatch, verb: str, path: str
    ) -> None:
        monkeypatch.setattr(Puppet, "has_extended_card", True)
        call = b'{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}'
        body = call if verb == "POST" else b""
        headers = {"content-type": "application/json"} if body else {}
        assert challenged(await client.ask(verb, f"/agents/puppet/{path}", body, headers))
