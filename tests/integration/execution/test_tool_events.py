"""`turn.tool_call` and `turn.tool_result`: in the log once, bounded and without credentials, and only there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from a2a_tasks.agents import Turn
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from a2a_tasks.execution.tool_events import MAX_BYTES
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state, listened, take_away, tools_told
from tests.support.execution.waiting import until

pytestmark = [
    pytest.mark.quick_on("sqlite"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("local_runs"),
]
ACTIVE = {"extensions": (TOOL_EVENTS.uri,)}


async def test_are_in_the_log_but_neither_in_the_task_nor_in_streams_of_others() -> None:
    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield turn.tool_call("a", "find")
        yield turn.tool_result("a", "nothing", error=True)
        yield turn.ask("more?")

    with playing(run, reports_tools=True) as agent:
        alice = Client(agent)
        task = await alice.send()
        found = await run_in_thread(tools_told, task.id)
        assert found == [
            {"toolCall": {"id": "a", "name": "find", "arguments": {}}},
            {"toolResult": {"id": "a", "content": "nothing", "error": True}},
        ]
        assert b"toolCall" not in msgspec.json.encode(await alice.get(task.id))
        for active, expected in ((ACTIVE, 2), ({}, 0)):
            stream = await alice.subscribe(task.id, **active)
            stream.follower.number = 1  # as a client that resumes
            stream.follower.feed.end = 1  # type: ignore[union-attr]
            batch = await anext(stream.batches(0.5))
            await stream.close()
            assert [event.kind for event in batch or ()].count(EventKind.TOOL) == expected


async def test_are_recorded_once_over_attempts_and_turns() -> None:
    attempts: list[int] = []

    async def run(turn: Turn) -> AsyncIterator[Any]:
        attempts.append(turn.attempt)
        yield turn.tool_call("a", "find")
        await turn.step("x", lambda: 1)
        if turn.attempt == 1 and turn.text == "one":
            await asyncio.Event().wait()
        yield turn.tool_result("a", 1)
        yield turn.tool_call(turn.text, "find")
        yield turn.ask("more?")

    with playing(run) as agent:
        alice = Client(agent)
        task = await alice.begin("one")
        await until(lambda: run_in_thread(lambda: len(tools_told(task.id)) == 1))
        await run_in_thread(take_away, task.id)
        await until(lambda: client_state(alice, task.id, "input-required"))
        await alice.send("two", task_id=task.id)
    assert attempts == [1, 2, 1]
    found = await run_in_thread(tools_told, task.id)
    kinds = [(kind, about["id"]) for one in found for kind, about in one.items()]
    assert kinds == [
        ("toolCall", "a"),
        ("toolResult", "a"),
        ("toolCall", "one"),
        ("toolCall", "two"),
    ]


async def test_have_no_credentials_and_not_more_than_a_number_of_bytes() -> None:
    def run(turn: Turn) -> Any:
        yield turn.tool_call(
            "a", "log_in", {"user": "Ada", "password": "a b c", "url": "https://u:secret@h/"}
        )
        yield turn.tool_result("a", "é" * MAX_BYTES)
        yield turn.tool_result("b", {1, 2})
        yield turn.tool_result("c", float("nan"))
        yield turn.tool_result("d", "\ud800")

    with playing(run) as agent:
        task = await Client(agent).send()
    assert task.status.state.word == "completed"
    call, result, *unfit = await run_in_thread(tools_told, task.id)
    assert call["toolCall"]["arguments"] == {
        "user": "Ada",
        "password": "[redacted]",
        "url": "https://[redacted]@h/",
    }
    content = result["toolResult"]["content"]
    assert content.endswith(f"é … [cut, {2 * MAX_BYTES + 2} bytes]")
    assert len(content.encode()) < MAX_BYTES + 50
    assert [one["toolResult"]["content"] for one in unfit] == [[1, 2], None, "\ufffd"]


async def test_with_an_id_that_is_none_fail_the_task() -> None:
    async def run(turn: Turn) -> Any:
        return turn.tool_call("", "find")

    with playing(run) as agent:
        assert (await Client(agent).send()).status.state.word == "failed"


async def test_make_a_task_of_what_might_have_been_a_direct_message() -> None:
    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield turn.tool_call("a", "find")
        yield turn.reply("found")

    with playing(run, replies_directly=True) as agent:
        alice = Client(agent)
        task = await alice.send()
        events = await listened(await alice.stream())
    assert task.status.state.word == "completed"
    assert [event.kind for event in events] == [EventKind.STATUS, EventKind.STATUS]
