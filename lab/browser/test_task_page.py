"""The page of a task in a real browser: it follows the task, and nothing that strangers wrote is executed."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from playwright.async_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from a2a_console.admin.tasks.task_page import TABS
from a2a_tasks.models import Artifact, Event, Message, RunStatus, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState
from tests.support.chromium import visiting
from tests.support.console.admin.rows import add_artifact, add_run, add_status, add_step, make_task

pytestmark = [pytest.mark.chromium, pytest.mark.django_db(transaction=True)]

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" onload="alert(1)"><script>alert(1)</script>'
    '<a href="javascript:alert(1)"><rect width="40" height="20" fill="red"/></a></svg>'
)
EVIL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "[press](javascript:alert(1))",
    "![seen](https://spy.example/x.png)",
    "<a href='javascript:alert(1)'>x</a>",
    "<div hx-get='/admin/logout/' hx-trigger='load'>x</div>",
    "{{ 7|add:7 }}",
    "\u202ereversed",
    "</p></li></ol><iframe src='javascript:alert(1)'></iframe>",
]


def evil_parts() -> list[dict[str, object]]:
    """Everything that a part can have in it."""
    bytes_ = base64.b64encode(SVG.encode()).decode()
    parts: list[dict[str, object]] = [
        {"text": text, "mediaType": kind, "filename": text}
        for text in EVIL
        for kind in ("text/plain", "text/html", "text/markdown")
    ]
    parts = parts[:40]
    parts.append({"data": {text: [text, {text: text}] for text in EVIL}})
    for kind in ("image/svg+xml", "text/html", "application/pdf", "audio/mpeg", "image/png"):
        parts.append({"raw": bytes_, "mediaType": kind, "filename": EVIL[0]})
    parts.append({"url": "javascript:alert(1)", "filename": EVIL[1]})
    parts.append({"url": 'https://example.com/"onmouseover="alert(1)', "mediaType": EVIL[1]})
    return parts


def make_evil() -> Task:
    """A task that goes on, with all of it everywhere."""
    task = make_task("evil", context_id=EVIL[1], owner=EVIL[0])
    body = {"messageId": "m", "role": Role.USER.value, "parts": evil_parts()}
    Message.objects.filter(task=task).update(body=json.dumps(body))
    add_artifact(task, EVIL[1], "x")
    whole = {"artifactId": EVIL[1], "parts": evil_parts()}
    Artifact.objects.filter(task=task).update(body=json.dumps(whole))
    Event.objects.filter(task=task, number=2).update(body=json.dumps({"artifact": whole}))
    add_status(task, TaskState.WORKING, EVIL[1])
    Task.objects.filter(pk=task.pk).update(status_message=json.dumps(body))
    run = add_run(
        task, RunStatus.RUNNING, worker=EVIL[1], error=f"Attempt 1 on {EVIL[0]} died: {EVIL[1]}.\n"
    )
    add_step(task, run, EVIL[1], json.dumps(EVIL))
    return task


@asynccontextmanager
async def signed_in(server: LiveServer, faults: list[str]) -> AsyncIterator[Page]:
    """A browser with an operator in it; whatever it complains of is kept, and a question it is asked."""
    await sync_to_async(User.objects.create_superuser)("root", password="correct horse")
    async with visiting() as page:
        await page.goto(f"{server.url}/admin/")
        await page.fill("#id_username", "root")
        await page.fill("#id_password", "correct horse")
        await page.click("[type=submit]")
        page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
        page.on("pageerror", lambda fault: faults.append(f"error {fault}"))
        page.on(
            "console",
            lambda said: faults.append(said.text) if said.type in {"error", "warning"} else None,
        )
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith((server.url, "blob:")) else faults.append(asked.url)
            ),
        )
        yield page


class TestWhatStrangersWrote:
    async def test_executes_nothing_and_breaks_no_policy(self, live_server: LiveServer) -> None:
        faults: list[str] = []
        task = await sync_to_async(make_evil)()
        base = f"{live_server.url}/admin/a2a_tasks"
        async with signed_in(live_server, faults) as page:
            for place in (
                f"task/{task.pk}/change/",
                *(f"task/{task.pk}/change/?tab={tab}" for tab in TABS),
                f"context/{task.context_id}/conversation/",
            ):
                await page.goto(f"{base}/{place}")
                await page.evaluate(
                    "document.querySelectorAll('details').forEach(d => d.open = true)"
                )
                for picture in await page.query_selector_all("img[loading=lazy]"):
                    await picture.scroll_into_view_if_needed()
                wrong = "iframe, object, embed, form form, [style], a[href^='javascript' i], .a2a-did script, .a2a-did svg"
                assert await page.query_selector_all(wrong) == []
                assert (
                    await page.query_selector_all("#content script, #content [hx-get*=logout]")
                    == []
                )
            # An SVG is seen, as a picture; one that is no picture is not.
            await page.goto(f"{base}/task/{task.pk}/change/")
            svg = page.locator(f"#a2a-tab img[src$='/parts/event/1/{len(evil_parts()) - 7}/']")
            await svg.scroll_into_view_if_needed()
            await page.wait_for_function(
                "e => e.complete && e.naturalWidth === 40", arg=await svg.element_handle()
            )
            # Opened on its own it is in no origin.
            await page.goto(f"{live_server.url}{await svg.get_attribute('src')}")
            assert await page.evaluate("window.origin") == "null"
        # What the sandbox keeps from running is said, and is the proof that it does not run.
        kept = ("Blocked script execution", "violates the following Content Security Policy")
        blocked = [fault for fault in faults if any(word in fault for word in kept)]
        assert [fault for fault in faults if fault not in blocked] == []
        assert all("sandboxed" in fault or "default-src 'none'" in fault for fault in blocked)


class TestFollowing:
    async def test_the_page_follows_the_task_to_its_end(self, live_server: LiveServer) -> None:
        faults: list[str] = []
        task = await sync_to_async(make_task)(text="begin", state=TaskState.WORKING)
        async with signed_in(live_server, faults) as page:
            await page.goto(f"{live_server.url}/admin/a2a_tasks/task/{task.pk}/change/")
            told = page.locator("#a2a-tab .a2a-text")
            await page.evaluate("window.sameLoad = true")
            await sync_to_async(add_artifact)(task, "novel", "once ", "upon ", closed=False)
            await told.get_by_text("once upon").wait_for()
            # An open fold, a selection and a row in focus stay while the page changes.
            await page.locator("#event-1 summary").click()
            await page.keyboard.press("j")
            await page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
            focused = "document.activeElement.className"
            row = await page.evaluate(focused)
            await sync_to_async(add_status)(task, TaskState.INPUT_REQUIRED, "a time?")
            await told.get_by_text("a time?").wait_for()
            await page.locator(".a2a-summary .a2a-badge.a2a-input-required").wait_for()
            assert await page.locator("#event-1 details").get_attribute("open") is not None
            assert await page.evaluate("String(getSelection())") == "task-1"
            assert await page.evaluate(focused) == row
            assert await told.get_by_text("once upon").count() == 1
            async with page.expect_response(lambda got: "/tab/" in got.url and got.status == 204):
                pass
            await sync_to_async(add_status)(task, TaskState.COMPLETED, "the end")
            await told.get_by_text("the end").wait_for()
            await page.locator(".a2a-summary .a2a-badge.a2a-completed").wait_for()
            # The page asks on for a moment: a log line may arrive after the end.
            await expect(page.locator("[hx-get]")).to_have_count(0)
            assert await page.locator("#a2a-cancel").count() == 0
            assert await page.evaluate("window.sameLoad") is True
        assert faults == []

    async def test_whoever_is_signed_out_meanwhile_is_told_and_asked_no_more(
        self, live_server: LiveServer
    ) -> None:
        faults: list[str] = []
        task = await sync_to_async(make_task)(state=TaskState.WORKING)
        async with signed_in(live_server, faults) as page:
            await page.goto(f"{live_server.url}/admin/a2a_tasks/task/{task.pk}/change/")
            await page.context.clear_cookies()
            await page.get_by_text("you are signed out").nth(1).wait_for()
            assert await page.locator("[hx-get]").count() == 0
            assert await page.locator("#id_username").count() == 0


class TestFinding:
    async def test_a_link_to_an_event_leads_to_its_line_on_whatever_page(
        self, live_server: LiveServer
    ) -> None:
        faults: list[str] = []
        task = await sync_to_async(make_task)(state=TaskState.COMPLETED)
        await sync_to_async(add_chunks)(task, 500)
        base = f"{live_server.url}/admin/a2a_tasks/task/{task.pk}/change/"
        async with signed_in(live_server, faults) as page:
            await page.goto(f"{base}#event-50")
            await page.wait_for_url("**?from=50#event-50")
            await page.locator("#event-50:target").wait_for()
            await page.goto(base)
            await page.evaluate("location.hash = 'event-99999'")
            assert "from=" not in page.url
        assert faults == []

    async def test_keys_lead_through_the_rows_to_the_search_and_to_help(
        self, live_server: LiveServer
    ) -> None:
        faults: list[str] = []
        task = await sync_to_async(make_task)(state=TaskState.COMPLETED)
        run = await sync_to_async(add_run)(task, RunStatus.ENDED)
        for name in ("compare 1", "compare 2"):
            await sync_to_async(add_step)(task, run, name, '"same"')
        async with signed_in(live_server, faults) as page:
            await page.goto(f"{live_server.url}/admin/a2a_tasks/task/{task.pk}/change/")
            for key in ("j", "j", "j", "Enter"):  # the message, the run, the two steps
                await page.keyboard.press(key)
            assert await page.locator("details .a2a-spans, details ol .a2a-span").first.is_visible()
            for key in ("j", "Enter"):
                await page.keyboard.press(key)
            await page.locator("#a2a-panel").get_by_role("heading", name="compare 1").wait_for()
            await page.locator("#a2a-panel").get_by_text('"same"').wait_for()
            await page.locator(".a2a-close").click()
            await page.locator("#a2a-panel article").wait_for(state="detached")
            await page.keyboard.press("?")
            await page.get_by_text("search the tasks").wait_for()
            await page.keyboard.press("Escape")
            await page.keyboard.press("/")
            await page.wait_for_url("**/task/#searchbar")
        assert faults == []

    async def test_a_form_that_is_being_filled_in_stays(self, live_server: LiveServer) -> None:
        faults: list[str] = []
        task = await sync_to_async(make_task)(state=TaskState.INPUT_REQUIRED)
        async with signed_in(live_server, faults) as page:
            await page.goto(f"{live_server.url}/admin/a2a_tasks/task/{task.pk}/change/")
            await page.get_by_label("Text").fill("half an ans")
            for _ in range(2):
                async with page.expect_response(lambda got: "/live/top/" in got.url):
                    pass
            assert await page.get_by_label("Text").input_value() == "half an ans"
        assert faults == []


def add_chunks(task: Task, count: int) -> None:
    """So many events more."""
    Event.objects.bulk_create(
        Event(task=task, number=number, kind=EventKind.STATUS, state=TaskState.WORKING, body="{}")
        for number in range(task.last_event + 1, task.last_event + 1 + count)
    )
    Task.objects.filter(pk=task.pk).update(last_event=task.last_event + count)
