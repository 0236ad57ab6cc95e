"""A browser, a host, and people. Every test here is a coroutine on the session's one loop, as its browser is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from django.db import connections
from playwright.async_api import Browser, Page, expect
from pytest_django.plugin import DjangoDbBlocker

from lab.browser import people
from lab.browser.faults import Faults
from lab.browser.looks import LOOKS
from tests import backend
from tests.journeys import hosts
from tests.journeys.fixtures import emptied, pytest_runtest_makereport
from tests.journeys.waiting import PATIENCE
from tests.support import chromium

__all__ = ["emptied", "pytest_runtest_makereport"]
HERE = Path(__file__).parent
#: There is a playground, webhooks may go to this machine and are given up soon, and what a killed process held is taken over soon.
ENVIRON = {
    **hosts.QUICK,
    "A2A_PLAYGROUND": "1",
    "A2A_WEBHOOK_ALLOW_HTTP": "1",
    "A2A_WEBHOOK_ALLOW_PRIVATE": "1",
    # Three days of attempts in a second.
    "A2A_WEBHOOK_TIME_SCALE": "0.000004",
}


# Generous: reached only when something is broken.
expect.set_options(timeout=PATIENCE * 1000)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here: it needs a browser, and the browser one loop."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("chromium")
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@dataclass(frozen=True)
class BrowsedHost:
    """A running host of this backend with two people who may sign in, and sessions of theirs."""

    url: str
    root: people.Person
    staff: people.Person
    sessions: dict[people.Person, str]


@pytest.fixture(scope="package")
def host(emptied: None, django_db_blocker: DjangoDbBlocker) -> Iterator[BrowsedHost]:
    """One host for all tests here, which leave each other's rows alone; emptied when its processes have ended."""
    with django_db_blocker.unblock():
        root, staff = people.operator(), people.staff()
        sessions = {person: people.signed_in(person) for person in (root, staff)}
        connections.close_all()
    with ExitStack() as running:
        if backend.backend() == backend.STACK:
            others = hosts.worker(environ=ENVIRON), hosts.pusher(environ=ENVIRON)
            hosts.together(running, *others)
        web = running.enter_context(hosts.web(ENVIRON))
        yield BrowsedHost(web.url, root, staff, sessions)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One for all; every page has a profile of its own."""
    async with chromium.running() as started:
        yield started


@pytest.fixture
def faults(host: BrowsedHost) -> Iterator[Faults]:
    """What browsers said against our pages: if anything is left that was not expected, the test fails."""
    heard = Faults(host.url)
    yield heard
    assert heard.left == []


#: Open a page at `/` of the host, as this person or as nobody; options are those of a browser's context.
Visit = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def visit(host: BrowsedHost, browser: Browser, faults: Faults) -> AsyncIterator[Visit]:
    """For tests with several people, or a browser with something special."""
    async with AsyncExitStack() as opened:

        async def new(person: people.Person | None = None, **options: Any) -> Page:
            desk = {"width": LOOKS[0].width, "height": LOOKS[0].height}
            options = {"base_url": host.url, "viewport": desk, **options}
            context = await opened.enter_async_context(await browser.new_context(**options))
            faults.listen(context)
            if person is not None:
                await people.enter(context, host.url, host.sessions[person])
            return await context.new_page()

        yield new


@pytest_asyncio.fixture(loop_scope="session")
async def page(visit: Visit) -> Page:
    """A page of a browser that was never anywhere."""
    return await visit()


@pytest_asyncio.fixture(loop_scope="session")
async def root(visit: Visit, host: BrowsedHost) -> Page:
    """A page of the operator's, signed in."""
    return await visit(host.root)


@pytest_asyncio.fixture(loop_scope="session")
async def staff(visit: Visit, host: BrowsedHost) -> Page:
    """A page of the tenant's member of staff, signed in."""
    return await visit(host.staff)
