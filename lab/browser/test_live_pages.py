"""Pages of the console that follow what happens, without a reload, and without taking anything away from their user."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from playwright.async_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from a2a_push.models import Delivery, DeliveryStatus
from a2a_tasks.models import Task, WorkerKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import switches, workers
from lab.browser.test_task_page import signed_in
from tests.support.console.admin.rows import add_run, make_task, said
from tests.support.push.rows import add_attempt, make_config, make_delivery

pytestmark = [pytest.mark.chromium, pytest.mark.django_db(transaction=True)]

INBOX, DELIVERIES = "a2a_tasks/waiting/", "a2a_push/delivery/"
#: Longer than pages wait before they ask again, in milliseconds.
EVERY = 11_000
#: `window.held`: whether the next poll of the page was held back.
LISTEN = """() => { window.held = new Promise((resolve) => document.addEventListener(
  "htmx:beforeRequest", (event) => resolve(event.defaultPrevented), { once: true })); }"""


def ask(name: str) -> Task:
    """A task that asks people for an answer."""
    task = make_task(name, text=f"request {name}", state=TaskState.INPUT_REQUIRED)
    add_run(task, request='{"principal":"alice"}')
    Task.objects.filter(pk=task.pk).update(status_message=json.dumps(said(f"question {name}?")))
    return task


def deliver(name: str) -> Delivery:
    """A pending delivery, with an attempt that failed."""
    delivery = make_delivery(make_config(make_task(name)), webhook_id=f"msg-{name}")
    add_attempt(delivery, 503)
    return delivery


def beat(name: str) -> None:
    """A process that reports itself."""
    now = timezone.now()
    workers.beat(workers.Beat(name=name, kind=WorkerKind.WORKER, host="h", pid=1, started_at=now))


@dataclass
class Change:
    """A page, what is done before it is opened and while it is, and what it then shows."""

    page: str
    before: Callable[[], object]
    do: Callable[[], object]
    shows: str


CHANGES = [
    Change(INBOX, lambda: ask("a"), lambda: ask("b"), "question b?"),
    Change(INBOX, lambda: None, lambda: ask("b"), "question b?"),
    Change(DELIVERIES, lambda: deliver("a"), lambda: deliver("b"), "msg-b"),
    Change(
        DELIVERIES,
        lambda: deliver("a"),
        lambda: Delivery.objects.update(status=DeliveryStatus.DEAD, settled_at=timezone.now()),
        "dead",
    ),
    Change("a2a_push/attempt/", lambda: deliver("a"), lambda: deliver("b"), "msg-b"),
    Change(
        f"{DELIVERIES}KEY/change/",
        lambda: deliver("a"),
        lambda: add_attempt(Delivery.objects.get(), 418),
        "418",
    ),
    Change("a2a_tasks/worker/", lambda: beat("a:1"), lambda: beat("b:2"), "b:2"),
    Change(
        "a2a_tasks/agentswitch/",
        lambda: None,
        lambda: switches.set_state("demo", switches.SwitchState.DRAINING, ""),
        "draining",
    ),
]


async def _open(page: Page, server: LiveServer, place: str) -> None:
    await page.clock.install()
    await page.goto(f"{server.url}/admin/{place}")
    await page.evaluate("window.sameLoad = true")


async def _poll(page: Page) -> bool:
    """Let the time of the next poll come. Return whether the page asked."""
    await page.evaluate(LISTEN)
    await page.clock.fast_forward(EVERY)
    return not await page.evaluate("window.held")


class TestFollowing:
    @pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.page}{change.shows}")
    async def test_a_page_shows_what_happens(self, live_server: LiveServer, change: Change) -> None:
        faults: list[str] = []
        await sync_to_async(change.before)()
        delivery = await Delivery.objects.afirst()
        place = change.page.replace("KEY", str(delivery and delivery.pk))
        async with signed_in(live_server, faults) as page:
            await _open(page, live_server, place)
            part = page.locator("#a2a-follows")
            await expect(part).not_to_contain_text(change.shows)
            await sync_to_async(change.do)()
            assert await _poll(page)
            await expect(part).to_contain_text(change.shows)
            assert await page.evaluate("window.sameLoad") is True
        assert faults == []

    @pytest.mark.parametrize("place", ["", INBOX, DELIVERIES, "a2a_tasks/worker/"])
    async def test_a_page_counts_what_waits_for_people(
        self, live_server: LiveServer, place: str
    ) -> None:
        faults: list[str] = []
        async with signed_in(live_server, faults) as page:
            await _open(page, live_server, place)
            number = page.locator("#nav-sidebar .a2a-count")
            await expect(number).to_be_hidden()
            await sync_to_async(ask)("a")
            assert await _poll(page)
            await expect(number).to_have_text("1")
        assert faults == []

    @pytest.mark.parametrize("place", ["", INBOX, "a2a_tasks/task/", "a2a_tasks/worker/"])
    async def test_a_page_in_the_background_asks_nothing(
        self, live_server: LiveServer, place: str
    ) -> None:
        faults: list[str] = []
        await sync_to_async(ask)("a")
        async with signed_in(live_server, faults) as page:
            await _open(page, live_server, place)
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            await page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")
            assert not await _poll(page)
            assert asked == []
        assert faults == []

    async def test_who_is_signed_out_meanwhile_is_told_and_keeps_the_rows(
        self, live_server: LiveServer
    ) -> None:
        faults: list[str] = []
        await sync_to_async(deliver)("a")
        async with signed_in(live_server, faults) as page:
            await _open(page, live_server, DELIVERIES)
            await page.context.clear_cookies()
            assert await _poll(page)
            await expect(page.locator(".a2a-live")).to_contain_text("you are signed out")
            await expect(page.locator("#a2a-follows")).to_contain_text("msg-a")
            await expect(page.locator("[hx-get]")).to_have_count(0)
        assert faults == []


class TestWhatTheUserDid:
    async def test_in_the_inbox_stays_while_tasks_come_and_go(
        self, live_server: LiveServer
    ) -> None:
        """The answer that is being written, the boxes that are ticked, and the row that is open."""
        faults: list[str] = []
        first, *_ = [await sync_to_async(ask)(name) for name in "abc"]
        async with signed_in(live_server, faults) as page:
            await _open(page, live_server, INBOX)
            rows = page.locator(".a2a-rows li")
            await rows.filter(has_text="question b?").locator("a").click()
            await expect(page.locator("#a2a-detail .a2a-ask")).to_have_text("question b?")
            await page.get_by_label("Text").fill("half an ans")
            await rows.filter(has_text="question c?").get_by_role("checkbox").check()
            await page.get_by_text("Assign", exact=True).first.click()
            await page.locator("[name=to]").fill("bo")
            done = Task.objects.filter(pk=first.pk)
            await done.aupdate(state=TaskState.COMPLETED)
            await sync_to_async(ask)("d")
            assert await _poll(page)
            await expect(rows.last).to_contain_text("question d?")
            await expect(rows).to_have_count(3)
            await expect(rows.first).to_contain_text("question b?")
            await expect(page.get_by_label("Text")).to_have_value("half an ans")
            await expect(page.locator("[name=to]")).to_have_value("bo")
            checked = rows.filter(has=page.get_by_role("checkbox", checked=True))
            await expect(checked).to_have_count(1)
            await expect(checked).to_contain_text("question c?")
            await expect(page.locator(".a2a-rows [aria-current]")).to_contain_text("question b?")
            await expect(page.locator("#a2a-waiting")).to_contain_text("3 waiting")
            await expect(page).to_have_title(r"(3) Inbox | A2A host")
            assert await page.evaluate("window.sameLoad") is True
        assert faults == []

    async def test_in_a_list_holds_the_page_back_until_it_is_undone(
        self, live_server: LiveServer
    ) -> None:
        """Rows that move below a chosen one would be another choice."""
        faults: list[str] = []
        await sync_to_async(deliver)("a")
        async with signed_in(live_server, faults) as page:
            await _open(page, live_server, DELIVERIES)
            live = page.locator(".a2a-live")
            await page.locator("#result_list tbody input").check()
            await sync_to_async(deliver)("b")
            assert not await _poll(page)
            await expect(live).to_have_text("paused while you use it")
            await expect(page.locator("#result_list tbody tr")).to_have_count(1)
            await page.locator("#result_list tbody input").uncheck()
            await page.locator("h1").click()
            assert await _poll(page)
            await expect(page.locator("#result_list tbody tr")).to_have_count(2)
            await expect(live).to_have_text("live")
            # Django's script knows the new row, too.
            await page.locator("#action-toggle").check()
            await expect(page.locator(".action-counter")).to_have_text("2 of 2 selected")
            await expect(page.locator("#result_list tbody input:checked")).to_have_count(2)
            assert not await _poll(page)
            await page.locator("#action-toggle").uncheck()
            await page.locator("select[name=action]").select_option(index=1)
            await page.locator("h1").click()
            assert not await _poll(page)
        assert faults == []

    async def test_that_comes_while_an_answer_is_under_way_wins(
        self, live_server: LiveServer
    ) -> None:
        faults: list[str] = []
        await sync_to_async(deliver)("a")
        async with signed_in(live_server, faults) as page:
            await _open(page, live_server, DELIVERIES)
            await sync_to_async(deliver)("b")
            await page.evaluate(
                """() => document.addEventListener("htmx:beforeOnLoad", () =>
                  { document.querySelector("#result_list tbody input").checked = true; }, { once: true })"""
            )
            assert await _poll(page)
            await expect(page.locator(".a2a-live")).to_have_text("paused while you use it")
            await expect(page.locator("#result_list tbody tr")).to_have_count(1)
            await expect(page.locator("#result_list tbody input")).to_be_checked()
        assert faults == []
