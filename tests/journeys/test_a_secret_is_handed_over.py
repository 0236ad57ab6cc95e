"""An agent asks for a secret, somebody hands it over on the page, a process dies with it at work: it is used, and found nowhere."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from django.apps import apps
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.models import HandedSecret
from tests import backend
from tests.chromium import visiting
from tests.journeys.hosts import QUICK, RUNNING, Web, web, worker
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import Plain, plain
from tests.processes import Child

AUTH, WORKING, DONE = "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"
HANDOVER = "urn:a2a-host:handover"
SECRET = "canary-9f3b-e1c7-handed-over"
STACK = backend.backend() == backend.STACK


def link_in(task: dict[str, Any]) -> str:
    """The path of the page that the agent's message names."""
    url = task["status"]["message"]["metadata"][HANDOVER]["url"]
    assert isinstance(url, str)
    return url[url.index("/handover/") :]


async def has_it(client: Plain, task: str) -> None:
    """Wait until the agent says that it has the secret."""

    async def said() -> bool:
        found = await client.get(task)
        return "I have it" in str(found["status"].get("message"))

    await eventually(said, "the agent having the secret")


def stored(blocker: DjangoDbBlocker) -> str:
    """All rows of all tables."""
    with blocker.unblock():
        try:
            return str([list(model._base_manager.values()) for model in apps.get_models()])
        finally:
            connections.close_all()


def sealed(blocker: DjangoDbBlocker) -> bool:
    """Is a secret still there?"""
    with blocker.unblock():
        try:
            return HandedSecret.objects.exclude(sealed="").exists()
        finally:
            connections.close_all()


def logged() -> str:
    """What all processes of the journey have logged."""
    return "\n".join(child.log for child in RUNNING.values())


class Site:
    """A host whose agents' process can be killed: a worker of the stack, or the one process of the embedded host."""

    def __init__(self, running: ExitStack) -> None:
        self._running, self._number = running, 0
        self.web: Web = running.enter_context(web(QUICK))
        self._carrier: Child = self._begin()

    def _begin(self) -> Child:
        self._number += 1
        if STACK:
            return self._running.enter_context(worker(self._number, QUICK))
        return self.web.process

    def kill_and_replace(self) -> None:
        """Kill what carries the agent, and start another one."""
        self._carrier.kill()
        if not STACK:
            self.web = self._running.enter_context(web(QUICK))
        self._carrier = self._begin()


async def test_a_secret_outlives_the_process_that_had_it_and_is_nowhere_else(
    django_db_blocker: DjangoDbBlocker,
) -> None:
    with ExitStack() as running:
        site = Site(running)
        async with plain(site.web.url, "demo") as client:
            task = await client.start("secret token 2")
            page = link_in(await client.until(task, AUTH))
            async with httpx.AsyncClient(base_url=site.web.url, trust_env=False) as browser:
                form = await browser.get(page)
                assert form.status_code == 200
                said = {
                    "token": page.rpartition("/")[2],
                    "csrfmiddlewaretoken": browser.cookies["csrftoken"],
                    "secret-0": SECRET,
                }
                answer = await browser.post("/handover/", data=said, timeout=PATIENCE)
                assert (answer.status_code, SECRET in answer.text) == (200, False)
                assert (await browser.get(page)).status_code == 404
            await has_it(client, task)
        site.kill_and_replace()
        async with plain(site.web.url, "demo") as client:
            ended = await client.until(task, DONE)
            log = await client.log(task)
        artifact = ended["artifacts"][-1]["parts"]
        assert artifact == [{"text": f"token has {len(SECRET)} characters"}]
        assert SECRET not in str(ended) + str(log)

        async def wiped() -> bool:
            return not await asyncio.to_thread(sealed, django_db_blocker)

        await eventually(wiped, "the secret being wiped")
    for place in (await asyncio.to_thread(stored, django_db_blocker), logged()):
        assert SECRET not in place


@pytest.mark.chromium
async def test_a_person_hands_it_over_with_a_browser() -> None:
    with ExitStack() as running:
        site = Site(running)
        async with plain(site.web.url, "demo") as client:
            task = await client.start("secret passphrase")
            page = link_in(await client.until(task, AUTH))
            async with visiting() as tab:
                await tab.goto(site.web.url + page)
                assert await tab.title() == "Hand over a secret"
                await tab.get_by_label("passphrase", exact=True).fill(SECRET)
                await tab.get_by_role("button", name="Hand over").click()
                await tab.get_by_role("heading", name="Handed over").wait_for()
                await tab.goto(site.web.url + page)
                await tab.get_by_role("heading", name="This link opens nothing").wait_for()
            ended = await client.until(task, DONE)
    artifact = ended["artifacts"][-1]["parts"]
    assert artifact == [{"text": f"passphrase has {len(SECRET)} characters"}]
