"""An operator with an angry partner on the phone: finds out what happened, and mends it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connections
from playwright.async_api import Page, expect
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.access.api_keys import issue
from lab.browser import people
from lab.browser.conftest import BrowsedHost
from lab.browser.looks import axe, presentable, shot
from tests.journeys.pids import pid_of
from tests.journeys.waiting import PATIENCE
from tests.support.push import receivers

TASKS = "/admin/a2a_tasks/task/"
#: How many pixels of the tables of a page are out of sight.
BEYOND = """Math.max(0, ...Array.from(
  document.querySelectorAll(".results, .a2a-scroll"), (one) => one.scrollWidth - one.clientWidth))"""


async def say(host: BrowsedHost, agent: str, text: str, **configuration: Any) -> dict[str, Any]:
    """Send a message as a client does, and get the task at once."""
    said = {
        "message": {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": True, **configuration},
    }
    async with httpx.AsyncClient(base_url=host.url, timeout=PATIENCE) as client:
        answer = await client.post(f"/agents/{agent}/message:send", json=said)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["task"])


async def open_task(page: Page, task: str) -> None:
    """Go to its page by way of the search."""
    await page.goto(f"{TASKS}?q={task}")
    await page.locator("#result_list .field-asked a").click()


def state(page: Page) -> Any:
    """The badge on top of a task's page."""
    return page.locator(".a2a-summary .a2a-badge")


async def act(page: Page, action: str) -> None:
    """Choose an action of a list for what is selected, and go."""
    await page.locator("select[name=action]").select_option(label=action)
    await page.locator("button[name=index]").first.click()


@dataclass
class Partner:
    """A receiver of webhooks that can be out of order."""

    url: str = ""
    broken: bool = True
    heard: list[receivers.Seen] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request after the other."""
        while True:
            self.heard.append(await receivers.request(reader))
            word = b"503 Out of order" if self.broken else b"200 OK"
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: 5\r\n\r\nwords" % word)


@asynccontextmanager
async def partner() -> AsyncIterator[Partner]:
    """One that is out of order."""
    one = Partner()
    async with receivers.serving(one.serve) as port:
        one.url = f"http://127.0.0.1:{port}/hooks"
        yield one


@pytest.fixture
def olga(host: BrowsedHost, django_db_blocker: DjangoDbBlocker) -> people.Person:
    """An operator who has not signed in yet; to sign in strengthens the hash, which ends other sessions."""
    with django_db_blocker.unblock():
        person = people.operator("olga")
        connections.close_all()
    return person


class TestAPartnerOnThePhone:
    async def test_is_told_what_happens_and_helped(
        self, page: Page, host: BrowsedHost, olga: people.Person, tmp_path: Path
    ) -> None:
        """From the front page to the task, which moves while one looks; what was lost is sent again, and done again."""
        file, words = tmp_path / "parcel-4711", f"gift{uuid.uuid4().hex[:8]}"
        await say(host, "demo", "ask Which size?", returnImmediately=False)  # counted by the tile
        async with partner() as hook:
            told = {"taskPushNotificationConfig": {"url": hook.url}}
            task = (await say(host, "courier", f"Where is my {words} {file}", **told))["id"]
            await page.goto("/admin/")
            await page.get_by_label("Username").fill(olga.name)
            await page.get_by_label("Password").fill(olga.password)
            await page.get_by_role("button", name="Log in").click()
            await look_at_the_dashboard(page)
            await find(page, words, task[:8])
            await watch(page, file)
            await send_again(page, hook)
            await asyncio.to_thread(file.unlink)
            await open_task(page, task)
            await run_again_and_cancel(page)


async def look_at_the_dashboard(page: Page) -> None:
    """A number leads to the list of what it counts."""
    tile = page.locator(".a2a-tile", has_text="Waiting for input").first
    number = await tile.locator(".a2a-value").inner_text()
    await presentable(page, "dashboard")
    await tile.get_by_role("link").click()
    await expect(page.locator("#result_list tbody tr")).to_have_count(int(number))


async def find(page: Page, words: str, beginning: str) -> None:
    """By what was said, and by how its id begins; filters stay, so it begins with all tasks."""
    await page.locator("#nav-sidebar").get_by_role("link", name="Tasks", exact=True).click()
    search = page.locator("#searchbar")
    for query in (words, beginning):
        await search.fill(query)
        await search.press("Enter")
        await page.wait_for_url(f"**q={query}*")
        await expect(page.locator("#result_list tbody tr")).to_have_count(1)
        await expect(page.locator("#result_list")).to_contain_text(words)
    await presentable(page, "tasks-found")
    await page.locator("#result_list .field-asked a").click()


async def watch(page: Page, file: Path) -> None:
    """The page says what happened and what it waits for, and moves while one looks."""
    story = page.locator("#a2a-tab")
    await expect(state(page)).to_have_text("working")
    await expect(story).to_contain_text("I ask the depot.")
    await expect(story).to_contain_text("asked the depot for parcel-4711")
    await expect(story).to_contain_text("503")
    await expect(page.locator(".a2a-diagnosis .a2a-kind").first).to_have_text("working")
    await presentable(page, "task-working")
    await page.evaluate("window.sameLoad = true")
    await asyncio.to_thread(file.write_text, "lost")
    await expect(state(page)).to_have_text("failed")
    await expect(story).to_contain_text("parcel-4711 is nowhere")
    assert await page.evaluate("window.sameLoad") is True
    await page.reload()
    await presentable(page, "task-failed")


async def send_again(page: Page, hook: Partner) -> None:
    """The partner has mended his side, and hears what was given up."""
    await page.get_by_role("link", name="Webhooks", exact=True).last.click()
    await page.locator("section[aria-labelledby=a2a-deliveries] table tbody a").first.click()
    await expect_reloaded(page, ".a2a-facts", "dead")
    await presentable(page, "delivery-dead")
    hook.broken, before, here = False, len(hook.heard), page.url
    await page.locator(".a2a-facts .field-receiver_cell a").click()
    await presentable(page, "receiver-disabled")
    await page.get_by_role("button", name="Enable", exact=True).click()
    await page.locator(".a2a-confirm button").click()
    await expect(page.locator(".messagelist")).to_be_visible()
    await page.goto(here)
    await page.get_by_role("button", name="Send again").click()
    await presentable(page, "delivery-sure")
    await page.locator(".a2a-confirm button").click()
    await expect(page.locator(".messagelist")).to_be_visible()
    await shot(page, "delivery-again")
    await expect_reloaded(page, ".a2a-facts", "delivered")
    assert len(hook.heard) > before


async def run_again_and_cancel(page: Page) -> None:
    """Both after a question; it is a new task."""
    sure = page.locator(".a2a-confirm button")
    await page.get_by_role("button", name="Run again").click()
    await expect(sure).to_be_visible()
    await presentable(page, "task-run-again")
    await sure.click()
    await expect(state(page)).to_have_text("working")
    await page.keyboard.press("c")
    await expect(sure).to_be_visible()
    await presentable(page, "task-cancel")
    await sure.click()
    await expect(state(page)).to_have_text("canceled")
    await presentable(page, "task-canceled")


async def expect_reloaded(page: Page, place: str, text: str) -> None:
    """The text comes there; the page does not move by itself."""
    async with asyncio.timeout(20):
        while text not in await page.locator(place).first.inner_text():
            await page.reload()


class TestTheListOfTasks:
    async def test_cancels_many_after_asking_and_exports_the_rest(
        self, root: Page, host: BrowsedHost, tmp_path: Path
    ) -> None:
        words = f"bulk{uuid.uuid4().hex[:8]}"
        for n in range(3):
            await say(host, "courier", f"{words} {tmp_path / str(n)}")
        await root.goto(f"{TASKS}?q={words}")
        await expect(root.locator("#result_list tbody tr")).to_have_count(3)
        await root.locator("#action-toggle").check()
        await act(root, "Cancel selected tasks …")
        await expect(root.locator(".a2a-plan")).to_contain_text("3 tasks")
        await presentable(root, "tasks-cancel")
        await root.get_by_role("button", name=re.compile(r"3 tasks\)$")).click()
        await expect(root.locator(".a2a-job")).to_contain_text("3 of 3 tasks")
        await expect(root.get_by_role("button", name="Stop the job")).to_have_count(0)
        await presentable(root, "bulk-job")
        await root.goto(f"{TASKS}?q={words}")
        await expect(root.locator("#result_list .a2a-badge.a2a-canceled")).to_have_count(3)
        await say(host, "demo", f"ask What is {words} in the {'very ' * 20} long run?")
        await expect_reloaded(root, "#result_list", "input-required")
        await presentable(root, "tasks")
        async with root.expect_download() as download:
            await root.locator("summary", has_text="Export").click()
            await root.get_by_role("button", name="CSV").click()
        saved = tmp_path / "tasks.csv"
        await (await download.value).save_as(saved)
        assert saved.read_text().count("canceled") == 3
        await root.goto(f"{TASKS}?q=nothing-like-it")
        await presentable(root, "tasks-none")

    async def test_selects_all_that_it_is_about_beyond_the_page_shown(
        self, root: Page, host: BrowsedHost
    ) -> None:
        words = f"many{uuid.uuid4().hex[:8]}"
        for _ in range(51):
            await say(host, "demo", f"ask {words}", returnImmediately=False)
        await root.goto(f"{TASKS}?q={words}")
        await expect(root.locator("#result_list tbody tr")).to_have_count(50)
        await root.locator("#action-toggle").check()
        await root.get_by_role("button", name="Select all tasks of this list").click()
        await expect(root.locator("div.actions")).to_contain_text("All tasks of this list selected")
        await presentable(root, "tasks-all-selected")
        await act(root, "Cancel selected tasks …")
        await expect(root.locator(".a2a-plan")).to_contain_text("51 tasks")
        await root.get_by_role("button", name=re.compile(r"51 tasks\)$")).click()
        await expect(root.locator(".a2a-job")).to_contain_text("51 of 51 tasks")


class TestATaskWhoseProcessWasKilled:
    async def test_tells_of_both_attempts(
        self, root: Page, host: BrowsedHost, tmp_path: Path
    ) -> None:
        """The operator watches how the first one dies and the second one ends the task."""
        file = tmp_path / "mortal"
        task = (await say(host, "mortal", str(file)))["id"]
        await open_task(root, task)
        story = root.locator("#a2a-tab")
        await expect(story).to_contain_text("Here.")
        attempts = story.locator(".a2a-beside", has_text=re.compile(r"attempt \d"))
        await expect(attempts).to_have_count(1)
        os.kill(await pid_of(file), signal.SIGKILL)
        await expect(state(root)).to_have_text("completed")
        await expect(story).to_contain_text("attempt 2 after")
        await expect(story).to_contain_text("died with signal 9")  # while one looks
        await root.reload()
        begin, first, second, end = await attempts.all_inner_texts()
        assert re.search(r"started attempt 1 on \S+", begin)
        assert re.search(r"fenced attempt 1 on \S+: the agent's process died with signal 9", first)
        assert re.search(r"started attempt 2 on \S+", second)
        assert re.search(r"ended attempt 2 after \d", end)
        await presentable(root, "task-two-attempts")


class TestATaskThatWaitedAndDied:
    async def test_shows_three_segments_that_add_up_to_its_duration(
        self, root: Page, host: BrowsedHost, tmp_path: Path
    ) -> None:
        """The operator watches the wait, the death and the retry, and opens the bar of the attempt that died."""
        file = tmp_path / "sleeper"
        task = (await say(host, "mortal-sleeper", str(file)))["id"]
        await root.goto(f"/admin/t/{task}")
        await expect(root.locator(".a2a-diagnosis .a2a-kind").first).to_have_text("parked")
        os.kill(await pid_of(file), signal.SIGKILL)
        await expect(state(root)).to_have_text("completed")
        await expect(root.locator("[hx-get]")).to_have_count(0)
        whole = root.locator(".a2a-span", has_text="run ").first.locator("rect:not(.a2a-bar-fold)")
        said = [text or "" for text in await whole.locator("title").all_text_contents()]
        attempts = [text for text in said if text.startswith("attempt")]
        assert [one.rpartition(": ")[2] for one in attempts] == ["parked in sleep", "died", "ended"]
        moments = await root.locator("#a2a-tab time").evaluate_all("all => all.map(e => e.title)")
        first, *_, last = sorted(map(datetime.fromisoformat, moments))
        took = (last - first).total_seconds()
        assert sum(map(seconds_of, said)) == pytest.approx(took, rel=0.05)
        await root.locator(".a2a-bar-fault").first.click()
        panel = root.locator("#a2a-panel")
        await expect(panel).to_contain_text("died")
        assert "bar=" in root.url
        await root.reload()
        await expect(panel).to_contain_text("died")
        await presentable(root, "task-waterfall")


def seconds_of(text: str) -> float:
    """The duration in the words of a bar: `attempt: attempt 1 on a, 3.2 s: died`."""
    found = re.search(r", ([\d.]+) (ms|s)\b", text)
    assert found, text
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


@pytest.fixture
def key(host: BrowsedHost, django_db_blocker: DjangoDbBlocker) -> str:
    """What a partner shows."""
    with django_db_blocker.unblock():
        issued = issue("partner")
        connections.close_all()
    return str(issued.key)


class TestKeys:
    async def test_are_rotated_and_shown_once(
        self, root: Page, host: BrowsedHost, key: str
    ) -> None:
        await root.goto("/admin/a2a_tasks/apikey/")
        await presentable(root, "keys")
        await root.locator("#result_list tr", has_text="partner").get_by_role("checkbox").check()
        await act(root, "Rotate selected keys …")
        await root.get_by_role("button", name="Rotate").click()
        secret = await root.locator("#content code").first.inner_text()
        assert secret.split("_")[1] == key.split("_")[1] and secret != key
        await expect(root.locator("#content")).to_contain_text("The old secret goes on until")
        await presentable(root, "key-shown-once")
        await root.reload()
        await expect(root.locator("h1")).to_have_text("Keys")
        assert secret not in await root.content()
        await root.get_by_role("link", name=key.split("_")[1]).click()
        await presentable(root, "key")
        assert secret not in await root.content()
        async with httpx.AsyncClient(base_url=host.url) as client:
            for opens in (key, secret):  # the old one goes on for a while
                answer = await client.get("/agents/demo/tasks", headers={"x-api-key": opens})
                assert answer.status_code == 200


class TestAgents:
    async def test_are_drained_and_switched_on_again(self, root: Page, host: BrowsedHost) -> None:
        await root.goto("/admin/")
        await root.get_by_role("link", name="Agents", exact=True).first.click()
        await presentable(root, "agents")
        await root.get_by_role("link", name="Napper").click()
        await presentable(root, "agent")
        await root.locator("summary", has_text="Change state").click()
        await root.get_by_label("Reason").first.fill("a deploy")
        await root.get_by_role("button", name="Drain").click()
        sure = root.locator(".a2a-confirm button")
        await expect(sure).to_be_visible()
        await presentable(root, "agent-drain")
        await sure.click()
        await expect(root.locator(".a2a-head .a2a-badge")).to_have_text("draining")
        await root.locator("summary", has_text="Change state").click()
        await root.get_by_role("button", name="Enable").click()
        await expect(root.locator(".a2a-head .a2a-badge")).to_have_text("on")

    async def test_and_the_processes_that_carry_them_are_listed(self, root: Page) -> None:
        await root.goto("/admin/a2a_tasks/worker/")
        await presentable(root, "workers")
        await root.locator("#content tbody th a").first.click()
        await presentable(root, "worker")


class TestWorkForPeople:
    async def test_is_taken_and_answered(self, root: Page, host: BrowsedHost) -> None:
        words = f"May I? {uuid.uuid4().hex[:8]}"
        task = (await say(host, "demo", f"ask {words}"))["id"]
        await root.goto("/admin/")
        await root.get_by_role("link", name="Inbox").first.click()
        await expect_reloaded(root, "#content", words)
        await presentable(root, "waiting")
        await root.locator(".a2a-rows a", has_text=words).click()
        line = root.locator("#a2a-detail article", has_text=words)
        await line.get_by_role("button", name="Claim").click()
        await expect(line).to_contain_text("assigned to root")
        await line.get_by_label("Text").fill("You may")
        await axe(root)
        await line.get_by_role("button", name="Send the answer").click()
        await expect(root.locator(".messagelist")).to_be_visible()
        await expect(line).to_have_count(0)
        await open_task(root, task)
        await expect(state(root)).to_have_text("completed")
        await expect(root.locator("#a2a-tab")).to_contain_text("You may")

    async def test_is_answered_without_the_mouse(self, root: Page, host: BrowsedHost) -> None:
        words = uuid.uuid4().hex[:8]
        tasks = [(await say(host, "demo", f"ask {words} {n}?"))["id"] for n in range(3)]
        await root.goto("/admin/a2a_tasks/waiting/")
        asked = root.locator("#a2a-detail .a2a-ask")
        while not (await asked.inner_text()).startswith(words):
            before = await asked.inner_text()
            await root.keyboard.press("j")
            await expect(asked).not_to_have_text(before)
        for number in range(3):
            await expect(asked).to_have_text(f"{words} {number}?")
            await root.keyboard.press("e")
            await root.keyboard.type("Yes")
            await root.keyboard.press("Control+Enter")
            await expect(root.locator(".messagelist")).to_contain_text(tasks[number])


class TestTheOverview:
    async def test_shows_the_values_of_a_chart_under_the_pointer_and_a_chosen_range(
        self, root: Page, host: BrowsedHost
    ) -> None:
        await say(host, "demo", "echo chart")
        await root.goto("/admin/")
        plot = root.locator(".u-over").first
        box = await plot.bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        await root.mouse.move(box["x"] + box["width"] * 0.6, y)
        await expect(root.locator(".a2a-tip").first).to_contain_text("completed")
        await root.mouse.down()
        await root.mouse.move(box["x"] + box["width"] * 0.9, y, steps=4)
        await root.mouse.up()
        await expect(root.locator("[data-chart]").first).to_have_attribute("data-chosen", "1")
        await plot.dblclick()
        await expect(root.locator("[data-chart]").first).to_have_attribute("data-chosen", "")

    async def test_finds_anything_by_its_id_from_any_page_without_the_mouse(
        self, root: Page, host: BrowsedHost
    ) -> None:
        task = (await say(host, "demo", "echo find me"))["id"]
        await root.goto("/admin/a2a_tasks/worker/")
        await root.keyboard.press("Control+k")
        field = root.locator("dialog input[type=search]")
        await expect(field).to_be_focused()
        await axe(root)
        await root.keyboard.type(task)
        await expect(root.locator("dialog #a2a-found a").first).to_contain_text(task)
        await root.keyboard.press("Enter")
        await expect(root.locator("h1")).to_have_text("echo find me")


class TestTheAuditLog:
    async def test_is_verified_from_the_page(self, root: Page) -> None:
        await root.goto("/admin/a2a_tasks/auditentry/")
        await presentable(root, "audit")
        await root.get_by_role("button", name="Verify the log").click()
        await expect(root.locator("#a2a-proof")).to_contain_text("match the hash chain")
        await presentable(root, "audit-verified")


class TestEveryArea:
    async def test_is_presentable(self, root: Page, host: BrowsedHost) -> None:
        """The pages that no journey above rests on."""
        asked = await say(host, "demo", "ask Which size?")
        await root.goto("/admin/")
        await shot(root, "front")
        await open_task(root, asked["id"])
        await expect(state(root)).to_have_text("input-required")
        await presentable(root, "task-input-required")
        await root.get_by_role("link", name="Answer").click()
        await presentable(root, "answer")
        await root.go_back()
        await root.get_by_role("link", name="JSON", exact=True).click()
        await presentable(root, "json")
        for name, path in {
            "deliveries": "a2a_push/delivery/",
            "receivers": "a2a_push/receiver/",
            "webhooks": "a2a_push/pushconfig/",
            "attempts": "a2a_push/attempt/",
            "runs": "a2a_tasks/run/",
            "contexts": "a2a_tasks/context/",
            "grants": "a2a_tasks/grant/",
            "holds": "a2a_tasks/hold/",
            "retention": "a2a_tasks/tenantretention/",
            "app": "a2a_tasks/",
        }.items():
            await root.goto(f"/admin/{path}")
            await presentable(root, name)

    async def test_so_is_the_page_for_a_secret(self, root: Page, host: BrowsedHost) -> None:
        task = (await say(host, "demo", "secret password"))["id"]
        await open_task(root, task)
        await expect(state(root)).to_have_text("auth-required")
        await presentable(root, "task-auth-required")
        await root.goto("/admin/a2a_tasks/waiting/?kind=auth-required")
        await root.locator(".a2a-rows li", has=root.get_by_label(task)).locator("a").click()
        line = root.locator("#a2a-detail article", has_text=task)
        await line.get_by_role("button", name="Create a new link").click()
        await presentable(root, "fresh-link")
        await root.goto(await root.get_by_label("The link").input_value())
        await presentable(root, "handover")

    async def test_lists_fit_a_desk(self, root: Page, host: BrowsedHost, tmp_path: Path) -> None:
        """Nothing is beyond the edge at 1440 pixels, beside the sidebar and the filters."""
        async with partner() as hook:
            told = {"taskPushNotificationConfig": {"url": f"{hook.url}/{'long/' * 12}"}}
            task = (await say(host, "courier", f"Where is it? {tmp_path / 'it'}", **told))["id"]
            await open_task(root, task)
            await root.get_by_role("link", name="Webhooks", exact=True).click()
            await expect_reloaded(root, "#content", "503")
            await root.set_viewport_size({"width": 1440, "height": 900})
            hidden = {}
            for name in ("delivery", "receiver", "pushconfig", "attempt"):
                await root.goto(f"/admin/a2a_push/{name}/")
                await expect(root.locator("#result_list tbody tr")).not_to_have_count(0)
                await shot(root, f"fits-{name}")
                hidden[name] = await root.evaluate(BEYOND)
            for name in ("run", "context", "auditentry", "worker", "agentswitch", "apikey"):
                await root.goto(f"/admin/a2a_tasks/{name}/")
                await shot(root, f"fits-{name}")
                hidden[name] = await root.evaluate(BEYOND)
        assert {name: beyond for name, beyond in hidden.items() if beyond > 0} == {}
