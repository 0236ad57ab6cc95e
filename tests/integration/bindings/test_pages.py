"""Django's pages: a body that is too large does not get as far."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from pytest_django import Settings

from a2a_project import page_slots
from a2a_project.asgi import application, routes
from a2a_project.page_slots import PageSlots
from a2a_tasks.bindings.http import Receive, Scope, Send, respond
from tests.support.bindings.client import Client

pytestmark = pytest.mark.django_db
FORM = {"content-type": "application/x-www-form-urlencoded"}


class TestABodyThatIsTooLarge:
    async def test_is_refused_when_it_says_so(self, settings: Settings) -> None:
        settings.A2A_MAX_BODY_BYTES = 100
        async with Client(application).exchange(
            "POST", "/admin/login/", {**FORM, "content-length": "101"}
        ) as asked:
            assert (await asked.response()).status == 413
            assert asked.taken == 0

    async def test_is_refused_as_soon_as_it_is(self, settings: Settings) -> None:
        settings.A2A_MAX_BODY_BYTES = 100
        async with Client(application).exchange("POST", "/admin/login/", FORM) as asked:
            for _ in range(11):
                asked.upload(b"x" * 10, more=True)
            assert (await asked.response()).status == 413

    async def test_what_fits_is_read_whole(self) -> None:
        asked = Client(application)
        answer = await asked.ask("POST", "/admin/login/", b"username=a&password=b", FORM)
        assert answer.status == 403  # the form came without its token, but it came


class Pages:
    """Django, as slow as a test wants it."""

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.under_way = self.most = self.asked = 0
        self.go_on = asyncio.Event()
        self.more = asyncio.Event()
        self.pieces = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer when the test says so; in pieces, the first comes at once."""
        self.under_way += 1
        self.asked += 1
        self.most = max(self.most, self.under_way)
        self.more.set()
        if self.pieces:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await self.go_on.wait()
        self.under_way -= 1
        if self.pieces:
            await send({"type": "http.response.body", "body": b"two"})
        else:
            await respond(send, 200, b"page")

    async def come(self, count: int) -> None:
        while self.asked < count:
            self.more.clear()
            await self.more.wait()


class TestTooManyPages:
    @pytest.fixture
    def pages(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Pages:
        """Three at once, and two that wait."""
        settings.A2A_MAX_PAGES = 3
        monkeypatch.setattr(page_slots, "MAX_WAITING", 2)
        pages = Pages()
        monkeypatch.setattr(routes, "page_slots", PageSlots(pages))
        return pages

    async def test_wait_and_those_beyond_come_later_while_the_protocol_answers(
        self, pages: Pages
    ) -> None:
        asked = Client(application)
        begun = [asyncio.ensure_future(asked.ask("GET", "/admin/")) for _ in range(5)]
        await pages.come(3)
        refused = await asked.ask("GET", "/admin/")
        assert (refused.status, refused.header("retry-after")) == (503, "1")
        card = await asked.ask("GET", "/agents/demo/.well-known/agent-card.json")
        assert card.status == 200
        assert not any(page.done() for page in begun)
        pages.go_on.set()
        assert {(await page).status for page in begun} == {200}
        assert (pages.most, pages.asked) == (3, 5)

    async def test_that_come_in_pieces_keep_nobody_waiting(self, pages: Pages) -> None:
        pages.pieces = True
        asked = Client(application)
        begun = [asyncio.ensure_future(asked.ask("GET", "/admin/")) for _ in range(9)]
        await pages.come(9)
        pages.go_on.set()
        assert {(await page).body for page in begun} == {b"onetwo"}

    async def test_that_nobody_reads_keep_nobody_waiting(self, pages: Pages) -> None:
        """Whole answers: neither a slot nor Django itself waits for their readers."""
        pages.go_on.set()
        never = asyncio.Event()

        async def receive() -> dict[str, object]:
            await never.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            await never.wait()

        slots = routes.page_slots
        unread = [asyncio.ensure_future(slots({}, receive, send)) for _ in range(9)]
        await pages.come(9)
        assert (await Client(application).ask("GET", "/admin/")).status == 200
        assert pages.under_way == 0
        assert not any(one.done() for one in unread)
        for one in unread:
            one.cancel()

    async def test_that_fail_make_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def broken(scope: Scope, receive: Receive, send: Send) -> None:
            raise RuntimeError("boom")

        slots = PageSlots(broken)
        monkeypatch.setattr(routes, "page_slots", slots)
        for _ in range(9):
            with pytest.raises(RuntimeError, match="boom"):
                await Client(application).ask("GET", "/admin/")
