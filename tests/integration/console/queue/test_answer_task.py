"""An operator answers in the owner's place: what the agent hears, who wins, and what is refused in words."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pytest_django import Settings

from a2a_console.queue.answer_task import answer_by_key, content
from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.emission import file
from a2a_tasks.audit.actor import act_as
from a2a_tasks.caller import Caller
from a2a_tasks.models import AuditEntry, Message, Run, RunStatus, StoredFile, Task
from a2a_tasks.protocol.errors import (
    AgentOff,
    ContentTypeNotSupported,
    InvalidParams,
    TaskNotFound,
    TaskNotWaiting,
)
from a2a_tasks.protocol.operators import ANSWERED_BY
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message as Said
from a2a_tasks.protocol.values import Part, Role
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until
from tests.support.rows import rows

pytestmark = pytest.mark.django_db

ANSWER = content("blue")


@pytest.fixture(autouse=True)
async def local(settings: Settings) -> AsyncIterator[None]:
    """Runs are this process's own."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    async with hosting():
        yield


class Heard:
    """What the agent was told, turn by turn."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        self.turns.append(turn)
        match turn.text:
            case "auth":
                yield turn.need_auth("Who are you?")
            case "blue":
                yield turn.text
            case _:
                yield turn.ask("Which colour?")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def agent(heard: Heard) -> Iterator[Agent]:
    modes = ["text/plain", "application/json", "application/pdf"]
    with playing(heard.run, default_input_modes=modes, forwarded_headers=["x-user-id"]) as found:
        yield found


@pytest.fixture
def alice(agent: Agent) -> Client:
    scopes = frozenset({"paint"})
    return Client(agent, Caller(principal="user:alice", tenant="acme", scopes=scopes))


async def asked(client: Client, text: str = "hello", **about: Any) -> Task:
    task = await client.send(text, **about)
    return await run_in_thread(Task.objects.get, public_id=task.id)


async def ended(client: Client, task: Task) -> None:
    async def over() -> bool:
        return await client.states(task.public_id) == "completed"

    await until(over)


class TestAnswering:
    async def test_it_goes_on_as_if_its_owner_had_answered(
        self, alice: Client, heard: Heard
    ) -> None:
        alice.circumstances = {"headers": {"x-user-id": "7"}}
        before = await asked(alice, accepted_output_modes=("text/plain",))
        shown = await answer_by_key(before.pk, ANSWER, by="bob")
        assert shown.status.state.word == "working"
        await ended(alice, before)
        after = await run_in_thread(Task.objects.get, pk=before.pk)
        for column in ("public_id", "tenant", "owner", "created_by", "agent", "context_id"):
            assert getattr(after, column) == getattr(before, column)
        turn = heard.turns[-1]
        assert (turn.text, turn.caller, turn.by_operator) == ("blue", alice.caller, True)
        assert (turn.accepted_output_modes, turn.headers["x-user-id"]) == (("text/plain",), "7")
        assert not heard.turns[0].by_operator

    async def test_the_run_counts_to_the_owners_share(self, alice: Client) -> None:
        task = await asked(alice)
        await answer_by_key(task.pk, ANSWER, by="bob")
        shares = await run_in_thread(lambda: set(Run.objects.values_list("quota_key", flat=True)))
        assert shares == {"tenant:acme"}

    async def test_what_needs_authorization_is_answered_too(self, alice: Client) -> None:
        task = await asked(alice, "auth")
        await answer_by_key(task.pk, ANSWER, by="bob")
        await ended(alice, task)

    async def test_the_message_says_that_it_is_an_operators(self, alice: Client) -> None:
        task = await asked(alice)
        await answer_by_key(task.pk, ANSWER, by="bob")
        read = Message.objects.filter(task=task, role="ROLE_USER").order_by("-number")
        said = json.loads(await run_in_thread(lambda: read.values_list("body", flat=True)[0]))
        assert said["metadata"] == {ANSWERED_BY: "operator"}
        assert (said["taskId"], "bob" in json.dumps(said)) == (task.public_id, False)
        assert said["contextId"]

    async def test_the_audit_log_says_who_it_was_and_nothing_of_what_was_said(
        self, alice: Client
    ) -> None:
        task = await asked(alice)
        with act_as(lambda: "staff:7"):
            await answer_by_key(task.pk, ANSWER, by="bob")
        entry = await run_in_thread(AuditEntry.objects.get, action="task.answer")
        assert (entry.actor, entry.object, entry.tenant) == ("staff:7", task.public_id, "acme")
        assert entry.agent == alice.agent.slug
        assert entry.detail == ""
        assert await run_in_thread(AuditEntry.objects.filter(action="task.send").count) == 1

    async def test_text_json_and_files_reach_the_agent(
        self, alice: Client, heard: Heard, settings: Settings
    ) -> None:
        settings.A2A_FILE_INLINE_BYTES = 10
        task = await asked(alice)
        said = content("red", '{"shade": 3}', [file(b"%PDF" * 10, "a.pdf", "application/pdf")])
        await answer_by_key(task.pk, said, by="bob")
        turn = await until(lambda: heard.turns[1:] and heard.turns[1])
        assert turn.text == "red"
        assert turn.parts[1].data == {"shade": 3}
        assert await turn.read(turn.parts[2]) == b"%PDF" * 10
        assert await run_in_thread(StoredFile.objects.filter(task=task).count) == 1

    async def test_it_is_answered_for_whoever_wrote_last_in_a_shared_task(
        self, heard: Heard
    ) -> None:
        with playing(heard.run, visibility="tenant") as agent:
            alice = Client(agent, Caller(principal="user:alice", tenant="acme"))
            bob = Client(agent, Caller(principal="user:bob", tenant="acme"))
            task = await asked(alice)
            await bob.send("again", task_id=task.public_id)
            entry = await run_in_thread(AuditEntry.objects.filter(action="task.send").last)
            assert entry is not None
            assert entry.actor == "user:bob"
            await answer_by_key(task.pk, ANSWER, by="carol")
            await ended(alice, task)
            assert heard.turns[-1].caller.principal == "user:bob"


class TestRaces:
    async def test_of_two_operators_at_once_exactly_one_answers(
        self, alice: Client, heard: Heard
    ) -> None:
        task = await asked(alice)
        answers = [answer_by_key(task.pk, content("blue"), by=name) for name in ("bob", "carol")]
        results = await asyncio.gather(*answers, return_exceptions=True)
        refused = [fault for fault in results if isinstance(fault, BaseException)]
        assert [type(fault) for fault in refused] == [TaskNotWaiting]
        await ended(alice, task)
        assert len(heard.turns) == 2
        assert await run_in_thread(AuditEntry.objects.filter(action="task.answer").count) == 1

    async def test_an_answer_to_the_question_before_is_refused(self, alice: Client) -> None:
        task = await asked(alice)
        await alice.send("red", task_id=task.public_id)
        with pytest.raises(TaskNotWaiting, match="asks something else now"):
            await answer_by_key(task.pk, ANSWER, by="bob", event=task.last_event)
        now = await run_in_thread(Task.objects.get, pk=task.pk)
        await answer_by_key(task.pk, ANSWER, by="bob", event=now.last_event)
        await ended(alice, task)

    async def test_the_files_of_whoever_comes_late_are_removed(
        self, alice: Client, settings: Settings
    ) -> None:
        settings.A2A_FILE_INLINE_BYTES = 10
        task = await asked(alice)
        await alice.send("red", task_id=task.public_id)
        late = content(files=[file(b"%PDF" * 10, "a.pdf", "application/pdf")])
        with pytest.raises(TaskNotWaiting):
            await answer_by_key(task.pk, late, by="bob", event=task.last_event)
        assert not await run_in_thread(StoredFile.objects.exists)


class TestRefusals:
    async def test_a_task_that_has_ended(self, alice: Client) -> None:
        task = await asked(alice, "blue")
        with pytest.raises(TaskNotWaiting, match="The task is completed"):
            await answer_by_key(task.pk, ANSWER, by="bob")

    async def test_a_task_that_is_not_there(self) -> None:
        with pytest.raises(TaskNotFound):
            await answer_by_key(1, ANSWER, by="bob")

    async def test_an_agent_that_is_switched_off(self, alice: Client, settings: Settings) -> None:
        task = await asked(alice)
        settings.A2A_DISABLED_AGENTS = alice.agent.slug
        with pytest.raises(AgentOff, match="is switched off"):
            await answer_by_key(task.pk, ANSWER, by="bob")
        assert not await run_in_thread(Run.objects.filter(status=RunStatus.QUEUED).exists)

    async def test_what_the_agent_does_not_take(self, alice: Client) -> None:
        task = await asked(alice)
        with pytest.raises(ContentTypeNotSupported, match="image/png"):
            await answer_by_key(task.pk, [file(b"x", "a.png", "image/png")], by="bob")

    async def test_what_is_too_large(self, alice: Client, settings: Settings) -> None:
        settings.A2A_MAX_MESSAGE_BYTES = 1000
        task = await asked(alice)
        with pytest.raises(InvalidParams) as caught:
            await answer_by_key(task.pk, content("x" * 1000), by="bob")
        assert caught.value.violations[0][0] == "message"

    async def test_a_client_that_says_it_is_an_operator(self, alice: Client) -> None:
        message = Said(
            message_id="m",
            role=Role.USER,
            parts=(Part(text="blue"),),
            metadata={ANSWERED_BY: "operator"},
        )
        with pytest.raises(InvalidParams) as caught:
            await TABLE["SendMessage"](SendMessageRequest(message=message), alice.call())
        assert caught.value.violations[0][0] == "message.metadata"


class TestContent:
    def test_nothing_is_no_answer(self) -> None:
        with pytest.raises(InvalidParams):
            content("  ", " ")

    @rows("wrong", ["{", "NaN", "[Infinity]", "\ud800"])
    def test_what_is_no_json_is_said(self, wrong: str) -> None:
        with pytest.raises(InvalidParams) as caught:
            content("", wrong)
        assert caught.value.violations == (("data", "is not JSON"),)

    @rows("flawed", ["[" * 100_000, '{"a":1,"a":2}', '"\\ud800"'])
    def test_json_is_held_to_what_a_client_is_held_to(self, flawed: str) -> None:
        with pytest.raises(InvalidParams) as caught:
            content("", flawed)
        assert caught.value.violations[0][0] == "data"

    def test_each_becomes_a_part(self) -> None:
        parts = content("yes", "[1]", [file(b"x", "x.txt", "text/plain")])
        assert parts[0].text == "yes"
        assert parts[1].data == [1]
        assert parts[2].raw == base64.b64encode(b"x").decode()
