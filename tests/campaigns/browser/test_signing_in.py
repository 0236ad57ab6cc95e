"""Staff signs in and finds the tasks."""

from __future__ import annotations

import httpx
from playwright.async_api import Page, expect

from tests.campaigns.browser.conftest import BrowsedHost, Visit
from tests.campaigns.browser.looks import presentable
from tests.campaigns.browser.people import PASSWORD

SEND = {
    "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "echo hello"}]},
}


async def test_the_operator_signs_in_and_sees_the_tasks(page: Page, host: BrowsedHost) -> None:
    async with httpx.AsyncClient(base_url=host.url) as client:
        answer = await client.post("/agents/demo/message:send", json=SEND)
    task = answer.json()["task"]["id"]
    await page.goto("/admin/a2a_tasks/task/")
    await presentable(page, "sign-in")
    await page.get_by_label("Username").fill(host.root.name)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.locator("#result_list")).to_contain_text(task[:8])
    await presentable(page, "tasks")


async def test_staff_of_a_tenant_does_not_see_the_others(visit: Visit, host: BrowsedHost) -> None:
    page = await visit(host.staff)
    await page.goto("/admin/a2a_tasks/task/")
    await expect(page.locator("#changelist")).to_contain_text("0 tasks")
