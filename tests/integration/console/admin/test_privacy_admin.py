"""Holds and tenants' days in the admin: by whoever may, and not otherwise."""

from __future__ import annotations

import pytest
from django.test import Client

from a2a_tasks.models import Hold, TenantRetention
from a2a_tasks.store import legal_holds
from tests.support.console.admin.people import SignIn
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db

HOLDS, DAYS = "/admin/a2a_tasks/hold/", "/admin/a2a_tasks/tenantretention/"
SAID = {"kind": "principal", "name": "user:7", "reason": "a lawsuit"}


class TestHolds:
    def test_are_laid_by_who_is_signed_in(self, admin_client: Client) -> None:
        assert admin_client.post(HOLDS + "add/", SAID).status_code == 302
        row = Hold.objects.get()
        assert (row.kind, row.name, row.reason) == ("principal", "user:7", "a lawsuit")
        assert row.by.startswith("staff:")
        assert "a lawsuit" in admin_client.get(HOLDS).text
        assert admin_client.get(f"{HOLDS}{row.pk}/change/").status_code == 200

    @rows("wrong", [{"name": ""}, {"reason": ""}, {"kind": "host"}], within=rolled_back)
    def test_need_a_reason_and_something_they_are_on(
        self, admin_client: Client, wrong: dict[str, str]
    ) -> None:
        assert admin_client.post(HOLDS + "add/", {**SAID, **wrong}).status_code == 200
        assert not Hold.objects.exists()

    def test_are_laid_once_at_a_time(self, admin_client: Client) -> None:
        admin_client.post(HOLDS + "add/", SAID)
        assert admin_client.post(HOLDS + "add/", SAID).status_code == 200
        assert Hold.objects.count() == 1

    def test_are_released_by_who_may(self, sign_in: SignIn) -> None:
        row = legal_holds.lay(legal_holds.HoldKind.TASK, "t", "x")
        browser = sign_in("view_hold", "add_hold")
        said = {"action": "release_selected", "_selected_action": row.pk}
        browser.post(HOLDS, said)
        assert legal_holds.in_force().exists()
        assert browser.post(f"{HOLDS}{row.pk}/delete/", {"post": "yes"}).status_code == 403


class TestDays:
    @rows("days", ["-1", "nan", "inf", ""], within=rolled_back)
    def test_are_a_number(self, admin_client: Client, days: str) -> None:
        answer = admin_client.post(DAYS + "add/", {"tenant": "acme", "days": days})
        assert answer.status_code == 200
        assert not TenantRetention.objects.exists()

    def test_are_of_the_hosts_only_tenant_too(self, admin_client: Client) -> None:
        admin_client.post(DAYS + "add/", {"tenant": "", "days": "7"})
        assert TenantRetention.objects.get().days == 7
        assert "the host" in admin_client.get(DAYS).text
