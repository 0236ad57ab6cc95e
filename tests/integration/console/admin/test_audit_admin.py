"""The audit log in the admin: looked at, searched and filtered; changed by nobody."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client
from django.urls import reverse

from a2a_console.admin.access import audit_verification
from a2a_console.audit import proof as audit_proof
from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry, AuditLink
from a2a_tasks.store import audit, audit_seals
from a2a_tasks.store.audit_triggers import unlock
from tests.support.console.admin.people import SignIn
from tests.support.rows import rows
from tests.support.store.world import ALICE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_audit_log")]

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
    @rows(
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

    def test_names_keys_and_staff(self, admin_client: Client) -> None:
        key, staff = issue("acme-bot").row, f"staff:{User.objects.get().pk}"
        for actor in (principal_of(key), staff):
            audit.note(Action.TASK_EXPORT, actor=actor)
        body = admin_client.get(LIST).text
        assert f'title="{principal_of(key)}">acme-bot</a>' in body
        assert f'title="{staff}">admin</a>' in body

    def test_is_seen_by_who_may_view_it(self, sign_in: SignIn) -> None:
        assert sign_in().get(LIST).status_code == 403
        User.objects.all().delete()
        assert sign_in("view_auditentry").get(LIST).status_code == 200

    def test_what_concerns_the_whole_host_is_seen_by_who_sees_all_tenants(
        self, sign_in: SignIn
    ) -> None:
        audit.note(Action.HOLD_SET, "user:7")
        audit.note(Action.LOGIN, "user:7", actor="staff:7")
        audit.note(Action.GRANT_ADD, "key:abc")
        bob = sign_in("view_auditentry")
        entry = AuditEntry.objects.get(object="key:abc")
        page = reverse("admin:a2a_tasks_auditentry_change", args=[entry.pk])
        assert listed(bob, "") == ["prefix", "", "t-1"]
        assert listed(bob, "?q=user:7") == []
        assert bob.get(page).status_code == 404
        User.objects.all().delete()
        everybody = sign_in("view_auditentry", "see_all_tenants")
        assert listed(everybody, "") == ["key:abc", "user:7", "prefix", "", "t-1"]
        assert everybody.get(page).status_code == 200


class TestVerifying:
    def post(self, client: Client, **said: str) -> Any:
        return client.post(f"{LIST}verify/", said)

    @pytest.mark.usefixtures("entries")
    def test_says_that_the_log_is_whole(self, admin_client: Client) -> None:
        audit_seals.seal_all()
        answer = self.post(admin_client)
        assert answer.context["found"].word == "intact"
        assert f"{AuditLink.objects.count()} entries match the hash chain" in answer.text

    @pytest.mark.usefixtures("entries")
    def test_names_the_first_thing_that_is_wrong(self, admin_client: Client) -> None:
        row = AuditEntry.objects.get(object="t-1")
        with unlock():
            AuditEntry.objects.filter(pk=row.pk).update(actor="somebody else")
        answer = self.post(admin_client)
        assert answer.context["found"].word == "broken"
        assert f"entry {row.pk}, of link" in answer.text

    @pytest.mark.usefixtures("empty_audit_log")
    def test_goes_on_where_it_had_come_to_until_the_end(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit_proof, "SLICE", 2)
        monkeypatch.setattr(audit_verification, "SECONDS", 0.0)
        for number in range(7):
            audit.note(Action.KEY_CREATE, str(number))
        audit_seals.seal_all()
        found, steps = self.post(admin_client).context["found"], 1
        while found.word == "verifying":
            assert found.proof.verified < found.proof.total
            found, steps = self.post(admin_client, so_far=found.so_far).context["found"], steps + 1
        assert (found.word, found.percent) == ("intact", 100)
        assert steps > 3

    @pytest.mark.usefixtures("entries")
    def test_what_is_not_of_an_answer_of_ours_begins_anew(self, admin_client: Client) -> None:
        for made_up in ("x", signing.dumps({"total": 1, "verified": 1})):
            assert self.post(admin_client, so_far=made_up).context["found"].proof.first == 1

    def test_is_for_who_sees_all_tenants(self, sign_in: SignIn) -> None:
        bob = sign_in("view_auditentry")
        assert self.post(bob).status_code == 403
        assert "Verify the log" not in bob.get(LIST).text

    def test_is_no_get(self, admin_client: Client) -> None:
        assert admin_client.get(f"{LIST}verify/").status_code == 405
