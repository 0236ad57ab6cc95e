"""Bodies whose ends never come: a process keeps so many bytes of them, and refuses further large bodies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from a2a_project import page_slots
from a2a_project.asgi import application, routes
from a2a_project.page_slots import PageSlots
from a2a_tasks.bindings import http
from tests.support.bindings.client import Client, Exchange
from tests.support.execution.waiting import until
from tests.support.rows import rows

pytestmark = pytest.mark.django_db
KIB = 1024
LARGE = b" " * (250 * KIB)
PAGE = "/no-such-page"
JSON_RPC = "/agents/demo/"
CALL = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}'
JSON = {"content-type": "application/json", "a2a-version": "1.0"}
PLACES = [
    PAGE,
    JSON_RPC,
    "/agents/demo/message:send",
    "/mcp",
    "/v1/chat/completions",
    "/agents/demo/ag-ui",
]


@pytest.fixture(autouse=True)
def small(host: None, settings: Settings) -> None:
    """Bodies of up to 256 KiB, 64 of which may be under way."""
    settings.A2A_MAX_BODY_BYTES = 256 * KIB
    settings.A2A_DOORS = "mcp, openai, ag-ui"


def begin(path: str) -> Exchange:
    """A client that sends most of a large body, and no more."""
    exchange = Client(application).exchange("POST", path, JSON)
    exchange.upload(LARGE, more=True)
    return exchange


@contextlib.asynccontextmanager
async def filled(path: str) -> AsyncIterator[list[Exchange]]:
    """So many of them that the last one is refused."""
    async with contextlib.AsyncExitStack() as stack:
        exchanges: list[Exchange] = []
        while not (exchanges and exchanges[-1].answered):
            assert len(exchanges) < 100
            before = http.body_quota().used
            exchanges.append(one := await stack.enter_async_context(begin(path)))
            await until(lambda: one.answered or http.body_quota().used > before)  # noqa: B023
        yield exchanges
    assert http.body_quota().used == 0


@rows("path", PLACES)
async def test_are_refused_when_they_are_too_many_and_leave_nothing(path: str) -> None:
    async with filled(path) as exchanges:
        refused = await exchanges.pop().response()
        assert (refused.status, refused.header("retry-after")) == (503, "1")
        assert 10 < len(exchanges) < 90
        assert not any(each.answered for each in exchanges)
        beside = await Client(application).ask("POST", path, b"{}", JSON)
        assert beside.status != 503
    async with begin(path) as later:
        later.upload(b"")
        assert (await later.response()).status not in {413, 503}


async def test_of_pages_leave_room_for_messages() -> None:
    """Anyone may send to a page, so pages have a part of the bytes only."""
    async with filled(PAGE), begin(JSON_RPC) as message:
        message.upload(CALL)
        assert (await message.response()).json["result"]["tasks"] == []


async def test_that_are_whole_no_longer_count(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    async def page(scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        counted.append(http.body_quota().used)
        await http.respond(send, 200, b"page")

    monkeypatch.setattr(routes, "page_slots", PageSlots(page))
    async with begin(PAGE) as whole:
        await until(lambda: http.body_quota().used)
        whole.upload(b"")
        assert (await whole.response()).status == 200
    assert counted == [0]


async def test_that_end_together_let_the_loop_do_other_things_in_between() -> None:
    rounds, ended = 0, list[int]()

    async def read() -> None:
        pieces = [(LARGE[: 200 * KIB], True), (LARGE[200 * KIB :], False)]

        async def receive() -> dict[str, object]:
            piece, more = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": more}

        assert await http.Request({"method": "POST", "headers": []}, receive).body() == LARGE
        ended.append(rounds)

    reading = asyncio.gather(*(read() for _ in range(5)))
    while not reading.done():
        rounds += 1
        await asyncio.sleep(0)
    assert len(set(ended)) == 5


async def test_for_pages_are_not_read_while_too_many_wait(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_MAX_PAGES = 1
    monkeypatch.setattr(page_slots, "MAX_WAITING", 0)
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def slow(scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        begun.set()
        await go_on.wait()
        await http.respond(send, 200, b"page")

    monkeypatch.setattr(routes, "page_slots", PageSlots(slow))
    first = asyncio.ensure_future(Client(application).ask("GET", PAGE))
    await begun.wait()
    async with begin(PAGE) as refused:
        answer = await refused.response()
        assert (answer.status, answer.header("retry-after"), refused.taken) == (503, "1", 0)
    go_on.set()
    assert (await first).status == 200
