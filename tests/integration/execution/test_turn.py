"""The turn's view of its own task, and what an agent may add to what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from a2a_tasks.agents import Turn
from a2a_tasks.protocol.values import Task
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state, hosting, take_away
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1


def shown(task: Task | None) -> Any:
    """The state, the question, the texts of the history and of the artifacts."""
    if task is None:
        return None
    question = task.status.message and texts(task.status.message)
    return (
        task.status.state.word,
        question,
        [texts(message) for message in task.history or ()],
        [texts(artifact) for artifact in task.artifacts or ()],
    )


def texts(body: Any) -> str:
    """The texts of a message or an artifact."""
    return " ".join(part["text"] for part in msgspec.json.decode(body)["parts"])


class TestTheTaskBeforeTheMessage:
    async def test_is_none_first_and_then_what_the_client_last_saw(self) -> None:
        seen: list[Any] = []

        async def run(turn: Turn) -> AsyncIterator[Any]:
            seen.append(shown(await turn.task))
            yield turn.artifact(f"about {turn.text}")
            yield turn.ask("And?")

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("one")
                await client.send("two", task_id=task.id)
                await client.send("three", task_id=task.id)
        asked = ("input-required", "And?")
        assert seen == [
            None,
            (*asked, ["one"], ["about one"]),
            (*asked, ["one", "And?", "two"], ["about one", "about two"]),
        ]

    async def test_is_after_the_turn_that_the_message_waited_for(self) -> None:
        seen: list[Any] = []
        go, began = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            seen.append(shown(await turn.task))
            began.set()
            await go.wait()
            yield turn.ask(f"What of {turn.text}?")

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin("one")
                await began.wait()
                await client.begin("two", task_id=task.id)
                go.set()
                await until(lambda: len(seen) == 2)
        assert seen == [None, ("input-required", "What of one?", ["one"], [])]

    async def test_is_equal_in_every_attempt(self) -> None:
        seen: list[Any] = []

        async def run(turn: Turn) -> AsyncIterator[Any]:
            seen.append(shown(await turn.task))
            yield turn.artifact(f"of {turn.text}")
            if turn.text == "one":
                yield turn.ask("And?")
                return
            yield turn.working("Attempt")
            if turn.attempt == 1:
                await asyncio.Event().wait()

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("one")
                await client.begin("two", task_id=task.id)
                await until(lambda: len(seen) == 2)
                await until(lambda: says(client, task.id, "Attempt"))
                await run_in_thread(take_away, task.id)
                await until(lambda: client_state(client, task.id, "completed"))
        assert seen == [None, *[("input-required", "And?", ["one"], ["of one"])] * 2]


async def says(client: Client, task: str, text: str) -> bool:
    """Is this the message in the status?"""
    message = (await client.get(task)).status.message
    return message is not None and texts(message) == text


class TestCleaningUp:
    async def test_a_cancelled_task_is_told_from_a_stopped_run(self) -> None:
        told: list[bool] = []

        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working("Here")
            if turn.attempt == 2:
                return
            try:
                await asyncio.Event().wait()
            finally:
                told.append(await turn.task_cancelled)

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: says(client, task.id, "Here"))
                await client.cancel(task.id)
                await until(lambda: told)
                other = await client.begin()
                await until(lambda: says(client, other.id, "Here"))
                await run_in_thread(take_away, other.id)
                await until(lambda: client_state(client, other.id, "completed"))
        assert told == [True, False]


class TestAdditions:
    async def test_metadata_and_extensions_reach_the_client(self) -> None:
        extensions = ("https://example.com/ext",)

        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.artifact("x", id="a", metadata={"n": 1}, extensions=extensions)
            page = turn.stream("b", extensions=extensions)
            yield page.write("y", last=True)
            yield turn.complete("Done.", metadata={"n": 2})

        with playing(run) as agent:
            async with hosting():
                task = await Client(agent).send()
        first, second = (msgspec.json.decode(body) for body in task.artifacts or ())
        assert (first["metadata"], first["extensions"]) == ({"n": 1}, [*extensions])
        assert second["extensions"] == [*extensions]
        assert msgspec.json.decode(task.status.message or b"{}")["metadata"] == {"n": 2}

    async def test_a_reply_takes_metadata(self) -> None:
        with playing(lambda turn: turn.reply("x", metadata={"n": 4})) as agent:
            async with hosting():
                task = await Client(agent).send()
        assert msgspec.json.decode(task.status.message or b"{}")["metadata"] == {"n": 4}
