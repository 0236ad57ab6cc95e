"""The front page: statistics for who may view tasks, cut to their tenants, each leading to the list it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from a2a_console.statistics import reports
from a2a_console.statistics.counts import TooMany
from a2a_push.models import Delivery, DeliveryStatus
from a2a_tasks.audit import Action
from a2a_tasks.models import Event, Run, RunStatus, Task, Worker
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, workers
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_run, make_task, said
from tests.support.console.api.world import person
from tests.support.ended_tasks import make_ended
from tests.support.push.rows import make_config, make_delivery
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"
TILE = re.compile(r'<a href="([^"]+)">\s*<span class="a2a-value">([\d,+]+)</span>')
RECEIVER = re.compile(r'<a href="([^"]+)" title="https://hooks.example.com/a2a">')
LINE = re.compile(
    r'<a href="([^"]+\?(?:agent|tenant)=[^"]+)" title="[^"]*">[^<]*</a>\s*</th>\s*<td[^>]*>\s*([\d,]+)'
)


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    reports.forget()
    yield
    reports.forget()


def busy() -> None:
    """Something for every tile."""
    add_run(make_task("queued"))
    add_run(make_task("running", state=TaskState.WORKING), RunStatus.RUNNING)
    make_task("asks", state=TaskState.INPUT_REQUIRED)
    make_task("asks-more", state=TaskState.AUTH_REQUIRED)
    make_ended(TaskState.FAILED)
    for _ in range(3):
        make_ended()
    make_ended(TaskState.FAILED, ago=timedelta(hours=3))
    config = make_config(make_ended())
    make_delivery(config)
    for ago in (timedelta(), timedelta(hours=3)):
        make_delivery(config, DeliveryStatus.DELIVERED, settled_at=timezone.now() - ago)
        make_delivery(config, DeliveryStatus.DEAD, settled_at=timezone.now() - ago)


def beat(name: str, **said: Any) -> None:
    kind = workers.WorkerKind.WORKER
    workers.beat(
        workers.Beat(name=name, kind=kind, host="box", pid=1, started_at=timezone.now(), **said)
    )


def listed(client: Client, url: str) -> int:
    """How many rows there are where a number leads to."""
    page = client.get(unescape(url))
    assert page.status_code == 200, url
    told = page.context
    return int(told["cl"].result_count if "cl" in told else told["alive"])


def wait_long(name: str, **run: Any) -> Task:
    """A task whose run has been due for a minute."""
    row = add_run(make_task(name), agent="demo", **run)
    Run.objects.filter(pk=row.pk).update(due_at=timezone.now() - timedelta(minutes=1))
    return row.task


def fail(name: str, text: str) -> None:
    """A task that failed with a message."""
    make_task(name, state=TaskState.FAILED)
    Task.objects.filter(public_id=name).update(status_message=json.dumps(said(text)))


def notices(client: Client) -> list[str]:
    """What needs attention."""
    return [one.sentence for one, _ in client.get("/admin/").context["page"].notices]


class TestTheFrontPage:
    def test_has_what_needs_attention_above_the_statistics(self, admin_client: Client) -> None:
        busy()
        page = admin_client.get("/admin/").text
        assert page.index("Needs attention") < page.index("Runs under way")
        assert "Tasks that ended" in page
        assert "hooks.example.com" in page
        assert "Endpoints" in page

    @pytest.mark.parametrize("period", [thorough("hour"), "day", thorough("week")])
    def test_leads_from_each_number_to_the_list_that_has_as_many(
        self, admin_client: Client, period: str
    ) -> None:
        busy()
        make_ended(TaskState.FAILED, ago=timedelta(hours=30))
        tiles = TILE.findall(admin_client.get(f"/admin/?period={period}").text)
        assert len(tiles) == 11
        for url, number in tiles:
            assert listed(admin_client, url) == int(number), url

    @pytest.mark.parametrize("period", [thorough("hour"), "day", thorough("week")])
    def test_leads_from_agents_and_tenants_to_the_tasks_that_ended_of_each(
        self, admin_client: Client, period: str
    ) -> None:
        days = [timedelta(hours=hours) for hours in (0, 0.6, 3, 30, 200)]
        for tenant in ("acme", "acme/berlin", "<b>&?=+ #1", ""):
            for agent in ("demo", "tables"):
                for number, ago in enumerate(days):
                    state = TaskState.FAILED if number % 2 else TaskState.COMPLETED
                    make_ended(state, ago=ago, tenant=tenant, agent=agent)
        make_task("goes-on", agent="demo", state=TaskState.WORKING)
        lines = LINE.findall(admin_client.get(f"/admin/?period={period}").text)
        assert len(lines) == 5  # two agents, three tenants with a name
        for url, number in lines:
            assert 2 <= listed(admin_client, url) == int(number), url

    def test_leads_from_a_receiver_to_its_deliveries(self, admin_client: Client) -> None:
        busy()
        (url,) = RECEIVER.findall(admin_client.get("/admin/").text)
        assert listed(admin_client, url) == Delivery.objects.count()

    def test_says_that_too_much_ended_and_shows_the_rest(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def too_many(*_: Any) -> Any:
            raise TooMany

        busy()
        monkeypatch.setattr(reports, "count_ended", too_many)
        page = admin_client.get("/admin/?period=week").text
        assert "Choose a shorter period" in page
        assert "Runs queued" in page
        assert "Ended in the past 7 days" not in page

    def test_tells_nothing_of_processes_that_say_nothing(
        self, admin_client: Client, settings: Settings
    ) -> None:
        settings.A2A_PRESENCE_SECONDS = 0.0
        assert "Processes alive" not in admin_client.get("/admin/").text

    def test_tells_who_does_not_see_all_tenants_nothing_of_processes(self) -> None:
        rights = ("a2a_tasks.view_task", "a2a_tasks.view_worker")
        page = person(*rights, tenants=("acme",)).get("/admin/").text
        assert "Processes alive" not in page

    def test_has_the_tables_for_who_may_not_view_tasks(self, sign_in: SignIn) -> None:
        client = sign_in("view_run")
        page = client.get("/admin/")
        assert page.status_code == 200
        assert "a2a-statistics" not in page.text
        assert "/admin/a2a_tasks/run/" in page.text

    def test_links_to_nothing_that_the_user_may_not_view(self, sign_in: SignIn) -> None:
        busy()
        page = sign_in("view_task").get("/admin/").text
        assert "/admin/a2a_tasks/run/" not in page
        assert "Deliveries pending" not in page
        assert "hooks.example.com" not in page

    def test_counts_nothing_of_other_tenants(self) -> None:
        make_ended(TaskState.FAILED, tenant="acme", agent="of-acme")
        make_ended(tenant="other", agent="of-other")
        add_run(Task.objects.get(agent="of-other"), queue="of-others")
        page = person("a2a_tasks.view_task", tenants=("acme",)).get("/admin/").text
        assert "of-acme" in page
        assert "of-other" not in page

    def test_shows_names_as_text(self, admin_client: Client) -> None:
        make_ended(tenant=SCRIPT)
        page = admin_client.get("/admin/").text
        assert SCRIPT not in page
        assert "&lt;script&gt;" in page

    def test_takes_any_period_for_the_hour_that_it_does_not_know(
        self, admin_client: Client
    ) -> None:
        assert "Ended in the past hour" in admin_client.get("/admin/?period=%00").text

    def test_asks_as_much_of_the_database_however_much_there_is(self, admin_client: Client) -> None:
        def asked() -> int:
            reports.forget()
            with CaptureQueriesContext(connection) as queries:
                assert admin_client.get("/admin/").status_code == 200
            return len(queries)

        busy()
        before = asked()
        for number in range(30):
            make_ended(agent=f"agent-{number}", tenant=f"tenant-{number}")
            add_run(make_task(f"more-{number}"))
        assert asked() == before <= 37  # one for the number beside *Inbox*


@pytest.mark.usefixtures("empty_audit_log")  # it may have credentials that were refused
class TestWhatNeedsAttention:
    def test_is_nothing_while_all_is_well(self, admin_client: Client) -> None:
        make_ended()
        beat("box:1", queues=("agents",))
        assert "All is well" in admin_client.get("/admin/").text

    def test_names_a_queue_that_no_worker_serves_and_leads_to_its_tasks(
        self, admin_client: Client
    ) -> None:
        beat("box:1", queues=("agents",), agents={"demo": "1.0.0"})
        wait_long("served")
        assert notices(admin_client) == []
        first = wait_long("first", queue="crawl")
        page = admin_client.get("/admin/").text
        assert "1 task waits: no worker for the queue crawl." in page
        assert f"/admin/a2a_tasks/task/{first.pk}/change/" in page
        wait_long("second", queue="crawl")
        assert notices(admin_client) == ["2 tasks wait: no worker for the queue crawl."]
        page = admin_client.get("/admin/").text
        assert listed(admin_client, "/admin/a2a_tasks/task/?stuck=no-worker") == 2
        assert "/admin/a2a_tasks/task/?stuck=no-worker" in page
        beat("box:2", queues=("crawl",), agents={"demo": "1.0.0"}, draining=True)
        assert len(notices(admin_client)) == 1
        beat("box:2", queues=("crawl",), agents={"demo": "1.0.0"})
        assert notices(admin_client) == []

    def test_groups_tasks_that_failed_alike_whatever_their_numbers(
        self, admin_client: Client
    ) -> None:
        beat("box:1", queues=("agents",))
        for number in (5, 1724):
            fail(f"bad-{number}", f"{SCRIPT} invoice {number}")
        fail("other", "no such host")
        assert notices(admin_client) == [
            f"2 tasks of demo failed alike: {SCRIPT} invoice 1724",
            "1 task of demo failed: no such host",
        ]
        assert SCRIPT not in admin_client.get("/admin/").text

    def test_names_runs_whose_agents_say_nothing_and_runs_in_quarantine(
        self, admin_client: Client
    ) -> None:
        beat("box:1", queues=("agents",), agents={"demo": "1.0.0"})
        add_run(make_task("silent", state=TaskState.WORKING), RunStatus.RUNNING)
        long_ago, ends = (timezone.now() + timedelta(minutes=m) for m in (-7, 7))
        Event.objects.update(created_at=long_ago)
        Run.objects.update(started_at=long_ago, lease_until=ends, worker="box:1")
        wait_long("suspect")
        Run.objects.filter(task__public_id="suspect").update(shared_deaths=2)
        assert notices(admin_client) == [
            "1 task of demo said nothing for 5 minutes.",
            "1 task of demo in quarantine: workers died with them.",
        ]

    def test_names_processes_that_died_receivers_that_lost_webhooks_and_who_waits(
        self, admin_client: Client
    ) -> None:
        beat("box:1", queues=("agents",))
        beat("box:2", queues=("other",))
        ago = timezone.now() - timedelta(minutes=4)
        Worker.objects.filter(name="box:2").update(seen_at=ago, started_at=ago - timedelta(days=1))
        make_delivery(make_config(make_ended()), DeliveryStatus.DEAD, settled_at=timezone.now())
        make_task("asks", state=TaskState.INPUT_REQUIRED)
        dead, lost, asks = notices(admin_client)
        assert dead.startswith("The worker box:2 has sent no heartbeat for 4 min")
        assert lost.startswith("1 webhook for https://hooks.example.com/a2a got lost")
        assert asks.startswith("1 task waits for people")

    def test_counts_refused_credentials_and_names_the_newest(self, admin_client: Client) -> None:
        beat("box:1", queues=("agents",))
        known = {"address": "10.0.0.1", "why": "no credentials", "count": 9}
        audit.note(Action.ACCESS_REFUSED, detail=known)
        assert notices(admin_client) == []
        for count in (1, 3):
            about = {"address": f"10.0.0.{count}", "why": "an unknown API key", "count": count}
            audit.note(Action.ACCESS_REFUSED, detail=about)
        audit.note(Action.ACCESS_REFUSED, detail=known)
        audit.note(Action.ACCESS_DENIED, detail=known)
        assert notices(admin_client) == [
            "4 requests with refused credentials in the last hour, the newest from 10.0.0.3"
            " (an unknown API key). Clients of MCP go on without tools then."
        ]
        page = admin_client.get("/admin/").text
        assert "/admin/a2a_tasks/auditentry/?about=access&amp;outcome=refused" in page
        assert notices(person("a2a_tasks.view_task", tenants=("acme",))) == []

    def test_is_that_of_the_tenants_of_the_user_alone(self) -> None:
        beat("box:1", queues=("agents",))
        make_ended(TaskState.FAILED, tenant="other")
        add_run(Task.objects.get(), queue="crawl")
        Run.objects.update(due_at=timezone.now() - timedelta(minutes=1))
        client = person("a2a_tasks.view_task", "a2a_tasks.view_worker", tenants=("acme",))
        assert notices(client) == []
