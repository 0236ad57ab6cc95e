"""The list of tasks in a real browser: what is stuck is near, many tasks are cancelled by the host, and the list lives."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone
from playwright.async_api import Page, expect
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.models import Context, Message, Run, RunStatus, Task
from a2a_tasks.protocol.values import Role, TaskState
from lab.browser.conftest import BrowsedHost, Visit
from lab.browser.looks import presentable
from lab.browser.test_operator import TASKS, act, say

EVIL = "<img src=x onerror=alert(1)>"


def make(count: int) -> str:
    """Make this many tasks that wait in a queue without workers, as the store would leave them; return their agent."""
    agent, now = f"gone-{uuid.uuid4().hex[:8]}", timezone.now()
    context = Context.objects.create(public_id=agent, agent=agent)
    about = {"agent": agent, "context": context, "state": TaskState.SUBMITTED, "last_event": 1}
    about |= {"status_at": now, "status_text": EVIL, "origin_dialect": "v10"}
    rows = [Task(public_id=f"{agent}-{number}", **about) for number in range(count)]
    tasks = Task.objects.bulk_create(rows)
    message = {"number": 1, "role": Role.USER, "body": "{}", "opening": EVIL}
    Message.objects.bulk_create(Message(task=task, **message) for task in tasks)
    run = {"input_number": 1, "queue": "crawl", "agent": agent, "status": RunStatus.QUEUED}
    due = now - timedelta(hours=1)
    Run.objects.bulk_create(Run(task=task, due_at=due, **run) for task in tasks)
    return agent


@pytest.fixture
def gone(
    request: pytest.FixtureRequest, host: BrowsedHost, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """The agent of as many tasks as the test says."""
    with django_db_blocker.unblock():
        agent = make(request.param)
        connections.close_all()
    yield agent
    with django_db_blocker.unblock():
        Task.objects.filter(agent=agent).delete()
        connections.close_all()


@pytest.mark.parametrize("gone", [3], indirect=True)
async def test_stuck_tasks_are_two_clicks_away(root: Page, gone: str) -> None:
    await root.goto("/admin/")
    await root.locator("#nav-sidebar").get_by_role("link", name="Tasks", exact=True).click()
    await root.get_by_role("link", name=re.compile("^Stuck")).click()
    mine = root.locator("#result_list tbody tr", has_text=gone)
    await expect(mine).to_have_count(3)
    await expect(mine.first).to_contain_text("no worker for the queue crawl")
    await expect(mine.first).to_contain_text(EVIL)
    await presentable(root, "tasks-stuck")
    await mine.first.locator(".field-took").click(force=True)  # the whole row is the link
    await root.wait_for_url("**/change/*")


@pytest.mark.parametrize("gone", [1_000], indirect=True)
async def test_a_thousand_tasks_are_cancelled_with_the_tab_closed(
    root: Page, visit: Visit, host: BrowsedHost, gone: str
) -> None:
    await root.goto(f"{TASKS}?agent={gone}")
    await root.locator("#action-toggle").check()
    await root.get_by_role("button", name="Select all tasks of this list").click()
    await act(root, "Cancel selected tasks …")
    await root.get_by_role("button", name="Cancel (1,000 tasks)").click()
    await expect(root.locator(".a2a-job")).to_contain_text("of 1,000 tasks")
    place = root.url
    await root.close()
    later = await visit(host.root)
    await later.goto(place)
    await expect(later.locator(".a2a-job")).to_contain_text("1,000 of 1,000 tasks", timeout=300_000)
    await later.goto(f"{TASKS}?agent={gone}&state=unfinished")
    await expect(later.locator("#result_list tbody tr")).to_have_count(0)


async def test_new_tasks_are_told_and_a_span_is_dragged_over(root: Page, host: BrowsedHost) -> None:
    words = f"live{uuid.uuid4().hex[:8]}"
    for _ in range(2):
        await say(host, "demo", f"echo {words}")
    await root.goto(f"{TASKS}?q={words}")
    await say(host, "demo", f"echo {words}")
    await root.locator("#a2a-news").get_by_role("link", name="1 new").click()
    await expect(root.locator("#result_list tbody tr")).to_have_count(3)
    box = await root.locator(".a2a-strip").bounding_box()
    assert box is not None
    await root.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 5)
    await root.mouse.down()
    await root.mouse.move(box["x"] + box["width"], box["y"] + 5, steps=5)
    await root.mouse.up()
    await root.wait_for_url("**since=*")
    await expect(root.locator(".a2a-chips")).to_contain_text("since")
    await expect(root.locator("#result_list tbody tr")).to_have_count(1)
