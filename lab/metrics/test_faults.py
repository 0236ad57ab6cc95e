"""A healthy host fills every panel and raises no alert; each fault raises its own, which ends with the fault."""

from __future__ import annotations

import json
import math
import re
import signal
import time
from typing import Any

import pytest

from lab.faultlab.private import eventually
from lab.metrics.agents_app.agents import CRASHES
from lab.metrics.lab import PATIENCE, Lab
from lab.metrics.pictures import draw
from lab.metrics.prometheus import WINDOW
from tests import ROOT
from tests.support import chromium
from tests.support.prometheus import RULES
from tests.support.proxy import Behaviour

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.backend("stack"),
    pytest.mark.timeout(300),
]
#: The alerts that a machine may raise which is too busy with other things.
BUSY = {"A2AEventLoopLags", "A2ARequestsSlow"}
DASHBOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "deploy" / "grafana").glob("*.json"))
}


def ask(lab: Lab, query: str) -> list[Any]:
    """The lines that a panel shows of the whole campaign."""
    filled = query.replace("$__rate_interval", f"{WINDOW}s").replace("$agent", ".*")
    return lab.prometheus.query(filled, lab.begun, time.time())


def shows(lab: Lab, query: str) -> bool:
    """Does a panel show a number for this query?"""
    values = (float(value) for line in ask(lab, query) for _, value in line["values"])
    return any(math.isfinite(value) for value in values)


def empty(lab: Lab) -> list[str]:
    """The queries of all panels that show nothing."""
    panels = [panel for each in DASHBOARDS.values() for panel in each["panels"]]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    return [query for query in queries if not shows(lab, query)]


def test_a_healthy_host_fills_every_panel_and_raises_no_alert(lab: Lab) -> None:
    eventually(lambda: not empty(lab), PATIENCE, "all panels")
    fired = {line["metric"]["alertname"] for line in ask(lab, 'ALERTS{alertstate="firing"}')}
    assert fired <= BUSY


class TestItsAlertIsRaised:
    def test_by_a_question_that_nobody_answers(self, lab: Lab) -> None:
        question = lab.send("demo", "ask")
        lab.fires("A2APeopleAreAwaited")
        lab.send("demo", "yes", task=question)
        lab.recovers("A2APeopleAreAwaited")

    def test_by_an_agent_that_fails(self, lab: Lab) -> None:
        lab.fires("A2ARunsFail", meanwhile=lambda: lab.send("demo", "fail"))

    def test_by_an_agent_whose_process_dies(self, lab: Lab) -> None:
        for _ in range(2):
            lab.send("fragile", f"die {CRASHES} times")
        lab.fires("A2ARunsCrash")

    def test_by_an_agent_that_holds_the_loop_again_and_again(self, lab: Lab) -> None:
        lab.send("holder", "20 0.8")
        lab.fires("A2AEventLoopLags")

    def test_by_an_agent_that_holds_the_loop_for_long(self, lab: Lab) -> None:
        lab.send("holder", "1 30")
        lab.fires("A2AEventLoopStands")
        lab.recovers("A2AEventLoopStands", "A2AEventLoopLags", "A2AQueueStandsStill", "A2ARunsFail")

    def test_by_a_worker_that_was_killed(self, lab: Lab) -> None:
        lab.victims.kill()
        lab.send("victim", "do you live?")
        alerts = ("A2AProcessDown", "A2AQueueWithoutWorkers", "A2AQueueStandsStill")
        lab.fires(*alerts)
        lab.start_victims()
        lab.recovers(*alerts)

    def test_by_a_slow_database(self, lab: Lab) -> None:
        lab.way.behave(Behaviour(latency=1.2))
        alerts = ("A2ARequestsSlow", "A2AGaugesMissing")
        lab.fires(*alerts, meanwhile=lambda: lab.get(there=True))

    def test_by_a_database_that_is_away(self, lab: Lab) -> None:
        lab.way.behave(Behaviour(refusing=True, reset_every=0.1))
        alerts = ("A2ADatabaseAway", "A2ARequestsFail")
        lab.fires(*alerts, meanwhile=lambda: lab.get(there=True))
        lab.way.behave()
        lab.recovers(*alerts, "A2ARequestsSlow", "A2AGaugesMissing")

    def test_by_a_pusher_that_hangs(self, lab: Lab) -> None:
        lab.pusher.process.send_signal(signal.SIGSTOP)
        lab.send("spender", "spend", hook="/ok")
        lab.fires("A2AWebhooksLate", "A2AProcessDown")
        lab.pusher.kill()

    def test_by_a_pusher_whose_proxy_is_away(self, lab: Lab) -> None:
        lost = lab.start_pusher(2, A2A_WEBHOOK_PROXY="http://127.0.0.1:1")
        lab.fires("A2AWebhooksOfThisHostFail")
        lost.kill()
        lab.start_pusher(3)
        lab.recovers("A2AWebhooksOfThisHostFail", "A2AWebhooksLate", "A2AProcessDown")

    def test_by_a_receiver_that_fails(self, lab: Lab) -> None:
        for _ in range(10):
            lab.send("demo", "echo hi", hook="/fails")
        lab.fires("A2AReceiversBlocked")

    def test_and_there_is_no_other_alert(self, lab: Lab) -> None:
        assert lab.fired == set(re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8")))


@pytest.mark.chromium
async def test_pictures_of_the_dashboards_are_kept(lab: Lab) -> None:
    async with chromium.visiting() as page:
        for name, dashboard in DASHBOARDS.items():
            await page.set_viewport_size({"width": 1280, "height": 400})
            await page.set_content(draw(dashboard, lambda query: ask(lab, query)))
            chromium.PICTURES.mkdir(parents=True, exist_ok=True)
            path = chromium.PICTURES / f"dashboard_{name}.png"
            await page.screenshot(path=path, full_page=True)
