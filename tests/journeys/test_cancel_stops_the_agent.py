"""Whoever cancels, the API or an operator in the admin: the task is final and its agent is stopped at once.

A heartbeat would find the loss after an hour: an agent that stops while a test waits was told by a hint.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.journeys.admin import TASKS, post, signed_in
from tests.journeys.hosts import Host
from tests.journeys.trace import Trace
from tests.journeys.wire import plain
from tests.support.people import Person


@pytest.mark.parametrize("agent", ["witness", "thread-witness", "process-witness"])
class TestCancelling:
    async def test_by_the_api_stops_the_agent_at_once(
        self, site: Host, agent: str, tmp_path: Path
    ) -> None:
        trace = Trace(tmp_path / "trace")
        async with plain(site.here, agent) as here, plain(site.there, agent) as there:
            task = await here.start(str(trace.path))
            await trace.of("began")
            canceled = await there.cancel(task)
            assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
            await trace.of("ended")
            assert (await here.get(task))["status"]["state"] == "TASK_STATE_CANCELED"

    @pytest.mark.in_turn("agent", share=3)
    async def test_in_the_admin_stops_the_agent_at_once_and_ends_its_streams(
        self, site: Host, operator: Person, agent: str, tmp_path: Path
    ) -> None:
        trace = Trace(tmp_path / "trace")
        async with (
            plain(site.here, agent) as here,
            signed_in(site.there, operator) as browser,
            here.stream(str(trace.path)) as stream,
        ):
            await stream.read(until=2)
            await trace.of("began")
            found = await browser.get(TASKS, params={"q": stream.task_id})
            (path,) = set(re.findall(rf"{TASKS}\d+/change/", found.text))
            shown = await browser.get(path)
            assert stream.task_id in shown.text
            button = path.replace("change/", "cancel/")
            assert button in shown.text

            page = await post(browser, button, {"confirmed": "yes"})
            assert "The task is canceled." in page.text
            await trace.of("ended")
            last = (await stream.read())[-1].said
            assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
