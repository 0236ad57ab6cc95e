"""What the callers of a tenant share, over each binding, and what happens when an agent's policy is changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_tasks.access.api_keys import issue
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.security import check_visibility, is_shared
from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.test_on_the_wire import bearing
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.bindings.peers import PEERS, Fault, Peer, message, state_of

pytestmark = [pytest.mark.usefixtures("host"), pytest.mark.in_turn("binding", share=2)]

WEBHOOK = {"url": "https://hooks.example.com/a2a"}
CONFIG = "TaskPushNotificationConfig"


async def asking(turn: Turn) -> AsyncIterator[Any]:
    """An agent that asks back once, and knows who answers and what of others is referred to."""
    known = [task.id for task in await turn.references]
    if turn.text == "ask":
        yield turn.ask("Well?")
    else:
        yield f"{turn.caller.principal} said {turn.text} of {len(known)}"


@pytest.fixture
def agent() -> Iterator[Agent]:
    with playing(asking, push_notifications=True, visibility="tenant") as made:
        yield made


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name)
def binding(request: pytest.FixtureRequest) -> type[Peer]:
    made: type[Peer] = request.param
    return made


async def known(binding: type[Peer], agent: Agent, tenant: str = "acme") -> Peer:
    made = await run_in_thread(issue, "test", tenant=tenant)
    return binding(Client(bearing({"x-api-key": made.key}), f"/agents/{agent.slug}"))


async def sees(peer: Peer, task: str) -> bool:
    """May it? By reading it and by listing."""
    listed = task in [one["id"] for one in (await peer.call("ListTasks"))["tasks"]]
    try:
        found = bool((await peer.call("GetTask", {"id": task}))["id"] == task)
    except Fault as fault:
        assert fault.reason == "TASK_NOT_FOUND"
        found = False
    assert found == listed
    return found


class TestColleagues:
    async def test_see_follow_continue_and_cancel_each_others_tasks(
        self, binding: type[Peer], agent: Agent
    ) -> None:
        alice, bob = await known(binding, agent), await known(binding, agent)
        task = await alice.send("ask")
        assert state_of(task) == "input-required"
        assert await sees(bob, task["id"])
        async with bob.stream("SubscribeToTask", {"id": task["id"]}) as stream:
            assert (await bob.next(stream))["task"]["id"] == task["id"]
        answered = await bob.send("fine", taskId=task["id"])
        assert state_of(answered) == "completed"
        assert "said fine" in str(answered["artifacts"])
        other = await alice.send("ask")
        assert state_of(await bob.call("CancelTask", {"id": other["id"]})) == "canceled"
        assert state_of(await alice.call("GetTask", {"id": other["id"]})) == "canceled"

    async def test_share_contexts_and_references(self, binding: type[Peer], agent: Agent) -> None:
        alice, bob = await known(binding, agent), await known(binding, agent)
        task = await alice.send("ask", contextId="ours")
        own = await bob.send("x", contextId="ours", referenceTaskIds=[task["id"]])
        assert "of 1" in str(own["artifacts"])
        page = await alice.call("ListTasks", {"contextId": "ours"})
        assert {one["id"] for one in page["tasks"]} == {task["id"], own["id"]}
        assert page["totalSize"] == 2

    async def test_share_webhooks_but_not_their_secrets(
        self, binding: type[Peer], agent: Agent
    ) -> None:
        alice, bob = await known(binding, agent), await known(binding, agent)
        task = (await alice.send("ask"))["id"]
        secret = {"token": "hidden-8c1f"}
        await alice.call(f"Create{CONFIG}", {"taskId": task, "id": "c", **WEBHOOK, **secret})
        shown = await bob.ask(f"Get{CONFIG}", {"taskId": task, "id": "c"})
        assert b"hooks.example.com" in shown.body
        assert b"hidden-8c1f" not in shown.body
        await bob.call(f"Delete{CONFIG}", {"taskId": task, "id": "c"})
        assert (await alice.call(f"List{CONFIG}s", {"taskId": task})).get("configs", []) == []

    async def test_have_idempotency_keys_of_their_own(
        self, binding: type[Peer], agent: Agent
    ) -> None:
        alice, bob = await known(binding, agent), await known(binding, agent)
        key = {"idempotency-key": "1"}
        one = await alice.call("SendMessage", message("a"), key)
        other = await bob.call("SendMessage", message("b"), key)
        assert one["task"]["id"] != other["task"]["id"]

    async def test_are_nobody_to_another_tenant(self, binding: type[Peer], agent: Agent) -> None:
        alice, mallory = await known(binding, agent), await known(binding, agent, "umbrella")
        nobody = await known(binding, agent, "")
        task = (await alice.send("ask"))["id"]
        assert not await sees(mallory, task)
        assert not await sees(nobody, task)
        for peer in (mallory, nobody):
            with pytest.raises(Fault, match="not found"):
                await peer.call("GetTask", {"id": task, "tenant": "acme"})


async def test_a_colleagues_task_tells_in_which_dialect_it_was_made(agent: Agent) -> None:
    """Where nothing else does: `tasks/get` is a method of several."""
    alice, bob = await known(PEERS[0], agent), await known(PEERS[0], agent)
    said = {"role": "user", "parts": [{"type": "text", "text": "ask"}]}
    send = {"method": "tasks/send", "params": {"id": "ours", "message": said}}
    await alice.client.post("/a2a/0.1/", {"jsonrpc": "2.0", "id": 1, **send})
    get = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "ours"}}
    answers = [(await peer.client.post("/", get)).json for peer in (alice, bob)]
    assert answers[0]["result"]["status"]["message"]["parts"][0]["type"] == "text"
    assert answers[1] == answers[0]


class TestWhoeverHasNoTenant:
    async def test_sees_its_own_alone(
        self, binding: type[Peer], agent: Agent, settings: Any
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        nobody = binding(Client(bearing({}), f"/agents/{agent.slug}"))
        one, other = await known(binding, agent, ""), await known(binding, agent, "")
        tasks = [(await peer.send("ask"))["id"] for peer in (nobody, one, other)]
        peers = [nobody, one, other]
        assert [[await sees(peer, task) for task in tasks] for peer in peers] == [
            [True, False, False],
            [False, True, False],
            [False, False, True],
        ]


class TestALiveAgent:
    async def test_that_begins_to_share_shows_nothing_of_before(
        self, binding: type[Peer], agent: Agent
    ) -> None:
        alice, bob = await known(binding, agent), await known(binding, agent)
        type(agent).visibility = "own"
        before = (await alice.send("ask", contextId="c"))["id"]
        type(agent).visibility = "tenant"
        after = (await alice.send("ask", contextId="c"))["id"]
        assert [await sees(alice, task) for task in (before, after)] == [True, True]
        assert [await sees(bob, task) for task in (before, after)] == [False, True]
        page = await alice.call("ListTasks", {"contextId": "c"})
        assert page["totalSize"] == 2
        answered = await alice.send("fine", taskId=before, referenceTaskIds=[before, after])
        assert "of 2" in str(answered["artifacts"])
        assert not await sees(bob, before)

    async def test_that_shares_no_more_leaves_to_each_what_it_made(
        self, binding: type[Peer], agent: Agent
    ) -> None:
        alice, bob = await known(binding, agent), await known(binding, agent)
        task = (await alice.send("ask"))["id"]
        sent_by_bob = {"idempotency-key": "1"}
        both = message("ask", taskId=task, messageId="m")
        await bob.call("SendMessage", both, sent_by_bob)
        type(agent).visibility = "own"
        assert await sees(alice, task)
        assert not await sees(bob, task)
        with pytest.raises(Fault, match="not found"):
            await bob.call("SendMessage", both, sent_by_bob)
        mine = await bob.send("x", referenceTaskIds=[task])
        assert "of 0" in str(mine["artifacts"])
        answered = await alice.send("fine", taskId=task)
        assert state_of(answered) == "completed"
        type(agent).visibility = "tenant"
        assert await sees(bob, task)
        assert not await sees(bob, "another")

    async def test_that_shares_no_more_knows_the_keys_of_what_was_sent_there(
        self, binding: type[Peer], agent: Agent
    ) -> None:
        """Under one of them nothing else can begin: it is told at once, and not that the host has too much to do."""
        alice, bob = await known(binding, agent), await known(binding, agent)
        task = (await alice.send("ask"))["id"]
        await bob.call("SendMessage", message("ask", taskId=task), {"idempotency-key": "1"})
        type(agent).visibility = "own"
        with pytest.raises(Fault) as caught:
            await bob.call("SendMessage", message("something else"), {"idempotency-key": "1"})
        assert caught.value.reason == "IDEMPOTENCY_CONFLICT"
        assert await run_in_thread(Task.objects.count) == 1

    async def test_that_shares_no_more_begins_nothing_under_the_name_and_key_of_a_colleagues(
        self, agent: Agent
    ) -> None:
        alice, bob = await known(PEERS[0], agent), await known(PEERS[0], agent)
        said = {"role": "user", "parts": [{"type": "text", "text": "ask"}]}
        send = {"method": "tasks/send", "params": {"id": "ours", "message": said}}
        request = {"jsonrpc": "2.0", "id": 1, **send}
        await alice.client.post("/a2a/0.1/", request)
        under_key = {"idempotency-key": "1"}
        assert "result" in (await bob.client.post("/a2a/0.1/", request, under_key)).json
        type(agent).visibility = "own"
        answer = (await bob.client.post("/a2a/0.1/", request, under_key)).json
        assert answer["error"]["code"] == TaskNotFound.code
        assert await run_in_thread(Task.objects.count) == 1

    async def test_that_shares_no_more_ends_no_stream_that_has_begun(
        self, binding: type[Peer], agent: Agent
    ) -> None:
        alice, bob = await known(binding, agent), await known(binding, agent)
        task = (await alice.send("ask"))["id"]
        async with bob.stream("SubscribeToTask", {"id": task}) as stream:
            assert await bob.next(stream)
            type(agent).visibility = "own"
            await alice.call("CancelTask", {"id": task})
            assert "CANCELED" in str(await bob.items(stream))


class TestThePolicy:
    def test_is_the_hosts_unless_the_agent_has_one(self, agent: Agent, settings: Any) -> None:
        for host, own, sharing in (
            ("own", "", False),
            ("tenant", "", True),
            ("tenant", "own", False),
            ("own", "tenant", True),
        ):
            settings.A2A_VISIBILITY, type(agent).visibility = host, own
            assert is_shared(agent) == sharing

    def test_that_is_none_is_a_mistake(self, agent: Agent) -> None:
        assert not list(check_visibility(agent))
        type(agent).visibility = "everybody"
        assert [mistake.id for mistake in check_visibility(agent)] == ["a2a_tasks.E040"]
