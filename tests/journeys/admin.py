"""The admin of a running host, as a browser without scripts uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.journeys.waiting import PATIENCE
from tests.support.people import Person

__all__ = ["TASKS", "post", "signed_in"]

TASKS = "/admin/a2a_tasks/task/"


@asynccontextmanager
async def signed_in(url: str, person: Person) -> AsyncIterator[httpx.AsyncClient]:
    """Sign in by the form."""
    async with httpx.AsyncClient(
        base_url=url, timeout=PATIENCE, trust_env=False, follow_redirects=True
    ) as browser:
        await browser.get("/admin/login/")
        form = {"username": person.name, "password": person.password, "next": "/admin/"}
        page = await post(browser, "/admin/login/", form)
        assert page.url.path == "/admin/"
        yield browser


async def post(browser: httpx.AsyncClient, path: str, form: dict[str, str]) -> httpx.Response:
    """Post a form with the token of the page before."""
    token = browser.cookies["csrftoken"]
    page = await browser.post(path, data={**form, "csrfmiddlewaretoken": token})
    assert page.status_code == 200, page.text
    return page
