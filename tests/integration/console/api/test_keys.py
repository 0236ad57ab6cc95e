"""API keys: shown once, and never a way to more than one has."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from a2a_tasks.access import authentication
from a2a_tasks.access.api_keys import issue
from a2a_tasks.access.grants import grant
from a2a_tasks.models import ApiKey
from tests.support.console.api.world import asked, key_of, person, populated
from tests.support.rows import rows

pytestmark = pytest.mark.django_db


class TestMaking:
    def test_shows_a_key_that_opens_and_never_again(self) -> None:
        maker = key_of("admin:keys", "admin:read")
        made = asked(maker, "/keys", {"name": "robot", "scopes": ["admin:read"]})
        assert made.status == 201
        key, prefix = made.json["key"], made.json["prefix"]
        assert asked(key, "/tasks").status == 200
        for path in ("/keys", f"/keys/{prefix}"):
            assert key[17:] not in asked(maker, path).body.decode()
        assert made.json["state"] == "live"

    def test_ends_it_in_a_year_unless_told_otherwise(self) -> None:
        maker = key_of("admin:keys")
        soon = (timezone.now() + timedelta(days=1)).isoformat()
        ends = [
            asked(maker, "/keys", {"name": "x", **said}).json["expires_at"]
            for said in ({}, {"expires_at": None}, {"expires_at": soon})
        ]
        row = ApiKey.objects.order_by("pk")[1]
        assert row.expires_at is not None
        assert (row.expires_at - row.created_at).days in {364, 365}
        assert ends[1] is None
        assert ends[2][:10] == soon[:10]

    def test_gives_no_scope_that_the_maker_has_not(self) -> None:
        maker = key_of("admin:keys", "invoices")
        refused = asked(maker, "/keys", {"name": "x", "scopes": ["invoices", "admin:write"]})
        assert (refused.status, refused.json["scope"]) == (403, "admin:write")
        assert asked(maker, "/keys", {"name": "x", "scopes": ["invoices"]}).status == 201

    def test_stays_within_the_makers_tenant(self) -> None:
        maker = key_of("admin:keys", tenant="acme")
        assert asked(maker, "/keys", {"name": "x"}).json["tenant"] == "acme"
        for tenant in ("", "globex"):
            refused = asked(maker, "/keys", {"name": "x", "tenant": tenant})
            assert refused.json["errors"][0]["name"] == "tenant"
        lost = asked(key_of("admin:keys"), "/keys", {"name": "x", "tenant": "acme"})
        assert lost.json["errors"][0]["name"] == "tenant"
        free = key_of("admin:keys", "admin:read")
        assert asked(free, "/keys", {"name": "x", "tenant": "acme"}).json["tenant"] == "acme"

    def test_by_a_person_who_sees_all_tenants_gives_any_scope(self) -> None:
        made = asked(
            person("a2a_tasks.add_apikey"), "/keys", {"name": "x", "scopes": ["b", "a", "a"]}
        )
        assert made.json["scopes"] == ["a", "b"]

    def test_by_a_person_gives_no_sight_of_tenants_the_person_does_not_see(self) -> None:
        bob = person("a2a_tasks.add_apikey", tenants=("",))
        refused = asked(bob, "/keys", {"name": "x", "tenant": "", "scopes": ["admin:read"]})
        assert refused.json["errors"][0]["name"] == "scopes"
        assert not ApiKey.objects.exists()

    @pytest.mark.parametrize("tenant", ["", "acme"])
    def test_by_a_person_of_a_tenant_gives_the_scopes_of_the_persons_groups_alone(
        self, tenant: str
    ) -> None:
        bob = person("a2a_tasks.add_apikey", tenants=(tenant,))
        said = {"name": "x", "tenant": tenant, "scopes": ["pay"]}
        refused = asked(bob, "/keys", said)
        assert (refused.status, refused.json["errors"][0]["name"]) == (400, "scopes")
        assert not ApiKey.objects.exists()
        User.objects.get(username="bob").groups.add(Group.objects.create(name="pay"))
        assert asked(bob, "/keys", said).json["scopes"] == ["pay"]

    def test_by_a_person_of_a_tenant_gives_no_scope_that_operates_agents(self) -> None:
        """A scope need not look like one of operators to be one: `operate` may be granted to any."""
        grant("*", "scope:ops", "operate")
        populated("acme")
        bob = person("a2a_tasks.add_apikey", tenants=("",))
        assert asked(bob, "/keys", {"name": "x", "tenant": "", "scopes": ["ops"]}).status == 400
        made = asked(bob, "/keys", {"name": "x", "tenant": ""}).json["key"]
        assert asked(made, "/tasks").status == 403


class TestRotating:
    @pytest.mark.parametrize("scope", ["admin:read", "pay"])
    def test_by_a_person_shows_no_key_that_may_do_more(self, scope: str) -> None:
        host, ours = issue("host", scopes=[scope]).row, issue("ours").row
        bob = person("a2a_tasks.change_apikey", tenants=("",))
        assert asked(bob, f"/keys/{host.prefix}/rotate", {}).code == "conflict"
        assert asked(bob, f"/keys/{ours.prefix}/rotate", {}).status == 200
        host.refresh_from_db()
        assert host.rotated_at is None

    def test_by_a_person_of_a_tenant_gives_no_right_that_was_granted_to_the_key_by_name(
        self,
    ) -> None:
        populated("acme")
        robot = issue("robot", tenant="acme").row
        grant("*", f"key:{robot.prefix}", "operate")
        bob = person("a2a_tasks.change_apikey", tenants=("acme",))
        assert asked(bob, "/tasks").status == 403
        turned = asked(bob, f"/keys/{robot.prefix}/rotate", {})
        assert turned.status == 409 or asked(turned.json["key"], "/tasks").status == 403

    def test_shows_the_new_secret_while_the_old_one_goes_on(self) -> None:
        old = issue("robot", scopes=["admin:keys"])
        turned = asked(old.key, f"/keys/{old.row.prefix}/rotate", {"overlap_hours": 1})
        assert turned.status == 200
        new = turned.json["key"]
        assert new != old.key
        for key in (old.key, new):
            authentication.forget()
            assert asked(key, "/keys").json["scope"] == "admin:read"  # it opens, to little
        authentication.forget()
        again = asked(new, f"/keys/{old.row.prefix}/rotate", {"overlap_hours": 0})
        authentication.forget()
        assert asked(old.key, "/keys").status == 401
        assert asked(again.json["key"], "/keys").status == 403

    def test_needs_the_scopes_of_the_key(self) -> None:
        strong = issue("strong", scopes=["admin:write", "pay"]).row
        refused = asked(key_of("admin:keys", "pay"), f"/keys/{strong.prefix}/rotate", {})
        assert (refused.status, refused.json["scope"]) == (403, "admin:write")
        strong.refresh_from_db()
        assert strong.rotated_at is None

    @pytest.mark.parametrize(
        "ended",
        [{"revoked_at": timezone.now()}, {"expires_at": timezone.now()}],
        ids=["revoked", "expired"],
    )
    def test_of_one_that_has_ended_is_a_conflict(self, ended: dict[str, object]) -> None:
        row = issue("robot").row
        ApiKey.objects.filter(pk=row.pk).update(**ended)
        answer = asked(key_of("admin:keys"), f"/keys/{row.prefix}/rotate", {})
        assert (answer.status, answer.code) == (409, "conflict")

    @rows("hours", [-1, 1e9, "x", None])
    def test_wants_an_overlap_that_ends(self, hours: object) -> None:
        row = issue("robot").row
        answer = asked(key_of("admin:keys"), f"/keys/{row.prefix}/rotate", {"overlap_hours": hours})
        assert answer.json["errors"][0]["name"] == "overlap_hours"


class TestRevoking:
    def test_ends_a_key_for_good(self) -> None:
        victim = issue("robot", scopes=["admin:read"])
        assert asked(victim.key, "/tasks").status == 200
        url, key = f"/keys/{victim.row.prefix}/revoke", key_of("admin:keys")
        assert asked(key, url, post=True).json["state"] == "revoked"
        authentication.forget()
        assert asked(victim.key, "/tasks").status == 401
        assert asked(key, url, post=True).code == "conflict"

    @rows("prefix", ["aaaaaaaaaaaa", "%00", "a" * 300, "..", "a_b"])
    def test_of_one_that_is_not_there_is_not_found(self, prefix: str) -> None:
        answer = asked(key_of("admin:keys"), f"/keys/{prefix}/revoke", post=True)
        assert answer.code == "not_found"
