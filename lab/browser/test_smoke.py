"""The smoke in a browser: a message in the playground, and an operator who signs in and cancels a task."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from lab.browser.conftest import BrowsedHost
from lab.browser.test_operator import TASKS, open_task, state
from lab.browser.test_operator import say as send
from lab.browser.test_playground import LAST, becomes, enter, say

pytestmark = pytest.mark.quick_on("sqlite")


async def test_a_message_in_the_playground_is_answered(page: Page) -> None:
    await enter(page)
    await say(page, "chunks 10")
    await becomes(page, "completed")
    await expect(page.locator(LAST)).to_contain_text("#9;")


async def test_an_operator_signs_in_and_cancels_a_task(
    page: Page, host: BrowsedHost, tmp_path: Path
) -> None:
    task = (await send(host, "courier", f"Where is it? {tmp_path / 'nowhere'}"))["id"]
    await page.goto(TASKS)
    await page.get_by_label("Username").fill(host.root.name)
    await page.get_by_label("Password").fill(host.root.password)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.locator("#result_list")).to_contain_text("Where is it?")
    await open_task(page, task)
    await page.get_by_role("button", name="Cancel…").click()
    confirmed = page.locator(".a2a-confirm button")
    await confirmed.or_(page.locator(".a2a-canceled")).first.wait_for()
    if await confirmed.count():
        await confirmed.click()
    await expect(state(page)).to_have_text("canceled")
