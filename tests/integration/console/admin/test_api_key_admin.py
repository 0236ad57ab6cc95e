"""API keys in the admin: shown once, in the answer that makes them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a_console.times import moment
from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import ApiKey
from tests.support.console.admin.people import SignIn
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db

KEYS = "/admin/a2a_tasks/apikey/"
KEY = re.compile(r"a2a_[a-z2-7]{12}_[A-Za-z0-9_-]{43}")


YES = {"confirmed": "yes"}


def act(client: Client, action: str, *rows: ApiKey, **more: str) -> HttpResponse:
    said = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return client.post(KEYS, said)  # type: ignore[return-value]


class TestAKey:
    def made(self, client: Client, **members: str) -> HttpResponse:
        form = {"name": "robot", "tenant": "", "scopes": "", "expires_at_0": "", "expires_at_1": ""}
        return client.post(KEYS + "add/", {**form, **members})  # type: ignore[return-value]

    def test_is_shown_once(self, admin_client: Client) -> None:
        answer = self.made(admin_client, scopes="b a", tenant="acme")
        assert answer.status_code == 200
        (key,) = KEY.findall(answer.content.decode())
        assert "no-store" in answer.headers["cache-control"]
        assert not any(key in morsel.value for morsel in admin_client.cookies.values())
        row = ApiKey.objects.get()
        assert (row.name, row.tenant, row.scopes) == ("robot", "acme", "a b")
        assert row.prefix in key
        for page in (KEYS, reverse("admin:a2a_tasks_apikey_change", args=[row.pk])):
            shown = admin_client.get(page).content.decode()
            assert row.prefix in shown
            assert key[17:] not in shown
            assert row.digest not in shown
        assert LogEntry.objects.filter(object_id=str(row.pk)).exists()

    def test_is_not_made_again_by_a_reload_of_the_page_that_shows_it(
        self, admin_user: User
    ) -> None:
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(admin_user)
        page = browser.get(KEYS + "add/").content.decode()
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page))
        assert KEY.search(self.made(browser, csrfmiddlewaretoken=token).content.decode())
        assert self.made(browser, csrfmiddlewaretoken=token).status_code == 403
        assert ApiKey.objects.count() == 1

    def test_has_times_as_in_logs(self, admin_client: Client) -> None:
        row = issue("robot").row
        page = admin_client.get(reverse("admin:a2a_tasks_apikey_change", args=[row.pk])).text
        assert moment(row.created_at) in page
        assert not re.search(r"[ap]\.m\.", page)

    def test_ends_in_a_year_unless_the_form_says_otherwise(self, admin_client: Client) -> None:
        form = admin_client.get(KEYS + "add/").content.decode()
        halves = dict(re.findall(r'name="(expires_at_\d)" value="([^"]+)"', form))
        self.made(admin_client, **halves)
        row = ApiKey.objects.get()
        assert row.expires_at is not None
        assert abs(row.expires_at - timezone.now() - timedelta(days=365)) < timedelta(minutes=2)
        ApiKey.objects.all().delete()
        self.made(admin_client)
        assert ApiKey.objects.get().expires_at is None

    @rows(
        "wrong",
        [{"scopes": 'a"b'}, {"tenant": "a/b"}, {"name": ""}, {"rate": "often"}],
        within=rolled_back,
    )
    def test_is_not_made_of_what_cannot_be(
        self, admin_client: Client, wrong: dict[str, str]
    ) -> None:
        assert not KEY.search(self.made(admin_client, **wrong).content.decode())
        assert not ApiKey.objects.exists()

    def test_is_rotated_and_the_new_one_is_shown_once(self, admin_client: Client) -> None:
        issued = issue("robot")
        (key,) = KEY.findall(
            act(admin_client, "rotate_selected", issued.row, **YES).content.decode()
        )
        assert issued.row.prefix in key
        assert key != issued.key

    def test_that_was_revoked_is_not_rotated(self, admin_client: Client) -> None:
        row = issue("robot").row
        assert ">Revoke</button>" in act(admin_client, "revoke_selected", row).content.decode()
        row.refresh_from_db()
        assert row.revoked_at is None
        act(admin_client, "revoke_selected", row, confirmed="yes")
        row.refresh_from_db()
        assert row.revoked_at is not None
        answer = act(admin_client, "rotate_selected", row, **YES)
        assert not KEY.search(answer.content.decode())

    def test_may_be_renamed_and_its_scopes_changed_but_nothing_else(
        self, admin_client: Client
    ) -> None:
        row = issue("robot", tenant="acme").row
        said = {
            "name": "droid",
            "scopes": "x",
            "rate": "1/s",
            "tenant": "other",
            "digest": "0",
            "prefix": "p",
        }
        page = reverse("admin:a2a_tasks_apikey_change", args=[row.pk])
        assert admin_client.post(page, said).status_code == 302
        changed = ApiKey.objects.get()
        assert (changed.name, changed.scopes, changed.rate) == ("droid", "x", "1/s")
        same = ("tenant", "digest", "prefix")
        assert [getattr(changed, name) for name in same] == [getattr(row, name) for name in same]

    @rows("scope", ["admin:read", "pay"], within=rolled_back)
    def test_that_may_do_more_is_for_who_sees_all_tenants(
        self, sign_in: SignIn, scope: str
    ) -> None:
        bob = sign_in("add_apikey", "change_apikey")
        assert not KEY.search(self.made(bob, scopes=scope).content.decode())
        assert not ApiKey.objects.exists()
        host, ours = issue("host", scopes=[scope]).row, issue("ours").row
        shown = act(bob, "rotate_selected", host, ours, **YES).content.decode()
        assert [key[4:16] for key in KEY.findall(shown)] == [ours.prefix]
        page = reverse("admin:a2a_tasks_apikey_change", args=[ours.pk])
        said = {"name": "x", "scopes": scope, "rate": ""}
        assert "you have not" in bob.post(page, said).content.decode()
        ours.refresh_from_db()
        assert ours.scopes == ""

    def test_is_never_deleted(self, admin_client: Client) -> None:
        row = issue("robot").row
        page = reverse("admin:a2a_tasks_apikey_delete", args=[row.pk])
        assert admin_client.post(page, {"post": "yes"}).status_code == 403

    def test_is_only_looked_at_by_who_may_only_view(self, client: Client) -> None:
        row = issue("robot").row
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_apikey"))
        client.force_login(viewer)
        assert client.get(KEYS).status_code == 200
        assert self.made(client).status_code == 403
        for action in ("rotate_selected", "revoke_selected"):
            act(client, action, row)
        row.refresh_from_db()
        assert (row.revoked_at, row.rotated_at) == (None, None)
