"""Grants in the admin: who has access is on one list; a grant is made and deleted there, and holds at once."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.access.grants import GrantRight, forget, grant, rights_in_thread
from a2a_tasks.caller import Caller
from a2a_tasks.models import Grant
from tests.support.agents_under_test import playing
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db

GRANTS = "/admin/a2a_tasks/grant/"
KEY = Caller(principal="key:a")


@pytest.fixture(autouse=True)
def unread() -> None:
    """Nothing is known of grants that another test has made."""
    forget()


def granted(client: Client, **members: str) -> str:
    form = {"agent": "demo", "grantee": "key:a", "right": "use", **members}
    return client.post(GRANTS + "add/", form, follow=True).content.decode()


class TestAGrant:
    def test_is_made_and_holds_at_once(self, admin_client: Client) -> None:
        assert not rights_in_thread(KEY, "demo")
        assert "was added successfully" in granted(admin_client)
        assert rights_in_thread(KEY, "demo") == {GrantRight.USE, GrantRight.SEE}
        entry = LogEntry.objects.get()
        assert entry.object_id == str(Grant.objects.get().pk)
        assert "key:a may use demo" in entry.object_repr

    @rows(
        ("members", "told"),
        [
            ({"grantee": "bob"}, "is no principal"),
            ({"grantee": "tenant:a/b"}, "is no principal"),
            ({"agent": "No Agent"}, "cannot be an agent"),
            ({"right": "own"}, "not one of the available choices"),
            ({"agent": ""}, "required"),
        ],
        within=rolled_back,
    )
    def test_is_refused_where_it_makes_no_sense(
        self, admin_client: Client, members: dict[str, str], told: str
    ) -> None:
        assert told in granted(admin_client, **members)
        assert not Grant.objects.exists()

    def test_is_made_once(self, admin_client: Client) -> None:
        granted(admin_client)
        assert "already exists" in granted(admin_client)

    def test_cannot_be_changed(self, admin_client: Client) -> None:
        grant("demo", "key:a", "use")
        page = reverse("admin:a2a_tasks_grant_change", args=[Grant.objects.get().pk])
        assert "_save" not in admin_client.get(page).content.decode()
        form = {"agent": "*", "grantee": "*", "right": "use"}
        assert admin_client.post(page, form).status_code == 403

    def test_is_deleted_and_ends_at_once(self, admin_client: Client) -> None:
        for right in ("use", "operate"):
            grant("demo", "key:a", right)
        one, other = Grant.objects.order_by("pk")
        page = reverse("admin:a2a_tasks_grant_delete", args=[one.pk])
        admin_client.post(page, {"post": "yes"})
        assert rights_in_thread(KEY, "demo") == {GrantRight.OPERATE, GrantRight.SEE}
        chosen = {"action": "delete_selected", "_selected_action": [other.pk], "post": "yes"}
        admin_client.post(GRANTS, chosen)
        assert not rights_in_thread(KEY, "demo")

    def test_needs_the_permission_of_its_own(self, client: Client) -> None:
        staff = User.objects.create_user("staff", is_staff=True)
        client.force_login(staff)
        assert client.get(GRANTS).status_code == 403
        staff.user_permissions.add(Permission.objects.get(codename="view_grant"))
        assert client.get(GRANTS).status_code == 403  # grants are for all tenants
        staff.user_permissions.add(Permission.objects.get(codename="see_all_tenants"))
        assert client.get(GRANTS).status_code == 200
        assert client.post(GRANTS + "add/", {}).status_code == 403


class TestTheList:
    def test_tells_who_a_key_or_a_user_is(self, admin_client: Client) -> None:
        key = issue("billing robot").row
        alice = User.objects.create_user("alice")
        for grantee in (
            principal_of(key),
            f"user:{alice.pk}",
            "user:999",
            "key:gone",
            "tenant:acme",
        ):
            grant("demo", grantee, "use")
        page = admin_client.get(GRANTS).content.decode()
        assert "billing robot" in page
        assert "alice" in page

    def test_tells_which_are_in_force(self, admin_client: Client) -> None:
        def in_force() -> int:
            return admin_client.get(GRANTS).content.decode().count('alt="True"')

        grant("demo", "key:a", "use")
        grant("*", "key:b", "use")
        assert in_force() == 0
        with playing(lambda turn: "x", grants="listed") as agent:
            grant(agent.slug, "key:a", "use")
            assert in_force() == 2

    def test_is_searched_and_narrowed(self, admin_client: Client) -> None:
        grant("demo", "key:a", "use")
        grant("tables", "tenant:acme", "see")
        assert "tenant:acme" not in admin_client.get(GRANTS + "?q=key:a").content.decode()
        assert "key:a" not in admin_client.get(GRANTS + "?right=see").content.decode()
