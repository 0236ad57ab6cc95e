"""The matrix: every route, asked by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from a2a_console.api.urls import router
from a2a_console.api.views import describe_api
from a2a_console.api.viewsets import HasRight, HostViewSet
from a2a_console.statistics import reports
from a2a_push.models import Receiver
from a2a_tasks.access import authentication, grants
from a2a_tasks.access.grants import grant, withdraw
from a2a_tasks.models import ApiKey, AuditEntry, Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.api.rights import (
    BODIES,
    EXPORTS,
    KEYS,
    OF_THE_HOST,
    OPERATED,
    READ,
    RIGHTS,
    WRITE,
)
from tests.support.console.api.world import (
    Answer,
    World,
    asked,
    key_of,
    operates,
    person,
    populated,
    wait,
)
from tests.support.ended_tasks import make_ended
from tests.support.rows import rolled_back, rows
from tests.support.thorough import THOROUGH, thorough

pytestmark = pytest.mark.django_db


class Route(NamedTuple):
    """A route of the API."""

    name: str
    path: str
    verb: str

    @property
    def is_change(self) -> bool:
        return self.is_noted and self.name not in EXPORTS

    @property
    def is_noted(self) -> bool:
        return self.verb != "get"

    @property
    def is_of_one(self) -> bool:
        return "{" in self.path and "agents" not in self.path

    def asked(self, who: Any, at: str) -> Answer:
        return asked(who, at, BODIES.get(self.name), verb=self.verb)


ROUTES = [
    Route(about["operationId"], path, method)
    for path, methods in sorted(describe_api()["paths"].items())
    for method, about in sorted(methods.items())
]
#: What is done with a task that waits.
WAITING = {"list_waiting", "answer_task", "assign_task", "make_handover_link"}


@contextmanager
def as_if_first() -> Iterator[None]:
    """A row finds nothing of those before it, in the database or in memory."""
    for known in (authentication, grants, reports):
        known.forget()
    with rolled_back():
        yield


def name(value: object) -> str:
    return value.name if isinstance(value, Route) else str(value)


every_route = rows("route", ROUTES, name, within=as_if_first)
#: Of what is the same code for all routes, `make test` asks every second one, or every first.
odd_routes, even_routes = (
    rows("route", ROUTES if THOROUGH else ROUTES[n::2], name, within=as_if_first) for n in (1, 0)
)
#: What is done to rows that are there already.
changes_of_rows = rows(
    "route",
    [r for r in ROUTES if RIGHTS[r.name][0] != READ and r.name != "create_key"],
    name,
    within=as_if_first,
)
routes_of_one = rows("route", [r for r in ROUTES if r.is_of_one], name, within=as_if_first)


@pytest.fixture
def world() -> World:
    """One of everything, made once for all rows of a test."""
    return populated()


@pytest.fixture
def bob() -> Client:
    """Somebody of the staff, who may nothing yet."""
    return person()


def may(*permissions: str) -> None:
    """Bob has these permissions, for all tenants, and no others."""
    codes = ["see_all_tenants", *(permission.partition(".")[2] for permission in permissions)]
    held = Permission.objects.filter(codename__in=codes)
    User.objects.get(username="bob").user_permissions.set(held)


@pytest.fixture
def stranger() -> Client:
    """Somebody with every permission who is not of the staff."""
    return person(*{needed for _, needed in RIGHTS.values()}, name="eve", staff=False)


@pytest.fixture
def theirs() -> World:
    """The same, of another tenant."""
    return populated("acme", "theirs")


@pytest.fixture
def their_world(tenant: str) -> World:
    """The same, of the tenant the test is about."""
    return populated(tenant)


@pytest.fixture
def worlds() -> dict[str, World]:
    tenants = ("acme", "globex/berlin", "ACME", "", "ACME/berlin", "acme-2", "acmes/berlin")
    return {tenant: populated(tenant, f"of-{n}") for n, tenant in enumerate(tenants)}


def ready(world: World, route: Route) -> str:
    """The address, with the row in a state in which it can be done."""
    if route.name == "enable_receiver":
        Receiver.objects.filter(pk=world.receiver.pk).update(disabled_at=timezone.now())
    if route.name in WAITING:
        wait(world)
    if route.name in {"run_task_again", "run_tasks_again"}:
        Task.objects.filter(pk=world.task.pk).update(state=TaskState.FAILED)
    return world.at(route.path)


#: What a change would change, of all there is.
STATE = " UNION ALL ".join(
    f"SELECT '{table}', ({columns})::text FROM {table}"  # noqa: S608 - words of the test
    for table, columns in {
        "a2a_tasks_task": "id, state",
        "a2a_tasks_handedsecret": "task_id, token_hash",
        "a2a_tasks_assignment": "task_id, user_id",
        "a2a_tasks_apikey": "prefix, digest, revoked_at",
        "a2a_push_delivery": "id, status, trigger",
        "a2a_push_receiver": "id, disabled_at",
        "a2a_tasks_agentswitch": "slug, state",
    }.items()
)


def state_of_the_world() -> list[Any]:
    """Of each table in one statement: it is asked for a thousand times."""
    with connection.cursor() as cursor:
        cursor.execute(STATE)
        return sorted(cursor.fetchall())


def actors_since(last: int) -> set[str]:
    entries = AuditEntry.objects.filter(pk__gt=last).exclude(action__startswith="access.")
    return {entry.actor for entry in entries}


def test_the_matrix_has_every_route() -> None:
    assert {route.name for route in ROUTES} == set(RIGHTS)


def scopes_for(route: Route) -> set[str]:
    """What a caller without a tenant needs: what is the whole host's is for who reads all of it."""
    return {RIGHTS[route.name][0]} | ({READ} if route.name in OF_THE_HOST else set())


class TestARoute:
    @every_route
    def test_is_for_nobody_without_credentials(
        self, world: World, stranger: Client, route: Route
    ) -> None:
        at = ready(world, route)
        before = state_of_the_world()
        wrong = (
            ["nonsense", key_of()[:-1] + "!"] if THOROUGH or ROUTES.index(route) % 4 == 0 else []
        )
        for who in (None, *wrong, stranger):
            answer = route.asked(who, at)
            assert (answer.status, answer.code) == (401, "unauthenticated")
            assert "ApiKey" in answer.headers["www-authenticate"]
        ApiKey.objects.exclude(name="key of one").delete()
        assert state_of_the_world() == before

    @odd_routes
    def test_names_the_scope_that_is_missing(self, world: World, route: Route) -> None:
        at = ready(world, route)
        scope = RIGHTS[route.name][0]
        keys = [
            *([key_of()] if THOROUGH else []),
            key_of(*{READ, WRITE, KEYS, "admin", "*"} - {scope}),
        ]
        before = state_of_the_world()
        for key in keys:
            answer = route.asked(key, at)
            assert (answer.status, answer.code, answer.json["scope"]) == (
                403,
                "missing_scope",
                scope,
            )
        assert state_of_the_world() == before

    @every_route
    def test_is_for_a_person_with_the_permission_until_it_is_locked_out(
        self, world: World, bob: Client, route: Route
    ) -> None:
        at = ready(world, route)
        permission = RIGHTS[route.name][1]
        others = {needed for _, needed in RIGHTS.values() if needed != permission}
        # To change implies to view, as in the admin.
        others.discard(permission.replace("view", "change"))
        before = state_of_the_world()
        may(*others)
        answer = route.asked(bob, at)
        assert (answer.status, answer.code) == (403, "missing_permission")
        assert answer.json["permission"] == permission
        assert state_of_the_world() == before
        may(permission)
        answer = route.asked(bob, at)
        assert answer.status == (201 if route.name == "create_key" else 200), answer.body
        User.objects.update(is_active=False)
        assert route.asked(bob, at).status == 401

    @every_route
    def test_is_for_who_has_the_scope_and_leaves_an_entry_if_it_changes_something(
        self, world: World, route: Route
    ) -> None:
        key, at = key_of(*scopes_for(route)), ready(world, route)
        before = AuditEntry.objects.latest("pk").pk
        answer = route.asked(key, at)
        assert answer.status == (201 if route.name == "create_key" else 200), answer.body
        assert answer.headers["cache-control"] == "no-store"
        assert actors_since(before) == ({f"key:{key.split('_')[1]}"} if route.is_noted else set())

    @changes_of_rows
    def test_has_nothing_of_tenants_without_the_scope_to_read_them(
        self, theirs: World, route: Route
    ) -> None:
        key, at = key_of(RIGHTS[route.name][0]), ready(theirs, route)
        before = state_of_the_world()
        answer = route.asked(key, at)
        assert answer.status == 404 or answer.json.get("found") == 0, answer.body
        assert state_of_the_world() == before

    @every_route
    def test_has_nothing_of_another_tenants(self, theirs: World, route: Route) -> None:
        key = key_of(RIGHTS[route.name][0], tenant="globex")
        at = ready(theirs, route)
        before = state_of_the_world()
        answer = route.asked(key, at)
        if route.is_of_one:
            missing = route.asked(key, route.path.format(key=10**9, prefix="a" * 12))
            assert (answer.status, answer.code) == (404, "not_found")
            assert answer.body == missing.body
            assert answer.headers == missing.headers
        elif route.name not in {"create_key", "list_agents", "get_agent"}:
            lines = answer.json.get("items", [])
            told = [line for line in lines if line.get("tenant") != "globex"]  # its own key is
            assert told == []
            assert answer.json.get("found", 0) == 0
        assert b"theirs" not in answer.body
        if route.name != "create_key":
            assert state_of_the_world() == before

    @pytest.mark.parametrize("tenant", [thorough("acme"), "acme/berlin"])
    @even_routes
    def test_is_for_an_operator_of_the_tenant(self, their_world: World, route: Route) -> None:
        answer = route.asked(
            key_of(RIGHTS[route.name][0], tenant="acme"), ready(their_world, route)
        )
        if route.name in OF_THE_HOST:
            assert answer.status == 404 or answer.json["items"] == []
            return
        assert answer.status in {200, 201}, answer.body
        if "items" in answer.json:
            assert answer.json["items"] != []


class TestWhoeverOperatesAnAgent:
    @every_route
    def test_has_its_rows_and_nothing_else_and_leaves_entries_as_who_changed_it(
        self, world: World, route: Route
    ) -> None:
        key, at = operates("demo"), ready(world, route)
        before, last = state_of_the_world(), AuditEntry.objects.latest("pk").pk
        answer = route.asked(key, at)
        if route.name in OPERATED:
            assert answer.status == 200, answer.body
            assert answer.json.get("items") != []
            assert answer.json.get("found") != 0
            assert (state_of_the_world() != before) == route.is_change
        else:
            assert (answer.status, answer.code) == (403, "missing_scope")
            assert state_of_the_world() == before
        noted = route.is_noted and route.name in OPERATED
        assert actors_since(last) == ({f"key:{key.split('_')[1]}"} if noted else set())

    @odd_routes
    @rows("agent", ["tables", "gone"] if THOROUGH else ["tables"])
    def test_finds_nothing_of_another(self, world: World, route: Route, agent: str) -> None:
        key, at = operates(agent), ready(world, route)
        before = state_of_the_world()
        answer = route.asked(key, at)
        if route.name not in OPERATED:
            assert (answer.status, answer.code) == (403, "missing_scope")
        elif "{" in route.path:
            missing = route.asked(key, route.path.format(key=10**9, slug="nobody"))
            assert (answer.status, answer.code) == (404, "not_found")
            assert (answer.body, answer.headers) == (missing.body, missing.headers)
        else:
            lines = [line.get("slug") for line in answer.json.get("items", [])]
            assert lines in ([], [agent])
            assert answer.json.get("found", 0) == 0
        assert state_of_the_world() == before

    @pytest.mark.parametrize(
        ("tenant", "has"),
        [thorough("acme", True), ("acme/berlin", True), ("ACME", False), thorough("", False)],
    )
    @odd_routes
    def test_has_them_in_its_own_tenant(self, their_world: World, route: Route, has: bool) -> None:
        answer = route.asked(operates("demo", tenant="acme"), ready(their_world, route))
        if route.name in OPERATED and route.is_of_one:
            assert answer.status == (200 if has else 404)
        elif route.name in OPERATED - {"list_agents", "get_agent", "get_statistics", "get_usage"}:
            assert bool(answer.json.get("items") or answer.json.get("found")) == has

    @pytest.mark.parametrize("agent", [thorough("demo"), "*"])
    @even_routes
    def test_has_none_of_a_tenant_without_one(
        self, theirs: World, route: Route, agent: str
    ) -> None:
        key, at = operates(agent), ready(theirs, route)
        before = state_of_the_world()
        answer = route.asked(key, at)
        if route.name not in OPERATED:
            assert (answer.status, answer.code) == (403, "missing_scope")
        elif route.is_of_one:
            assert answer.status == 404
        elif route.name not in {"list_agents", "get_agent", "get_statistics", "get_usage"}:
            assert answer.json.get("items", []) == []
            assert answer.json.get("found", 0) == 0
        assert b"theirs" not in answer.body
        assert state_of_the_world() == before

    @pytest.mark.thorough  # the scopes by themselves are shown above
    @even_routes
    def test_has_those_of_all_tenants_with_the_scope_to_read(
        self, theirs: World, route: Route
    ) -> None:
        answer = route.asked(operates("demo", READ), ready(theirs, route))
        if route.name in OPERATED:
            assert answer.status == 200, answer.body
            assert answer.json.get("items") != []
            assert answer.json.get("found") != 0

    @pytest.mark.thorough  # the scopes by themselves are shown above
    @every_route
    def test_has_what_a_scope_gives_beside_it(self, world: World, route: Route) -> None:
        answer = route.asked(operates("tables", *scopes_for(route)), ready(world, route))
        assert answer.status in {200, 201}, answer.body


class UnnamedRightViewSet(HostViewSet[Task]):
    """A resource that names no right."""

    queryset = Task.objects.all()

    def list(self, request: Request) -> Response:
        return Response({})


def test_what_names_no_right_is_for_nobody() -> None:
    request = APIRequestFactory().get("/", headers={"X-API-Key": key_of(READ, WRITE, KEYS)})
    answer = UnnamedRightViewSet.as_view({"get": "list"})(request)
    assert (answer.status_code, answer.data["code"]) == (403, "missing_permission")


def test_all_resources_have_the_base_that_denies() -> None:
    viewsets: list[Any] = [viewset for _, viewset, _ in router.registry]
    assert [viewset for viewset in viewsets if not issubclass(viewset, HostViewSet)] == []
    assert {tuple(viewset.permission_classes) for viewset in viewsets} == {(HasRight,)}


def test_statistics_are_those_of_the_agents_that_are_operated() -> None:
    for agent in ("demo", "demo", "tables"):
        make_ended(agent=agent, tenant="acme")
    make_ended(tenant="other")

    def told(key: str) -> tuple[dict[str, int], bool]:
        answer = asked(key, "/api/v1/statistics").json
        names = {number["name"] for number in answer["numbers"]}
        return {line["name"]: line["ended"] for line in answer["agents"]}, "workers" in names

    assert told(operates("demo", tenant="acme")) == ({"demo": 2}, False)
    assert told(operates("tables", tenant="acme")) == ({"tables": 1}, False)
    assert told(operates("demo")) == ({}, False)
    assert told(key_of(READ, tenant="acme")) == ({"demo": 2, "tables": 1}, False)
    assert told(key_of(READ)) == ({"demo": 3, "tables": 1}, True)


def test_a_scope_to_read_does_not_widen_what_may_be_changed() -> None:
    world = populated()
    for agent, status in (("tables", 404), ("demo", 200)):
        key = operates(agent, READ)
        assert asked(key, f"/tasks/{world.task.pk}").status == 200
        assert asked(key, f"/tasks/{world.task.pk}/cancel", post=True).status == status


@pytest.mark.parametrize(
    ("grantee", "agent"), [("*", "demo"), ("scope:night", "*"), ("tenant:acme", "demo")]
)
def test_an_agent_is_operated_by_whoever_the_grant_means_until_it_is_withdrawn(
    grantee: str, agent: str
) -> None:
    key, at = key_of("night", tenant="acme"), f"/tasks/{populated('acme').task.pk}"
    grant(agent, grantee, "operate")
    assert asked(key, at).status == 200
    assert asked(None, at).status == 401
    withdraw(agent, grantee)
    assert asked(key, at).status == 403


@pytest.mark.parametrize("right", ["use", "see"])
def test_other_rights_open_nothing_here(right: str) -> None:
    at = f"/tasks/{populated().task.pk}"
    grant("*", "*", right)
    assert asked(key_of(), at).code == "missing_scope"


@routes_of_one
def test_a_person_of_a_tenant_has_its_rows_and_those_below_it_alone(
    worlds: dict[str, World], route: Route
) -> None:
    """As in the admin (`tests/integration/console/admin/test_staff.py`)."""
    bob = person(RIGHTS[route.name][1], tenants=("acme", "globex"))
    seen = [("acme", 200), ("ACME", 404), ("", 404), ("globex/berlin", 200)]
    for tenant, status in seen if THOROUGH else seen[len(route.name) % 2 :: 2]:
        found = route.asked(bob, ready(worlds[tenant], route)).status
        assert found == (404 if "budget" in route.name else status), tenant


@routes_of_one
def test_a_tenant_of_a_like_name_is_another(worlds: dict[str, World], route: Route) -> None:
    key = key_of(RIGHTS[route.name][0], tenant="acme")
    others = ["ACME/berlin", "acme-2", "acmes/berlin", ""]
    for tenant in others if THOROUGH else others[len(route.name) % 2 :: 2]:
        assert route.asked(key, ready(worlds[tenant], route)).status == 404, tenant
