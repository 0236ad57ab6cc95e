"""A browser visits every page of the admin: none breaks its policy, and its scripts work under it."""

from __future__ import annotations

import pytest
from playwright.async_api import ConsoleMessage, Page
from pytest_django.live_server_helper import LiveServer

from tests.integration.console.admin.policed import operator, places
from tests.support.chromium import visiting

__all__ = ["operator", "places"]
pytestmark = pytest.mark.chromium

#: What a browser says of a page that is not for anybody, such as the form of a table that nobody adds to.
REFUSED = "error: Failed to load resource: the server responded with a status of 40"


def _grave(page: Page, message: ConsoleMessage) -> list[str]:
    grave = message.type in {"error", "warning"}
    return [f"{page.url} {message.type}: {message.text}"] if grave else []


async def test_no_page_breaks_its_policy_and_everything_works(
    operator: None, live_server: LiveServer, places: list[str]
) -> None:
    said: list[str] = []
    async with visiting() as page:
        page.on("console", lambda message: said.extend(_grave(page, message)))
        page.on("pageerror", lambda fault: said.append(f"{page.url}: {fault}"))
        await page.goto(f"{live_server.url}/admin/")
        await page.fill("#id_username", "root")
        await page.fill("#id_password", "correct horse")
        await page.click("[type=submit]")
        assert await page.inner_text("#content h1") == "Overview"
        for place in places:
            await page.goto(live_server.url + place)
        assert [line for line in said if REFUSED not in line] == []
        # The scripts of the admin do their work under it.
        await page.goto(f"{live_server.url}/admin/a2a_tasks/apikey/add/")
        await page.click("#calendarlink0")
        assert await page.is_visible("#calendarbox0")
        await page.click("#calendarbox0 .calendar td a >> nth=0")
        assert await page.input_value("#id_expires_at_0")
        await page.goto(f"{live_server.url}/admin/auth/group/add/")
        await page.click("#id_permissions_add_all, .selector-chooseall")
        await page.goto(f"{live_server.url}/admin/a2a_tasks/task/")
        await page.click("#action-toggle")
        assert await page.is_checked("input.action-select >> nth=0")
        badge = "getComputedStyle(document.querySelector('.a2a-badge'), '::before').borderRadius"
        assert await page.evaluate(badge) == "50%"
        assert [line for line in said if "Content Security Policy" in line] == []
