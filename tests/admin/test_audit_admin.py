"""The audit log in the admin: looked at, searched and filtered; changed by nobody."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry
from a2a_tasks.store import audit, audit_seals
from tests.admin.people import SignIn
from tests.store.world import ALICE

pytestmark = pytest.mark.django_db

LIST = "/admin/a2a_tasks/auditentry/"


def listed(client: Client, query: str) -> list[str]:
    """What the list shows, but for what the admin's own users leave."""
    answer = client.get(LIST + query)
    assert answer.status_code == 200, answer.status_code
    rows = answer.context["cl"].result_list
    return [row.object for row in rows if not row.action.startswith(("user.", "login."))]


def meaning(name: str) -> str:
    return next(action.about for action in Action if action == name)


@pytest.fixture
def entries(empty_audit_log: None) -> None:
    """Three entries, of which the newest is not sealed."""
    audit.note(Action.TASK_SEND, "t-1", scope=ALICE, actor="key:abc")
    audit.note(Action.ACCESS_DENIED, scope=ALICE, actor="key:abc", detail={"why": "<b>"})
    audit_seals.seal_all()
    audit.note(Action.KEY_CREATE, "prefix", actor="staff:7")


@pytest.mark.usefixtures("entries")
class TestTheLog:
    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("", ["prefix", "", "t-1"]),
            ("?q=t-1", ["t-1"]),
            ("?q=key:abc", ["", "t-1"]),
            ("?q=nobody", []),
            ("?about=task", ["t-1"]),
            ("?outcome=refused", [""]),
            ("?agent=demo", ["", "t-1"]),
            ("?sealed=yes", ["", "t-1"]),
            ("?sealed=no", ["prefix"]),
            ("?sealed=x", ["prefix", "", "t-1"]),
            ("?created=hour", ["prefix", "", "t-1"]),
            ("?created=older-day", []),
        ],
    )
    def test_is_searched_and_filtered(
        self, admin_client: Client, query: str, found: list[str]
    ) -> None:
        assert listed(admin_client, query) == found

    def test_a_page_says_what_was_done_and_where_it_is_in_the_chain(
        self, admin_client: Client
    ) -> None:
        for row in AuditEntry.objects.exclude(action__startswith="user."):
            page = admin_client.get(reverse("admin:a2a_tasks_auditentry_change", args=[row.pk]))
            assert meaning(row.action).split(":")[0] in page.text
            assert "<b>" not in page.text
        first = AuditEntry.objects.get(object="t-1")
        page = admin_client.get(reverse("admin:a2a_tasks_auditentry_change", args=[first.pk]))
        assert f"link {first.link.number}" in page.text
        assert first.link.hash in page.text

    def test_nobody_changes_it(self, admin_client: Client) -> None:
        row = AuditEntry.objects.get(object="t-1")
        for page in ("add/", f"{row.pk}/delete/"):
            assert admin_client.get(LIST + page).status_code == 403
        assert admin_client.post(f"{LIST}{row.pk}/change/", {"actor": "x"}).status_code == 403

    def test_is_seen_by_who_may_view_it(self, sign_in: SignIn) -> None:
        assert sign_in().get(LIST).status_code == 403
        User.objects.all().delete()
        assert sign_in("view_auditentry").get(LIST).status_code == 200
