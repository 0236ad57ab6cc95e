"""Whoever cancels, the API or an operator in the admin: the task is final and its agent is stopped at once."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.journeys.hosts import Host, host
from tests.journeys.trace import Trace
from tests.journeys.waiting import PATIENCE
from tests.journeys.wire import plain
from tests.processes import python

#: The heartbeat would find the loss after this long: an agent that stops earlier was told by a hint.
SELDOM = {"A2A_BEAT_SECONDS": "60", "A2A_LEASE_SECONDS": "180", "A2A_POLL_SECONDS": "60"}
PASSWORD = "of the operator"
#: Far less than that; a busy machine may take seconds to start a thread.
AT_ONCE = 15.0


@pytest.fixture(scope="module")
def running(emptied: None) -> Iterator[Host]:
    """A host with an operator."""
    create = ["-m", "django", "createsuperuser", "--no-input", "--username=operator"]
    about = {"DJANGO_SUPERUSER_PASSWORD": PASSWORD, "DJANGO_SUPERUSER_EMAIL": "o@example.com"}
    with python(create, about) as creation:
        creation.wait_for("created")
    with host(SELDOM) as made:
        yield made


@asynccontextmanager
async def operator(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """Sign in to the admin as a browser does."""
    async with httpx.AsyncClient(
        base_url=url, timeout=PATIENCE, trust_env=False, follow_redirects=True
    ) as browser:
        await browser.get("/admin/login/")
        form = {"username": "operator", "password": PASSWORD, "next": "/admin/"}
        page = await post(browser, "/admin/login/", form)
        assert page.url.path == "/admin/"
        yield browser


async def post(browser: httpx.AsyncClient, path: str, form: dict[str, str]) -> httpx.Response:
    """Post a form with the token of the page before."""
    token = browser.cookies["csrftoken"]
    page = await browser.post(path, data={**form, "csrfmiddlewaretoken": token})
    assert page.status_code == 200, page.text
    return page


@pytest.mark.parametrize("agent", ["witness", "thread-witness", "process-witness"])
class TestCancelling:
    async def test_by_the_api_stops_the_agent_at_once(
        self, running: Host, agent: str, tmp_path: Path
    ) -> None:
        trace = Trace(tmp_path / "trace")
        async with plain(running.here, agent) as here, plain(running.there, agent) as there:
            task = await here.start(str(trace.path))
            await trace.of("began")
            canceled = await there.cancel(task)
            at = time.time()
            assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
            assert await trace.of("ended") - at < AT_ONCE
            assert (await here.get(task))["status"]["state"] == "TASK_STATE_CANCELED"

    async def test_in_the_admin_stops_the_agent_at_once_and_ends_its_streams(
        self, running: Host, agent: str, tmp_path: Path
    ) -> None:
        trace = Trace(tmp_path / "trace")
        async with (
            plain(running.here, agent) as here,
            operator(running.there) as browser,
            here.stream(str(trace.path)) as stream,
        ):
            await stream.read(until=2)
            await trace.of("began")
            found = await browser.get("/admin/a2a_tasks/task/", params={"q": stream.task_id})
            (path,) = set(re.findall(r"/admin/a2a_tasks/task/\d+/change/", found.text))
            shown = await browser.get(path)
            assert stream.task_id in shown.text
            button = path.replace("change/", "cancel/")
            assert button in shown.text

            page = await post(browser, button, {})
            at = time.time()
            assert "Cancelled: 1." in page.text
            assert await trace.of("ended") - at < AT_ONCE
            last = (await stream.read())[-1].said
            assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
