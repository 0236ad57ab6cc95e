"""The admin's lists stand in an operator's order and are called by what they have."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

pytestmark = pytest.mark.django_db


def test_the_sidebar_follows_what_people_do_and_all_tables_are_below_more() -> None:
    request = RequestFactory().get("/admin/")
    request.user = User(is_superuser=True, is_staff=True)
    groups = {
        group["name"]: [page["name"] for page in group["models"]]
        for group in admin.site.get_app_list(request)
    }
    assert groups == {
        "Operate": ["Tasks", "Inbox", "Agents", "Workers", "Bulk jobs"],
        "Webhooks": ["Endpoints", "Deliveries"],
        "Cost": ["Usage", "Budgets"],
        "Access": ["Connect", "Keys", "Grants", "Users"],
        "Compliance": ["Audit log", "Holds", "Retention"],
        "More": ["All tables"],
    }
    apps = {app["app_label"]: app for app in admin.site.list_apps(request)}  # type: ignore[attr-defined]
    assert "Run" in {table["object_name"] for table in apps["a2a_tasks"]["models"]}
    assert apps["axes"]["name"] == "Lockouts"


def test_errors_of_the_console_have_a_page_that_leads_back(admin_client: Client) -> None:
    for path, status in (("/admin/nothing/here/", 404), ("/admin/a2a_tasks/run/?x__y=1", 400)):
        answer = admin_client.get(path)
        assert answer.status_code == status
    page = admin_client.get("/admin/nothing/here/").text
    assert "There is nothing here" in page
    assert 'href="/admin/"' in page


def test_an_exception_of_a_page_is_told_without_its_text(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("internal")

    monkeypatch.setattr("a2a_console.admin.find.find", fail)
    admin_client.raise_request_exception = False
    page = admin_client.get("/admin/find/?q=x")
    assert page.status_code == 500
    assert "The host failed" in page.text
    assert "internal" not in page.text


def test_who_may_not_do_something_is_told_what(client: Client) -> None:
    client.force_login(User.objects.create_user("bob", password="bob", is_staff=True))
    page = client.get("/admin/usage/")
    assert page.status_code == 403
    assert "You may not do this" in page.text


def test_a_list_is_called_by_what_it_has(admin_client: Client) -> None:
    answer = admin_client.get("/admin/a2a_tasks/apikey/").content.decode()
    assert "<h1>Keys</h1>" in answer  # as in the sidebar
    assert "Select API key" not in answer


def test_both_halves_of_a_keys_end_have_names(admin_client: Client) -> None:
    answer = admin_client.get("/admin/a2a_tasks/apikey/add/").content.decode()
    assert 'aria-label="Expires at, date"' in answer
    assert 'aria-label="Expires at, time"' in answer


def test_the_tables_of_an_app_have_one_trail(admin_client: Client) -> None:
    answer = admin_client.get("/admin/a2a_tasks/").text
    assert answer.count('class="breadcrumbs"') == 1
    assert ">Overview</a> &rsaquo; A2A tasks administration" in answer
