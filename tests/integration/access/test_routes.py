"""A walk over every route of the host without credentials: what is public is named here, and nothing else answers.

A new route fails this test until it is named, with what it says to a stranger.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from a2a_project import health
from a2a_project.asgi import routes
from a2a_tasks.bindings.application import CARDS, Application
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.mounts import MOUNTS
from tests.support.bindings.client import Client
from tests.support.rows import rows
from tests.support.thorough import thorough

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.usefixtures("host")

#: Pages that anybody may see, and the status of a stranger's GET.
PUBLIC = {
    "": 200,
    "agents/": 200,
    "agents/<slug:slug>/": 404,  # an agent for whom there is none of this name; it lists those that are open
    "favicon.ico": 200,
    ".well-known/jwks.json": 200,
    "admin/login/": 200,
    "playground/hooks/": 200,  # an address for a page of the playground
}
#: Below it: whoever knows an address, which nobody can guess.
SECRET_ADDRESSES = {"playground/hooks/<str:name>", "handover/<str:token>", "handover/"}
#: The admin's own beside those of tables: a stranger is sent to the login.
ADMIN = {
    *(
        "",
        "find/",
        "tables/",
        "usage/",
        "connect/",
        "logout/",
        "password_change/",
        "password_change/done/",
        "autocomplete/",
        "jsi18n/",
    ),
    *(
        "t/<path:public_id>",
        "r/<path:content_type_id>/<path:object_id>/",
        "^(?P<app_label>APP)/$",
        "(?P<url>.*)$",
    ),
}
STOCK = {
    "",
    "add/",
    *(f"<path:object_id>/{page}" for page in ("", "history/", "delete/", "change/")),
}
#: By table: what its pages have beside the stock ones.
TABLES = {
    "a2a_push/attempt": set(),
    "a2a_push/delivery": {"<int:object_id>/replay/", "<int:object_id>/retry/"},
    "a2a_push/pushconfig": {"<int:object_id>/enable/"},
    "a2a_push/receiver": {
        f"<int:object_id>/{verb}/" for verb in ("disable", "enable", "replay", "test")
    },
    "a2a_tasks/apikey": set(),
    "a2a_tasks/agentswitch": {"agent/<slug:slug>/", "agent/<slug:slug>/set/"},
    "a2a_tasks/auditentry": {"verify/"},
    "a2a_tasks/budget": set(),
    "a2a_tasks/bulkjob": {f"<int:object_id>/{page}/" for page in ("progress", "results", "stop")},
    "a2a_tasks/budgetuse": {"<int:object_id>/decide/"},
    "a2a_tasks/worker": set(),
    "a2a_tasks/context": {"<int:object_id>/conversation/"},
    "a2a_tasks/grant": set(),
    "a2a_tasks/hold": set(),
    "a2a_tasks/run": set(),
    "a2a_tasks/task": {
        *("bulk/<slug:action>/", "export.<slug:form>", "<int:object_id>/files/<uuid:file_id>/"),
        *(f"<int:object_id>/{page}/" for page in ("cancel", "json", "run-again")),
        *("<int:object_id>/live/<slug:part>/", "news/", "views/"),
        "<int:object_id>/parts/<str:place>/<int:number>/<int:index>/",
    },
    "a2a_tasks/tenantretention": set(),
    "a2a_tasks/waiting": {
        *("answer_many/", "assign/", "<int:object_id>/answer/", "<int:object_id>/link/")
    },
    "auth/group": set(),
    "auth/user": {"<id>/password/"},
    "axes/accessattempt": set(),
}
#: The management API: who may what is in `tests/integration/console/api/test_who_may.py`. Its root leads to its page, which leads to the login.
API = {
    *("", "v1/", "v1/openapi.json", "v1/docs/", "v1/agents", "v1/agents/<slug:slug>"),
    *("v1/contexts", "v1/contexts/<int:key>", "v1/runs", "v1/runs/<int:key>", "v1/tasks"),
    *("v1/runs/<int:key>/lines", "v1/workers", "v1/waiting", "v1/statistics", "v1/usage"),
    *(f"v1/tasks/<int:key>{below}" for below in ("", "/cancel", "/events", "/runs")),
    *(f"v1/tasks/<int:key>/{verb}" for verb in ("answer", "assign", "handover", "run-again")),
    *(f"v1/tasks/{verb}" for verb in ("cancel", "run-again", "export")),
    "v1/tasks/<int:key>/diagnosis",
    *("v1/budgets", "v1/budgets/<int:key>", "v1/budget-uses", "v1/budget-uses/<int:key>"),
    *(f"v1/budget-uses/<int:key>/{verb}" for verb in ("allow", "refuse")),
    *("v1/keys", *(f"v1/keys/<slug:prefix>{below}" for below in ("", "/revoke", "/rotate"))),
    *(f"v1/webhooks/configs{below}" for below in ("", "/<int:key>", "/<int:key>/enable")),
    *(f"v1/webhooks/deliveries{below}" for below in ("", "/replay", "/<int:key>")),
    *(f"v1/webhooks/deliveries/<int:key>/{verb}" for verb in ("replay", "try-now")),
    *("v1/webhooks/receivers", "v1/webhooks/receivers/<int:key>"),
    *(f"v1/webhooks/receivers/<int:key>/{verb}" for verb in ("disable", "enable")),
}
#: Statuses that show a stranger nothing: sent to the login, refused, nothing there.
CLOSED = {302, 401, 403, 404}


def known() -> set[str]:
    tables = {f"admin/{table}/{page}" for table, own in TABLES.items() for page in STOCK | own}
    return (
        set(PUBLIC)
        | SECRET_ADDRESSES
        | {f"admin/{page}" for page in ADMIN}
        | {f"api/{page}" for page in API}
        | tables
    )


def patterns(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        text = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, text)
        else:
            assert isinstance(entry, URLPattern)
            yield re.sub(r"\(\?P<app_label>.*?\)", "(?P<app_label>APP)", text)


def an_address(pattern: str) -> str:
    made = pattern.replace("^(?P<app_label>APP)/$", "a2a_tasks/").replace("(?P<url>.*)$", "x/y")
    made = made.replace("<uuid:file_id>", str(uuid.UUID(int=1)))
    return "/" + re.sub(r"<.*?>", "1", made)


DJANGO = sorted(set(patterns(get_resolver())))


def test_every_route_of_django_is_named_here() -> None:
    assert set(DJANGO) == known()


def test_every_way_in_beside_django_is_named_here() -> None:
    assert set(routes.by_type.application_mapping) == {"http", "websocket"}
    assert {"/healthz", "/readyz"} == health.PATHS
    assert all(map(Application.serves, ["/agents", "/agents/x", "/.well-known/agent.json"]))
    others = ["/", "/admin/", "/api/", "/metrics", "/agentsx", "/.well-known/ai-catalog.json"]
    assert not any(map(Application.serves, others))
    assert Application.serves("/", "POST")
    assert not Application.serves("/admin/", "POST")


@pytest.mark.parametrize("verb", ["GET", *(thorough(verb) for verb in ("POST", "PUT", "DELETE"))])
@rows("pattern", DJANGO)
async def test_a_stranger_sees_no_page_but_the_public_ones(
    client: Client, settings: Settings, pattern: str, verb: str
) -> None:
    settings.A2A_PLAYGROUND = "1"
    if (verb, pattern) == ("POST", ""):
        return  # the protocol's, not Django's: `test_http.TestTheRoot`
    answer = await client.ask(verb, an_address(pattern))
    if verb == "GET" and pattern in PUBLIC:
        assert answer.status == PUBLIC[pattern]
        return
    assert answer.status in CLOSED | {405}, answer.body
    if answer.status == 302:
        assert (answer.header("location") or "").startswith(("/admin/", "/api/v1/docs/"))
    assert b"a2a-section" not in answer.body


@rows("path", ["/healthz", "/readyz", "/agents/", "/agents"])
async def test_who_looks_after_the_host_and_who_looks_for_agents_needs_none(
    client: Client, path: str
) -> None:
    assert (await client.get(path)).status == 200


async def test_statistics_are_for_listed_addresses(client: Client) -> None:
    assert (await client.get("/metrics")).status == 404


def mounts() -> Iterator[str]:
    yield from ["/agents/demo/", "/agents/demo/a2a/"]
    yield from (f"/agents/demo/{mount.path}/" for mount in MOUNTS.values())


@rows("mount", ["/", *mounts()])
@rows("name", ["/".join(card) for card in CARDS])
async def test_cards_are_for_everybody(client: Client, mount: str, name: str) -> None:
    answer = await client.get(mount + name)
    assert answer.status == 200
    assert answer.header("x-content-type-options") == "nosniff"


ROUTES = sorted(
    {
        (mount, verb, route.path)
        for dialect in DIALECTS.values()
        for route in dialect.rest.routes
        for verb in route.verbs
        for mount in (f"/agents/demo/{MOUNTS[dialect.code].path}/", "/agents/demo/")
    }
)


@rows(("mount", "verb", "path"), ROUTES)
async def test_no_route_over_http_answers_a_stranger(
    client: Client, mount: str, verb: str, path: str
) -> None:
    answer = await client.ask(verb, mount + re.sub(r"{.*?}", "1", path), b"{}")
    assert answer.status == 401
    assert answer.header("x-content-type-options") == "nosniff"


METHODS = sorted(
    (f"/agents/demo/{MOUNTS[code].path}/", method)
    for code, dialect in DIALECTS.items()
    for method in [*dialect.methods, "no/such/method"]
)


@rows(("mount", "method"), METHODS)
async def test_no_method_over_json_rpc_answers_a_stranger(
    client: Client, mount: str, method: str
) -> None:
    document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "1"}}
    for where in (mount, "/agents/demo/", "/agents/demo/a2a"):
        assert (await client.post(where, document)).status == 401


async def test_an_agent_that_is_not_there_is_not_there_for_a_stranger_either(
    client: Client,
) -> None:
    assert (await client.post("/agents/nobody/", {})).status == 404


BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@rows("path", ["/agents/", "/agents/demo/", "/agents/demo"])
async def test_browsers_get_pages_of_agents_and_programs_what_the_protocol_says(
    client: Client, path: str
) -> None:
    page = await client.get(path, BROWSER)
    assert page.status in {200, 301}
    assert (page.header("content-type") or "text/html").startswith("text/html")
    for accepted in ("*/*", "application/json", "text/event-stream"):
        answer = await client.get(path, {"accept": accepted})
        assert (answer.header("content-type") or "").startswith("application/")


async def test_a_misspelt_agent_names_those_that_exist_for_the_caller(client: Client) -> None:
    answer = await client.post("/agents/dmeo/message:send", {})
    assert answer.status == 404
    assert "The agents here: " in answer.json["error"]["message"]
    assert "demo" in answer.json["error"]["message"]
