"""Clients that leave, and clients that cancel a call by a notification."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2a_doors import hang_ups
from a2a_doors.mcp import calls
from a2a_project.asgi import application
from a2a_tasks import process_lifetime
from a2a_tasks.agents import Turn
from a2a_tasks.models import Task
from a2a_tasks.operations import conversation
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.streaming.event_buffer import Hub, hub
from tests.integration.doors.mcp.raw import NEW, OLD, head_of, message
from tests.journeys.waiting import eventually
from tests.support.agents_under_test import playing, until_stopped
from tests.support.bindings.client import Client, Exchange
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db
ERAS = pytest.mark.parametrize("version", [NEW, OLD])


def begin(version: str, agent: str, number: Any = 1, **head: str) -> Exchange:
    """Begin a call and leave it open."""
    params = {"name": agent, "arguments": {"message": f"work {number}"}}
    headers = {**head_of("tools/call", params, version), **head}
    exchange = Client(application).exchange("POST", "/mcp", headers)
    body = message("tools/call", params, version=version, number=number)
    exchange.upload(json.dumps(body).encode())
    return exchange


async def states() -> list[str]:
    """The states of all tasks, in plain words."""
    found = await run_in_thread(
        lambda: list(Task.objects.order_by("pk").values_list("state", flat=True))
    )
    return [state.removeprefix("TASK_STATE_").lower() for state in found]


async def reach(*wanted: str) -> None:
    """Wait until the tasks are in these states."""

    async def look() -> bool:
        return await states() == [*wanted]

    await eventually(look, f"tasks that are {wanted}")


async def left() -> None:
    """Wait until the client's call is over; nothing is to be cancelled for it."""
    await eventually(lambda: asyncio.sleep(0, not calls._open), "the call is over")
    assert not hang_ups._waiting


def followers() -> list[int]:
    """The numbers of those that follow each task in this process."""
    return [feed.followers for feed in hub()._feeds.values()]


async def cancel(version: str, number: Any, **head: str) -> int:
    """Send `notifications/cancelled`."""
    method = "notifications/cancelled"
    body = {"jsonrpc": "2.0", "method": method, "params": {"requestId": number, "reason": "x"}}
    headers = {**head_of(method, {}, version), **head}
    return (await Client(application).post("/mcp", body, headers)).status


@ERAS
async def test_a_client_that_leaves_stops_the_agent(version: str) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        begun.set()
        async for each in until_stopped(stopped)(turn):
            yield each

    with playing(run, slug="busy"):
        async with begin(version, "busy"):
            await asyncio.wait_for(begun.wait(), 20)
        await asyncio.wait_for(stopped.wait(), 20)
    assert await states() == ["canceled"]


@ERAS
async def test_clients_that_leave_at_any_moment_leave_no_task_behind(version: str) -> None:
    begun = asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        begun.set()
        yield turn.working()
        await asyncio.Event().wait()

    async def come(number: int) -> None:
        async with begin(version, "busy", number):
            if number == 0:  # on a busy machine the others may leave before their tasks begin
                await begun.wait()
            await asyncio.sleep(number / 500)

    async def look() -> bool:
        return not (calls._open or hang_ups._waiting) and set(await states()) == {"canceled"}

    with playing(run, slug="busy"):
        await asyncio.gather(*map(come, range(40)))
        await eventually(look, "all tasks are cancelled")


async def test_a_client_that_gives_up_after_five_seconds_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The OpenAI Agents SDK does by itself, and its model calls the tool again."""
    monkeypatch.setattr(calls, "IMPATIENT", (0.0, 20.0))
    begun, go = asyncio.Event(), asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        begun.set()
        await go.wait()
        yield "done"

    with playing(run, slug="busy"):
        async with begin(NEW, "busy"):
            await asyncio.wait_for(begun.wait(), 20)
        await left()
        assert await states() == ["working"]
        async with begin(NEW, "busy") as again:
            await eventually(lambda: asyncio.sleep(0, calls._open), "the call is under way")
            go.set()
            answer = (await again.response()).json["result"]
    assert answer["content"][0]["text"] == "done"
    assert await states() == ["completed"]


async def test_an_agent_may_go_on_without_its_client() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        begun.set()
        await go.wait()
        yield "done"

    with playing(run, slug="stubborn", on_hangup="go on"):
        async with begin(OLD, "stubborn"):
            await asyncio.wait_for(begun.wait(), 20)
        await left()
        assert await states() == ["working"]
        go.set()


@ERAS
async def test_a_notification_cancels_the_one_call_that_it_can_be(version: str) -> None:
    """The JavaScript SDK keeps the stream of the call open."""
    stopped = asyncio.Event()
    with playing(until_stopped(stopped), slug="busy"):
        async with begin(version, "busy", 7) as exchange:
            await reach("working")
            for number, head in ((8, {}), ("7", {}), (7, {"user-agent": "another"})):
                assert await cancel(version, number, **head) == 202
            assert await states() == ["working"]
            assert await cancel(version, 7) == 202
            body = (await exchange.response()).body
        assert b"The task was cancelled." in body
        await asyncio.wait_for(stopped.wait(), 20)
    assert await states() == ["canceled"]


async def test_a_notification_cancels_no_task_that_an_equal_call_follows() -> None:
    with playing(until_stopped(asyncio.Event()), slug="busy"):
        async with begin(OLD, "busy", 7) as first:
            await reach("working")
            async with begin(OLD, "busy", 7, **{"user-agent": "another"}) as second:
                await until(lambda: len(calls._open) == 2 and followers() == [2])
                assert await cancel(OLD, 7, **{"user-agent": "another"}) == 202
                assert b"Still working" in (await second.response()).body
                assert await states() == ["working"]
            assert await cancel(OLD, 7) == 202
            assert b"The task was cancelled." in (await first.response()).body
    assert await states() == ["canceled"]


async def test_a_notification_is_heeded_though_redis_does_not_answer_and_the_client_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[bool | None] = [False, None]

    async def is_followed(self: Any, task: int) -> bool | None:
        return answers.pop()

    monkeypatch.setattr(Hub, "is_followed", is_followed)
    with playing(until_stopped(asyncio.Event()), slug="busy", on_hangup="go on"):
        async with begin(OLD, "busy", 7):
            await reach("working")
            assert await cancel(OLD, 7) == 202
        await reach("canceled")
    assert not answers


async def test_a_notification_that_can_be_of_two_calls_cancels_none() -> None:
    with (
        playing(until_stopped(asyncio.Event()), slug="busy"),
        playing(until_stopped(asyncio.Event()), slug="other"),
    ):
        async with begin(OLD, "busy", 0), begin(OLD, "other", 0):
            await reach("working", "working")
            assert await cancel(OLD, 0) == 202
            assert await states() == ["working", "working"]


@ERAS
async def test_a_call_is_answered_before_the_process_is_gone_and_its_task_goes_on(
    version: str, life: process_lifetime.Lifetime
) -> None:
    go = asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield turn.working()
        await go.wait()
        yield "done"

    with playing(run, slug="busy"):
        async with begin(version, "busy") as exchange:
            await reach("working")
            life.begin_drain(0.6)
            body = (await exchange.response()).body
        assert b"Still working; call this tool again with task=" in body
        assert await states() == ["working"]
        go.set()
        await reach("completed")


async def test_a_call_with_a_long_answer_ends_early_enough_in_a_drain(
    life: process_lifetime.Lifetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield "a long answer"
        yield turn.working()
        await go.wait()

    with playing(run, slug="busy"):
        async with begin(OLD, "busy") as exchange:
            await until(lambda: conversation._heard[0] > 0)
            monkeypatch.setattr(conversation, "READ_SPEED", conversation._heard[0] / 3600)
            life.begin_drain(3600.0)
            body = (await exchange.response()).body
        assert b"a long answer" in body
        assert life.drain_seconds() > 3500
        assert conversation._heard == [0]
        go.set()
        await reach("completed")
