"""The search of the console: it finds what the user may see, by its id or its name, in a few queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from a2a_tasks.models import Task
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import make_task
from tests.support.console.api.world import key_of, person
from tests.support.push.rows import make_config, make_delivery

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"


def hits(client: Client, words: str) -> list[tuple[str, str]]:
    """The kinds and texts that were found, without the search for words."""
    found: list[Any] = client.get("/admin/find/", {"q": words}).context["hits"]
    return [(hit.kind, hit.text) for hit in found if hit.kind != "tasks"]


class TestFinding:
    def test_finds_rows_by_their_ids_or_how_these_begin(self, admin_client: Client) -> None:
        task = make_task("order-17", context_id="order-book")
        delivery = make_delivery(make_config(task))
        assert hits(admin_client, "order-") == [("task", "order-17"), ("context", "order-book")]
        assert hits(admin_client, f"#{task.pk}") == [("task", "order-17")]
        assert hits(admin_client, delivery.webhook_id) == [("delivery", delivery.webhook_id)]
        prefix = key_of("billing").removeprefix("a2a_").partition("_")[0]
        assert ("API key", prefix) in hits(admin_client, prefix)

    def test_finds_pages_and_agents_by_a_part_of_their_name(self, admin_client: Client) -> None:
        assert ("page", "Audit log") in hits(admin_client, "audit")
        assert hits(admin_client, "DEMO")[0][0] == "agent"

    def test_leads_to_a_search_for_words(self, admin_client: Client) -> None:
        page = admin_client.get("/admin/find/", {"q": "pay & go"}).text
        assert "/admin/a2a_tasks/task/?q=pay+%26+go" in page

    def test_finds_nothing_of_other_tenants_and_nothing_that_the_user_may_not_view(
        self, sign_in: SignIn
    ) -> None:
        make_task("order-17")
        Task.objects.update(tenant="other")
        assert hits(person("a2a_tasks.view_task", name="carol", tenants=("acme",)), "order-") == []
        assert hits(sign_in("view_run"), "order-") == []

    @pytest.mark.parametrize("words", [SCRIPT, "\x00", "#" + "9" * 50, "#x", "a" * 10_000, "%_\\"])
    def test_takes_any_words(self, admin_client: Client, words: str) -> None:
        make_task(f"{SCRIPT}-1")
        page = admin_client.get("/admin/find/", {"q": words})
        assert page.status_code == 200
        assert SCRIPT not in page.text

    def test_asks_a_few_queries_however_much_there_is(self, admin_client: Client) -> None:
        def asked() -> int:
            with CaptureQueriesContext(connection) as queries:
                admin_client.get("/admin/find/", {"q": "task-"})
            return len(queries)

        before = asked()
        for number in range(20):
            make_task(f"task-{number}", context_id=f"task-context-{number}")
        assert asked() == before <= 12


class TestTheFrame:
    def test_lists_what_people_do_and_leads_to_all_tables(self, admin_client: Client) -> None:
        page = admin_client.get("/admin/find/").text
        for group in ("Operate", "Webhooks", "Cost", "Access", "Compliance"):
            assert f"<caption>{group}</caption>" in page
        assert "Attempts" not in page
        assert "Attempts" in admin_client.get("/admin/tables/").text

    def test_counts_the_inbox(self, admin_client: Client) -> None:
        from a2a_tasks.protocol.values import TaskState  # noqa: PLC0415 - one test

        make_task("asks", state=TaskState.INPUT_REQUIRED)
        assert 'id="a2a-inbox-count">1</span>' in admin_client.get("/admin/find/").text

    def test_lists_only_what_the_user_may_view(self, sign_in: SignIn) -> None:
        page = sign_in("view_task").get("/admin/find/").text
        assert "/admin/a2a_tasks/task/" in page
        assert "/admin/usage/" in page
        assert "/admin/a2a_tasks/apikey/" not in page

    @pytest.mark.parametrize(
        ("name", "tone"), [("production", "red"), ("Staging 2", "amber"), ("lab <i>", "blue")]
    )
    def test_names_the_installation(
        self, admin_client: Client, settings: Settings, name: str, tone: str
    ) -> None:
        settings.A2A_ENVIRONMENT_NAME = name
        page = admin_client.get("/admin/find/").text
        assert f"a2a-place-{tone}" in page
        assert "<i>" not in page
