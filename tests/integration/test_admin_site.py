"""The admin's lists stand in an operator's order and are called by what they have."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

pytestmark = pytest.mark.django_db


def test_tables_stand_in_the_order_in_which_an_operator_meets_them() -> None:
    request = RequestFactory().get("/admin/")
    request.user = User(is_superuser=True, is_staff=True)
    apps = {app["app_label"]: app for app in admin.site.get_app_list(request)}
    names = [table["object_name"] for table in apps["a2a_tasks"]["models"]]
    assert names[:4] == ["Task", "Waiting", "Context", "Run"]
    assert apps["a2a_push"]["models"][0]["object_name"] == "Delivery"
    assert apps["axes"]["name"] == "Lockouts"


def test_a_list_is_called_by_what_it_has(admin_client: Client) -> None:
    answer = admin_client.get("/admin/a2a_tasks/apikey/").content.decode()
    assert "<h1>API keys</h1>" in answer
    assert "Select API key" not in answer


def test_both_halves_of_a_keys_end_have_names(admin_client: Client) -> None:
    answer = admin_client.get("/admin/a2a_tasks/apikey/add/").content.decode()
    assert 'aria-label="Expires at, date"' in answer
    assert 'aria-label="Expires at, time"' in answer
