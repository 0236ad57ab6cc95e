"""The front page: statistics for who may view tasks, cut to their tenants, each leading to the list it counts."""

from __future__ import annotations

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
from a2a_tasks.models import RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import workers
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_run, make_task
from tests.support.console.api.world import person
from tests.support.ended_tasks import make_ended
from tests.support.push.rows import make_config, make_delivery
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"
TILE = re.compile(r'<a href="([^"]+)">\s*<span class="a2a-value">([\d,+]+)</span>')
RECEIVER = re.compile(r'<a href="([^"]+)" title="https://hooks.example.com/a2a">')
LINE = re.compile(r'<a href="([^"]+)">[^<]*</a>\s*</th>\s*<td[^>]*>\s*([\d,]+)')


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


def processes(client: Client) -> tuple[int, bool]:
    """How many are alive, and whether that is bad."""
    tiles = client.get("/admin/statistics/").context["statistics"].tiles
    (number,) = [tile.number for tile in tiles if tile.number.name == "workers"]
    return number.value, number.is_bad


class TestTheFrontPage:
    def test_has_the_statistics_above_the_stock_page(self, admin_client: Client) -> None:
        busy()
        page = admin_client.get("/admin/").text
        assert page.index("Runs under way") < page.index("Recent actions")
        assert "Tasks that ended" in page
        assert "hooks.example.com" in page
        assert "Webhooks" in page

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

    def test_tells_how_many_processes_are_alive_and_whether_any_takes_what_is_due(
        self, admin_client: Client
    ) -> None:
        beat("box:1")
        assert processes(admin_client) == (1, False)
        add_run(make_task("queued"))
        assert processes(admin_client) == (1, True)
        beat("box:2", queues=("agents",))
        assert processes(admin_client) == (2, False)
        beat("box:2", queues=("agents",), draining=True)
        assert processes(admin_client) == (2, True)

    def test_tells_nothing_of_processes_that_say_nothing(
        self, admin_client: Client, settings: Settings
    ) -> None:
        settings.A2A_PRESENCE_SECONDS = 0.0
        assert "Processes alive" not in admin_client.get("/admin/").text

    def test_tells_who_does_not_see_all_tenants_nothing_of_processes(self) -> None:
        rights = ("a2a_tasks.view_task", "a2a_tasks.view_worker")
        page = person(*rights, tenants=("acme",)).get("/admin/statistics/").text
        assert "Processes alive" not in page

    def test_is_the_stock_page_for_who_may_not_view_tasks(self, sign_in: SignIn) -> None:
        client = sign_in("view_run")
        page = client.get("/admin/")
        assert page.status_code == 200
        assert "a2a-statistics" not in page.text
        assert client.get("/admin/statistics/").status_code == 403

    def test_links_to_nothing_that_the_user_may_not_view(self, sign_in: SignIn) -> None:
        busy()
        page = sign_in("view_task").get("/admin/statistics/").text
        assert "/admin/a2a_tasks/run/" not in page
        assert "Deliveries pending" not in page
        assert "hooks.example.com" not in page

    def test_counts_nothing_of_other_tenants(self) -> None:
        make_ended(TaskState.FAILED, tenant="acme", agent="of-acme")
        make_ended(tenant="other", agent="of-other")
        add_run(Task.objects.get(agent="of-other"), queue="of-others")
        page = person("a2a_tasks.view_task", tenants=("acme",)).get("/admin/statistics/").text
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
        assert "Ended in the past hour" in admin_client.get("/admin/statistics/?period=%00").text

    def test_asks_as_much_of_the_database_however_much_there_is(self, admin_client: Client) -> None:
        def asked() -> int:
            reports.forget()
            with CaptureQueriesContext(connection) as queries:
                assert admin_client.get("/admin/statistics/").status_code == 200
            return len(queries)

        busy()
        before = asked()
        for number in range(30):
            make_ended(agent=f"agent-{number}", tenant=f"tenant-{number}")
            add_run(make_task(f"more-{number}"), queue=f"queue-{number}")
        assert asked() == before <= 20
