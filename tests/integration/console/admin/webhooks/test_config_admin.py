"""The admin of webhooks, and what the page of a task says of its own."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from a2a_push.models import DeliveryStatus, PushConfig
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import add_attempt, make_config, make_delivery
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db

LIST = "/admin/a2a_push/pushconfig/"
YES = {"confirmed": "yes"}


def page_of(config: PushConfig) -> str:
    return reverse("admin:a2a_push_pushconfig_change", args=[config.pk])


def listed(client: Client, query: str) -> list[str]:
    answer = client.get(LIST + query)
    assert answer.status_code == 200
    return [row.public_id for row in answer.context["cl"].result_list]


class TestLooking:
    def test_filters_by_state_and_finds_by_task_and_by_id(self, admin_client: Client) -> None:
        task = make_task("the-task")
        make_config(task, "active")
        make_config(task, "settled", active=False)
        make_config(make_task("other"), "disabled", disabled_reason="gone")
        for query, found in [
            ("?state=active", ["active"]),
            ("?state=settled", ["settled"]),
            ("?state=disabled", ["disabled"]),
            ("?q=the-task", ["settled", "active"]),
            ("?q=disabled", ["disabled"]),
            ("?q=disable", []),
        ]:
            assert listed(admin_client, query) == found, query

    def test_the_page_says_how_far_it_is_and_where_it_leads(self, admin_client: Client) -> None:
        config = make_config(make_task(), cursor=0, disabled_reason="the receiver is gone (410)")
        make_delivery(config, DeliveryStatus.DEAD, reason="the receiver is gone (410)")
        body = admin_client.get(page_of(config)).text
        for expected in (
            "0 of 1",
            "is gone (410)",
            "https://hooks.example.com/a2a?key=…",
            "Bearer",
        ):
            assert expected in body
        assert "stored, hidden" in body

    @rows("schemes", ["", "[]", "x"], within=rolled_back)
    def test_shows_whatever_is_stored(self, admin_client: Client, schemes: str) -> None:
        config = make_config(make_task(), schemes=schemes, secret="")
        body = admin_client.get(page_of(config)).text
        assert "stored, hidden" not in body


@pytest.mark.django_db
class TestEnabling:
    def test_asks_first_then_does_it(self, sign_in: SignIn) -> None:
        client = sign_in("view_pushconfig", "change_pushconfig")
        config = make_config(make_task(), disabled_reason="gone")
        url = f"{LIST}{config.pk}/enable/"
        assert url in client.get(page_of(config)).text
        assert client.get(url).status_code == 405
        assert "Enable the webhook?" in client.post(url).text
        assert "The webhook is enabled." in client.post(url, YES, follow=True).text
        assert "It was not disabled." in client.post(url, YES, follow=True).text
        assert url not in client.get(page_of(config)).text
        assert LogEntry.objects.count() == 1

    def test_needs_the_permission(self, sign_in: SignIn) -> None:
        client = sign_in("view_pushconfig")
        config = make_config(make_task(), disabled_reason="gone")
        assert client.post(f"{LIST}{config.pk}/enable/", YES).status_code == 403


def tab_of(task: int) -> str:
    """The tab of webhooks on the page of a task."""
    return reverse("admin:a2a_tasks_task_change", args=[task]) + "?tab=webhooks"


class TestThePageOfATask:
    def test_lists_its_webhooks_and_deliveries(self, admin_client: Client) -> None:
        task = make_task("the-task")
        config = make_config(task, "my-webhook")
        delivery = make_delivery(config, DeliveryStatus.DEAD, reason="10 attempts")
        add_attempt(delivery)
        other = make_delivery(make_config(make_task("other"), "not-mine"))
        body = admin_client.get(tab_of(task.pk)).text
        assert page_of(config) in body
        assert f"/admin/a2a_push/delivery/{delivery.pk}/" in body
        assert f"?from={delivery.number}#event-{delivery.number}" in body
        assert "10 attempts" in body
        assert f"/admin/a2a_push/delivery/{other.pk}/" not in body

    @rows(
        ("permissions", "shown"),
        [
            ((), (False, False)),
            (("view_pushconfig",), (True, False)),
            (("view_delivery",), (False, True)),
        ],
        within=rolled_back,
    )
    def test_shows_what_the_user_may_view(
        self, sign_in: SignIn, permissions: tuple[str, ...], shown: tuple[bool, bool]
    ) -> None:
        client, config = sign_in("view_task", *permissions), make_config(make_task())
        make_delivery(config)
        body = client.get(tab_of(config.task_id)).text
        assert ('id="a2a-webhooks"' in body, 'id="a2a-deliveries"' in body) == shown

    def test_says_nothing_where_there_are_none(self, admin_client: Client) -> None:
        task = make_task()
        assert "No webhooks." in admin_client.get(tab_of(task.pk)).text
