"""Secrets handed over outside the conversation: asked for, given to one turn, in nothing that is kept, wiped."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from a2a_console.handover.hand_over import UselessLink, find_request, fresh_link, hand_over
from a2a_tasks import process, sealing
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.execution.sources import url_of
from a2a_tasks.models import AuditEntry, Event, HandedSecret, Message, Run, Task
from a2a_tasks.protocol.errors import AgentOff, InvalidParams, TaskNotFound, TaskNotWaiting
from a2a_tasks.protocol.operators import HANDED_OVER, HANDOVER
from a2a_tasks.store import handed_secrets, runs
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.purge import RetentionLimits, purge
from a2a_tasks.store.records import ClaimedRun, LeaseLost
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until
from tests.support.store.world import expire, held

pytestmark = [pytest.mark.quick_on("sqlite"), pytest.mark.django_db]

NAME, SECRET = "GitHub token", "canary-7c1f"


@pytest.fixture(autouse=True)
async def local(settings: Settings) -> AsyncIterator[None]:
    """Runs are this process's own; links are absolute."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    settings.A2A_PUBLIC_URL = "https://agents.example.com"
    async with hosting():
        yield


class Heard:
    """What the agent read, turn by turn."""

    def __init__(self) -> None:
        self.read: list[str | None] = []
        self.gate: asyncio.Event | None = None

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Ask for the token, until it is there."""
        self.read.append(await turn.secret(NAME))
        if self.gate is not None:
            await self.gate.wait()
        if turn.text == "leave":
            yield turn.complete("never mind")
        elif self.read[-1] is None:
            yield turn.need_auth("To open the pull request.", hand_over=NAME)
        else:
            yield f"used {len(self.read[-1])} characters"


@pytest.fixture
def heard() -> Heard:
    """Nothing yet."""
    return Heard()


@pytest.fixture
def agent(heard: Heard) -> Iterator[Agent]:
    """An agent that needs a token."""
    with playing(heard.run, name="Clerk") as found:
        yield found


@pytest.fixture
def alice(agent: Agent) -> Client:
    """Its client."""
    return Client(agent)


async def asked(client: Client, text: str = "hello") -> tuple[Task, str]:
    """The row of a task that waits for a secret, and the token of its link."""
    task = await client.send(text)
    row = await run_in_thread(Task.objects.get, public_id=task.id)
    return row, token_in(row.status_message)


def token_in(status_message: str) -> str:
    """The token of the link in an agent's message."""
    url = json.loads(status_message)["metadata"][HANDOVER]["url"]
    assert isinstance(url, str)
    assert url.startswith("https://agents.example.com/handover/")
    return url.rpartition("/")[2]


@pytest.mark.parametrize(
    ("public", "site", "url"),
    [
        ("https://a.example/", "http://localhost:8000", "https://a.example/handover/t"),
        ("", "http://localhost:8000", "http://localhost:8000/handover/t"),
        ("", "", "/handover/t"),
    ],
)
def test_a_link_is_below_the_public_url_or_the_site_of_the_process(
    settings: Any, monkeypatch: pytest.MonkeyPatch, public: str, site: str, url: str
) -> None:
    settings.A2A_PUBLIC_URL = public
    monkeypatch.setattr(process, "site", site)
    assert url_of("t") == url


async def ended(client: Client, task: Task) -> None:
    """Wait until the task has ended, and its last run with it."""

    async def over() -> bool:
        return await client.states(task.public_id) == "completed"

    await until(over)


async def row_of(task: Task) -> HandedSecret:
    """What is kept of it."""
    return await run_in_thread(HandedSecret.objects.get, task=task)


def begun_again(task: Task, number: int) -> ClaimedRun:
    """A run of the task for this message, in somebody's hands."""
    Task.objects.filter(pk=task.pk).update(run_token="ours")
    made = held(f"other-{task.pk}-{number}")
    return replace(made, task=task.pk, task_id=task.public_id, input_number=number, token="ours")


def die(task: Task) -> None:
    """Let the lease of the task's newest run end and be seen by a rescuer."""
    run = Run.objects.filter(task=task).latest("pk")
    for _ in range(100):
        expire(run.pk)
        if runs.reclaim_expired(max_attempts=3):
            return
    raise AssertionError("the run could not be taken away")


def everything_written() -> str:
    """All that was written of tasks, runs and who did what."""
    tables = (Task, Message, Event, Run, AuditEntry, HandedSecret)
    return str([list(table.objects.values()) for table in tables])


class TestAsking:
    async def test_the_client_is_given_the_link_and_the_names(self, alice: Client) -> None:
        row, token = await asked(alice)
        message = json.loads(row.status_message)
        assert message["parts"][0]["text"] == "To open the pull request."
        assert f"https://agents.example.com/handover/{token}" in message["parts"][1]["text"]
        assert message["metadata"][HANDOVER]["names"] == [NAME]
        asking = await find_request(token)
        assert (asking.names, asking.reason) == ((NAME,), "To open the pull request.")
        assert asking.agent == alice.agent.slug

    async def test_of_the_token_only_a_hash_is_in_its_row(self, alice: Client) -> None:
        row, token = await asked(alice)
        kept = await row_of(row)
        assert len(token) == 43
        assert token not in str(vars(kept))
        assert len(kept.token_hash) == 64

    async def test_it_is_written_down_who_was_asked_for_what(self, alice: Client) -> None:
        row, _ = await asked(alice)
        entry = await run_in_thread(AuditEntry.objects.get, action="secret.asked")
        assert (entry.object, json.loads(entry.detail)) == (row.public_id, {"names": NAME})

    @pytest.mark.parametrize(
        "names", [[""], "  ", ["a"] * 2, "x" * 101, [str(n) for n in range(11)]]
    )
    async def test_names_nobody_can_be_asked_by_are_refused(self, names: Any) -> None:
        with pytest.raises(ValueError, match="hand_over"):
            Turn.need_auth(None, "x", hand_over=names)  # type: ignore[arg-type]

    async def test_asked_again_the_link_before_opens_nothing(self, alice: Client) -> None:
        row, first = await asked(alice)
        again = await alice.send("hello?", task_id=row.public_id)
        second = token_in(bytes(again.status.message or b"").decode())
        assert second != first
        with pytest.raises(UselessLink):
            await find_request(first)
        assert (await find_request(second)).task == row.pk


class TestHandingOver:
    async def test_the_task_goes_on_and_its_agent_has_the_secret(
        self, alice: Client, heard: Heard
    ) -> None:
        row, token = await asked(alice)
        await hand_over(token, {NAME: SECRET})
        await ended(alice, row)
        assert heard.read == [None, SECRET]

    async def test_the_log_says_only_that_it_was_handed_over(self, alice: Client) -> None:
        row, token = await asked(alice)
        await hand_over(token, {NAME: SECRET})
        await ended(alice, row)
        said = Message.objects.filter(task=row, role="ROLE_USER").order_by("-number")
        message = json.loads(await run_in_thread(lambda: said.values_list("body", flat=True)[0]))
        assert message["parts"] == [{"text": f"Handed over: {NAME}."}]
        assert message["metadata"] == {HANDED_OVER: [NAME]}
        assert SECRET not in await run_in_thread(everything_written)

    async def test_it_is_sealed_while_it_waits_and_gone_when_the_turn_is_over(
        self, alice: Client, heard: Heard
    ) -> None:
        row, token = await asked(alice)
        heard.gate = asyncio.Event()
        await hand_over(token, {NAME: SECRET})
        await until(lambda: heard.read[1:])
        kept = await row_of(row)
        assert SECRET not in kept.sealed
        assert json.loads(sealing.unseal(kept.sealed))["handed"] == {NAME: SECRET}
        assert kept.handed_at
        assert kept.taken_at
        heard.gate.set()
        await ended(alice, row)
        await until(lambda: run_in_thread(HandedSecret.objects.filter(task=row, sealed="").exists))

    async def test_what_the_turn_did_not_use_is_gone_too(self, alice: Client, heard: Heard) -> None:
        row, token = await asked(alice)
        heard.gate = asyncio.Event()
        await hand_over(token, {NAME: SECRET})
        heard.gate.set()
        await ended(alice, row)
        await until(lambda: run_in_thread(HandedSecret.objects.filter(task=row, sealed="").exists))

    async def test_a_later_turn_does_not_have_it(self, alice: Client, heard: Heard) -> None:
        async def asks_twice(turn: Turn) -> AsyncIterator[Any]:
            heard.read.append(await turn.secret(NAME))
            yield turn.need_auth("again", hand_over=NAME)

        with playing(asks_twice) as agent:
            client = Client(agent)
            row, token = await asked(client)
            await hand_over(token, {NAME: SECRET})
            await until(lambda: heard.read[1:])
            await client.send("and now?", task_id=row.public_id)
            assert heard.read == [None, SECRET, None]

    async def test_several_are_handed_over_together(self, heard: Heard) -> None:
        names = ["user", "password"]

        def signs_in(turn: Turn) -> Any:
            heard.read[:] = [turn.secret(name).now() for name in names]
            if None in heard.read:
                return turn.need_auth("Sign in", hand_over=names)
            return turn.complete()

        with playing(signs_in) as agent:
            row, token = await asked(Client(agent))
            with pytest.raises(InvalidParams) as caught:
                await hand_over(token, {"user": "bob"})
            assert caught.value.violations == (("password", "is missing"),)
            await hand_over(token, {"user": "bob", "password": SECRET, "other": "x"})
            await ended(Client(agent), row)
            assert heard.read == ["bob", SECRET]

    async def test_the_audit_log_says_that_it_was_handed_over_and_nothing_more(
        self, alice: Client
    ) -> None:
        row, token = await asked(alice)
        await hand_over(token, {NAME: SECRET})
        entry = await run_in_thread(AuditEntry.objects.get, action="secret.handed")
        assert (entry.object, json.loads(entry.detail)) == (row.public_id, {"names": NAME})
        assert not await run_in_thread(AuditEntry.objects.filter(action="task.answer").exists)


class TestCrashes:
    async def test_every_attempt_of_the_turn_can_read_it(self, alice: Client, heard: Heard) -> None:
        row, token = await asked(alice)
        heard.gate = asyncio.Event()
        await hand_over(token, {NAME: SECRET})
        await until(lambda: heard.read[1:])
        await run_in_thread(die, row)
        await until(lambda: heard.read[2:])
        heard.gate.set()
        await ended(alice, row)
        assert heard.read == [None, SECRET, SECRET]

    async def test_an_attempt_that_asks_anew_leaves_alone_what_was_handed_over_meanwhile(
        self, alice: Client, heard: Heard
    ) -> None:
        row, _ = await asked(alice)
        rows = HandedSecret.objects.filter(task=row)
        await run_in_thread(lambda: rows.update(sealed="x", handed_in=2))
        again = await run_in_thread(lambda: begun_again(row, 1))
        assert await run_in_thread(handed_secrets.ask, again, [NAME], "again") is None
        assert (await row_of(row)).sealed == "x"
        later = await run_in_thread(lambda: begun_again(row, 3))
        assert await run_in_thread(handed_secrets.ask, later, [NAME], "again") is not None
        assert (await row_of(row)).sealed == ""

    async def test_a_run_that_has_lost_its_task_asks_for_nothing(self, alice: Client) -> None:
        row, _ = await asked(alice)
        before = (await row_of(row)).token_hash
        lost = replace(await run_in_thread(lambda: begun_again(row, 1)), token="lost")
        with pytest.raises(LeaseLost):
            await run_in_thread(handed_secrets.ask, lost, [NAME], "again")
        assert await run_in_thread(handed_secrets.read, lost) == {}
        assert (await row_of(row)).token_hash == before


class TestUselessLinks:
    async def test_a_link_that_was_used(self, alice: Client) -> None:
        row, token = await asked(alice)
        await hand_over(token, {NAME: SECRET})
        await ended(alice, row)
        with pytest.raises(UselessLink):
            await hand_over(token, {NAME: "another"})

    @pytest.mark.django_db(transaction=True)
    async def test_of_two_at_once_exactly_one_hands_over(self, alice: Client, heard: Heard) -> None:
        row, token = await asked(alice)
        both = [hand_over(token, {NAME: text}) for text in ("one", "two")]
        results = await asyncio.gather(*both, return_exceptions=True)
        assert [type(fault) for fault in results if fault] == [UselessLink]
        await ended(alice, row)
        assert len(heard.read) == 2

    async def test_a_link_whose_time_is_over(self, alice: Client) -> None:
        row, token = await asked(alice)
        await run_in_thread(HandedSecret.objects.filter(task=row).update, expires_at=Now())
        with pytest.raises(UselessLink):
            await find_request(token)
        with pytest.raises(UselessLink):
            await hand_over(token, {NAME: SECRET})

    async def test_a_link_to_what_was_answered_otherwise(self, alice: Client) -> None:
        row, token = await asked(alice)
        await alice.send("leave", task_id=row.public_id)
        with pytest.raises(UselessLink):
            await hand_over(token, {NAME: SECRET})

    async def test_a_link_to_what_was_cancelled(self, alice: Client) -> None:
        row, token = await asked(alice)
        await alice.cancel(row.public_id)
        with pytest.raises(UselessLink):
            await hand_over(token, {NAME: SECRET})
        assert (await row_of(row)).token_hash == ""

    async def test_no_link_at_all(self) -> None:
        with pytest.raises(UselessLink):
            await find_request("x" * 43)

    async def test_an_agent_that_is_off_does_not_use_it_up(
        self, alice: Client, settings: Settings
    ) -> None:
        row, token = await asked(alice)
        settings.A2A_DISABLED_AGENTS = alice.agent.slug
        with pytest.raises(AgentOff):
            await hand_over(token, {NAME: SECRET})
        settings.A2A_DISABLED_AGENTS = ""
        await hand_over(token, {NAME: SECRET})
        await ended(alice, row)


class TestFreshLinks:
    async def test_a_fresh_one_works_and_the_one_before_does_not(
        self, alice: Client, heard: Heard
    ) -> None:
        row, old = await asked(alice)
        await run_in_thread(HandedSecret.objects.filter(task=row).update, expires_at=Now())
        fresh = await fresh_link(row.pk, by="bob")
        with pytest.raises(UselessLink):
            await find_request(old)
        await hand_over(fresh.url.rpartition("/")[2], {NAME: SECRET})
        await ended(alice, row)
        assert heard.read[-1] == SECRET
        assert await run_in_thread(AuditEntry.objects.filter(action="secret.link").count) == 1

    async def test_there_is_none_for_a_task_that_asks_for_nothing(self, alice: Client) -> None:
        row, token = await asked(alice)
        await hand_over(token, {NAME: SECRET})
        await ended(alice, row)
        with pytest.raises(TaskNotWaiting):
            await fresh_link(row.pk, by="bob")
        with pytest.raises(TaskNotFound):
            await fresh_link(0, by="bob")


class TestWiping:
    async def wait_with_a_secret(self, client: Client) -> Task:
        """A task whose secret nobody has read: the processes that would are away."""
        row, _ = await asked(client)
        sealed = sealing.seal(json.dumps({"task": row.pk, "handed": {NAME: SECRET}}))
        rows = HandedSecret.objects.filter(task=row)
        await run_in_thread(lambda: rows.update(sealed=sealed, handed_in=9, handed_at=Now()))
        return row

    async def test_cancelling_wipes_it(self, alice: Client) -> None:
        row = await self.wait_with_a_secret(alice)
        await alice.cancel(row.public_id)
        assert (await row_of(row)).sealed == ""

    async def test_retention_wipes_what_is_over(self, alice: Client) -> None:
        row = await self.wait_with_a_secret(alice)
        await run_in_thread(lambda: list(purge(RetentionLimits.from_settings())))
        assert (await row_of(row)).sealed
        past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        await run_in_thread(HandedSecret.objects.filter(task=row).update, expires_at=past)
        await run_in_thread(lambda: list(purge(RetentionLimits.from_settings())))
        assert (await row_of(row)).sealed == ""

    async def test_a_sealed_text_of_another_task_is_not_given(self, alice: Client) -> None:
        one, other = await self.wait_with_a_secret(alice), await self.wait_with_a_secret(alice)
        claimed = await run_in_thread(lambda: begun_again(one, 9))
        assert await run_in_thread(handed_secrets.read, claimed) == {NAME: SECRET}
        theirs = (await row_of(other)).sealed
        await run_in_thread(HandedSecret.objects.filter(task=one).update, sealed=theirs)
        assert await run_in_thread(handed_secrets.read, claimed) == {}
