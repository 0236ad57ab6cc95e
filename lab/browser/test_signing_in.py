"""Staff signs in and finds the tasks."""

from __future__ import annotations

import httpx
import pytest
from django.db import connections
from playwright.async_api import Page, expect
from pytest_django.plugin import DjangoDbBlocker

from lab.browser.conftest import BrowsedHost, Visit
from lab.browser.looks import presentable
from lab.browser.people import PASSWORD, Person, operator

SEND = {
    "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "echo hello"}]},
}


@pytest.fixture
def newcomer(host: BrowsedHost, django_db_blocker: DjangoDbBlocker) -> Person:
    """An operator without a session: a first sign-in may renew the hash of the password, which ends the sessions before."""
    with django_db_blocker.unblock():
        person = operator("newcomer")
        connections.close_all()
    return person


async def test_the_operator_signs_in_and_sees_the_tasks(
    page: Page, host: BrowsedHost, newcomer: Person
) -> None:
    async with httpx.AsyncClient(base_url=host.url) as client:
        answer = await client.post("/agents/demo/message:send", json=SEND)
    assert answer.status_code == 200
    await page.goto("/admin/a2a_tasks/task/")
    await presentable(page, "sign-in")
    await page.get_by_label("Username").fill(newcomer.name)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.locator("#result_list")).to_contain_text("echo hello")
    await presentable(page, "tasks")


async def test_staff_of_a_tenant_does_not_see_the_others(visit: Visit, host: BrowsedHost) -> None:
    page = await visit(host.staff)
    await page.goto("/admin/a2a_tasks/task/")
    await expect(page.locator("#changelist")).to_contain_text("0 tasks")
