"""An operator runs an ended task again: what the new one is, what stays as it was, and when it is refused."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.core.files.storage import storages

from a2a_console.rerun.run_again import QUOTA_KEY, CannotRunAgain, run_again
from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.audit import act_as
from a2a_tasks.caller import Caller
from a2a_tasks.models import AuditEntry, Message, Run, StoredFile, Task
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.values import Part, replace
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
async def local(settings: Any) -> AsyncIterator[None]:
    """Runs are this process's own, and staff acts."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    async with hosting():
        with act_as(lambda: "staff:7"):
            yield


async def echo(turn: Turn) -> AsyncIterator[Any]:
    """Say who asked for what, with which metadata; wait if asked so."""
    if turn.text == "wait":
        yield turn.working()
        await asyncio.Event().wait()
    parts = [part async for part in _files(turn)]
    yield f"{turn.caller.principal} {turn.text} {turn.metadata} {parts}"


async def _files(turn: Turn) -> AsyncIterator[bytes]:
    for part in turn.message.parts:
        if part.filename:
            yield await turn.read(part)


@pytest.fixture
def agent() -> Any:
    with playing(echo, default_input_modes=["text/plain", "application/octet-stream"]) as found:
        yield found


@pytest.fixture
def alice(agent: Agent) -> Client:
    return Client(agent)


async def row_of(public_id: str) -> Task:
    return await run_in_thread(Task.objects.select_related("context").get, public_id=public_id)


async def said_by(client: Client, task: str) -> str:
    """The artifacts of a task, as stored."""
    return b"".join(map(bytes, (await client.get(task)).artifacts or ())).decode()


async def first_of(task: Task) -> dict[str, Any]:
    found = await run_in_thread(Message.objects.get, task=task, number=1)
    return dict(json.loads(found.body))


def entries(action: str) -> list[tuple[str, str, str]]:
    """Actor, object and detail of entries of the audit log."""
    found = AuditEntry.objects.filter(action=action).order_by("pk")
    return list(found.values_list("actor", "object", "detail"))


class TestTheNewTask:
    async def test_is_its_owners_in_the_same_context_and_does_the_same(self, alice: Client) -> None:
        old = await alice.send("hello", metadata={"key": "value"})
        before = await row_of(old.id)
        again = await run_again(before.pk)
        await until(lambda: _is(alice, again.id, "completed"))
        task = await row_of(again.id)
        for column in ("tenant", "owner", "created_by", "agent", "context_id", "origin_dialect"):
            assert getattr(task, column) == getattr(before, column)
        assert "user:alice hello {'key': 'value'}" in await said_by(alice, again.id)

    async def test_begins_with_a_new_message_that_refers_to_the_old_task(
        self, alice: Client
    ) -> None:
        old = await alice.send("hello")
        again = await run_again((await row_of(old.id)).pk)
        first, before = await first_of(await row_of(again.id)), await first_of(await row_of(old.id))
        assert first["messageId"] != before["messageId"]
        assert first["referenceTaskIds"] == [old.id]
        assert (first["taskId"], first["contextId"]) == (again.id, old.context_id)
        assert first["parts"] == before["parts"]

    async def test_keeps_what_the_old_one_referred_to_as_far_as_there_is_room(
        self, alice: Client, settings: Any
    ) -> None:
        settings.A2A_MAX_REFERENCES = 2
        old = await alice.send("hello")
        row = await row_of(old.id)
        once = await run_again(row.pk)
        await until(lambda: _is(alice, once.id, "completed"))
        twice = await run_again(once.task)
        await until(lambda: _is(alice, twice.id, "completed"))
        thrice = await run_again(twice.task)
        first = await first_of(await row_of(thrice.id))
        assert first["referenceTaskIds"] == [twice.id, once.id]

    async def test_waits_its_turn_among_those_of_operators_and_not_of_its_owner(
        self, alice: Client, settings: Any
    ) -> None:
        old = await alice.begin("wait")
        await alice.cancel(old.id)
        again = await run_again((await row_of(old.id)).pk)
        run = await run_in_thread(Run.objects.get, task_id=again.task)
        settings.A2A_MAX_UNFINISHED_PER_TENANT = 1
        assert run.quota_key == QUOTA_KEY
        await alice.send("and nobody is in my way")

    async def test_is_made_in_the_drawer_of_its_tenant_by_whoever_made_the_old_one(
        self, settings: Any
    ) -> None:
        settings.A2A_VISIBILITY = "tenant"
        with playing(echo) as agent:
            carol = Client(agent, Caller(principal="key:carol", tenant="acme"))
            old = await carol.send("hello")
            again = await row_of((await run_again((await row_of(old.id)).pk)).id)
        assert (again.tenant, again.owner, again.created_by) == ("acme", "*", "key:carol")


class TestTheRecord:
    async def test_names_the_operator_and_both_tasks(self, alice: Client) -> None:
        old = await alice.send("hello")
        again = await run_again((await row_of(old.id)).pk)
        noted = await run_in_thread(entries, "task.run_again")
        assert noted == [("staff:7", old.id, json.dumps({"new": again.id}, separators=(",", ":")))]

    async def test_does_not_say_that_the_owner_sent_the_message(self, alice: Client) -> None:
        old = await alice.send("hello")
        again = await run_again((await row_of(old.id)).pk)
        sent = await run_in_thread(entries, "task.send")
        assert sent == [("user:alice", old.id, ""), ("staff:7", again.id, "")]


class TestTheSameWish:
    async def test_is_granted_once(self, alice: Client) -> None:
        key = (await row_of((await alice.send("hello")).id)).pk
        first = await run_again(key, nonce="click")
        second = await run_again(key, nonce="click")
        assert (second.id, first.before, second.before) == (first.id, False, True)

    async def test_is_granted_once_to_those_who_come_at_once(self, alice: Client) -> None:
        key = (await row_of((await alice.send("hello")).id)).pk
        found = await asyncio.gather(*(run_again(key, nonce="click") for _ in range(5)))
        assert len({again.id for again in found}) == 1
        assert await run_in_thread(Task.objects.count) == 2

    async def test_of_another_task_or_at_another_time_is_another(self, alice: Client) -> None:
        one = (await row_of((await alice.send("one")).id)).pk
        two = (await row_of((await alice.send("two")).id)).pk
        ids = [await run_again(*wish) for wish in ((one,), (one,))]
        ids += [await run_again(key, nonce=nonce) for key in (one, two) for nonce in ("a", "b")]
        assert len({again.id for again in ids}) == 6


class TestItIsRefused:
    async def test_while_the_task_goes_on(self, alice: Client) -> None:
        task = await alice.begin("wait")
        with pytest.raises(CannotRunAgain, match="cancel it first"):
            await run_again((await row_of(task.id)).pk)
        await alice.cancel(task.id)
        assert (await run_again((await row_of(task.id)).pk)).id != task.id

    async def test_when_the_agent_is_switched_off(self, alice: Client, settings: Any) -> None:
        old = await alice.send("hello")
        settings.A2A_DISABLED_AGENTS = alice.agent.slug
        with pytest.raises(CannotRunAgain, match="is switched off"):
            await run_again((await row_of(old.id)).pk)

    async def test_when_the_agent_is_gone(self) -> None:
        with playing(echo) as agent:
            old = await Client(agent).send("hello")
        with pytest.raises(CannotRunAgain, match="not on this host any more"):
            await run_again((await row_of(old.id)).pk)

    async def test_when_the_task_is_gone(self) -> None:
        with pytest.raises(TaskNotFound):
            await run_again(404)

    async def test_when_what_it_began_with_is_gone(self, alice: Client) -> None:
        row = await row_of((await alice.send("hello")).id)
        await run_in_thread(Message.objects.filter(task=row).delete)
        with pytest.raises(TaskNotFound):
            await run_again(row.pk)

    async def test_when_the_agent_does_not_take_such_content_any_more(
        self, alice: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = await row_of((await alice.send("hello")).id)
        monkeypatch.setattr(type(alice.agent), "default_input_modes", ["image/png"])
        with pytest.raises(CannotRunAgain, match="does not take text/plain any more"):
            await run_again(row.pk)

    async def test_and_then_nothing_is_written(self, alice: Client, settings: Any) -> None:
        old = await alice.send("hello")
        settings.A2A_DISABLED_AGENTS = alice.agent.slug
        with pytest.raises(CannotRunAgain):
            await run_again((await row_of(old.id)).pk)
        assert await run_in_thread(Task.objects.count) == 1
        assert await run_in_thread(entries, "task.run_again") == []


class TestFiles:
    @pytest.fixture
    async def old(self, alice: Client, settings: Any) -> Task:
        """A task that began with a file that is kept beside it."""
        settings.A2A_FILE_INLINE_BYTES = 10
        request = alice.request("look")
        raw = base64.b64encode(b"many bytes of a file").decode()
        file = Part(raw=raw, filename="a.bin", media_type="application/octet-stream")
        message = replace(request.message, parts=(*request.message.parts, file))
        task = await TABLE["SendMessage"](
            dataclasses.replace(request, message=message), alice.call()
        )
        return await row_of(task.id)

    async def test_are_copied_since_the_old_ones_go_with_the_old_task(
        self, old: Task, alice: Client
    ) -> None:
        again = await run_again(old.pk)
        await until(lambda: _is(alice, again.id, "completed"))
        assert "many bytes of a file" in await said_by(alice, again.id)
        rows = await run_in_thread(
            list, StoredFile.objects.order_by("created_at").values_list("task", "owner")
        )
        assert rows == [(old.pk, "user:alice"), (again.task, "user:alice")]

    async def test_that_are_gone_are_a_reason_to_refuse(self, old: Task) -> None:
        file = await run_in_thread(StoredFile.objects.get)
        storages["a2a_files"].delete(file.name)
        with pytest.raises(CannotRunAgain, match="not there any more"):
            await run_again(old.pk)


async def _is(client: Client, task: str, word: str) -> bool:
    return await client.states(task) == word
