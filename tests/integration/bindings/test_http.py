"""What HTTP itself has to say: verbs, content types, versions, credentials, mounts, headers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from a2a_project import health
from a2a_project.asgi import application
from a2a_tasks.agents import registry
from a2a_tasks.bindings.application import Application
from a2a_tasks.caller import Caller
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.cards import get_extended_agent_card
from a2a_tasks.protocol.errors import ExtendedAgentCardNotConfigured, Unauthenticated
from a2a_tasks.protocol.requests import GetExtendedAgentCardRequest
from tests.support.bindings.client import Client, Response
from tests.support.bindings.peers import Fault, Peer, message, no_leak, state_of
from tests.support.bindings.puppet import Puppet
from tests.support.rows import rows

AGENT = "/agents/demo"
A2A = "application/a2a+json"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
#: path: the verbs it has.
VERBS = {
    "": "POST",
    "/": "POST",
    "/a2a": "POST",
    "/a2a/1.0": "POST",
    "/message:send": "POST",
    "/message:stream": "POST",
    "/tasks": "GET",
    "/tasks/t": "GET",
    "/tasks/t:cancel": "POST",
    "/tasks/t:subscribe": "POST, GET",
    "/tasks/t/pushNotificationConfigs": "POST, GET",
    "/tasks/t/pushNotificationConfigs/c": "GET, DELETE",
    "/extendedAgentCard": "GET",
    "/.well-known/agent-card.json": "GET, HEAD",
    "/acme/tasks": "GET",
}


@pytest.fixture
def peer(http_peer: Peer) -> Peer:
    """A client over the bindings on HTTP: what is asked here is a matter of HTTP."""
    return http_peer


class TestAHeadThatMayMeanTwoThings:
    """Servers pass these on, and each reads them in its own way."""

    @pytest.mark.parametrize("path", ["/", "/healthz", AGENT + "/tasks"])
    @pytest.mark.parametrize(
        ("line", "version", "status"),
        [
            ((b"host", b"evil.example"), "1.1", 400),
            ((b"transfer-encoding", b"gzip, chunked"), "1.1", 501),
            ((b"accept", b"*/*"), "0.9", 400),
        ],
        ids=["two hosts", "a coding nobody undoes", "no version"],
    )
    async def test_is_refused(
        self, path: str, line: tuple[bytes, bytes], version: str, status: int
    ) -> None:
        async with Client(application).exchange("GET", path) as asked:
            asked.scope["headers"].append(line)
            asked.scope["http_version"] = version
            asked.upload(b"")
            answer = await asked.response()
        assert (answer.status, answer.header("connection")) == (status, "close")

    async def test_chunks_alone_are_no_such_thing(self) -> None:
        answer = await Client(application).ask(
            "GET", "/healthz", headers={"transfer-encoding": "Chunked"}
        )
        assert answer.status == 200


class TestAWrongVerb:
    @rows("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
    @rows(("path", "allowed"), VERBS.items())
    async def test_is_told_the_right_ones(
        self, client: Client, path: str, allowed: str, method: str
    ) -> None:
        response = await client.ask(method, AGENT + path)
        no_leak(response.body)
        assert response.status == 405
        assert set((response.header("allow") or "").split(", ")) == set(allowed.split(", "))

    async def test_over_json_rpc_is_an_error_of_json_rpc(self, client: Client) -> None:
        response = await client.get(AGENT)
        assert response.json == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32600, "message": "Method not allowed"},
        }

    @pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
    async def test_at_the_root_is_no_page_about_a_token(self, method: str) -> None:
        answer = await Client(application).ask(method, "/", b"{}")
        assert (answer.status, answer.body) == (405, b"")

    async def test_at_the_catalogue_too(self, client: Client) -> None:
        response = await client.post("/agents/", {})
        assert (response.status, response.header("allow")) == (405, "GET, HEAD")


class TestTheRoot:
    """Clients that know a host and no path send there."""

    async def test_answers_for_the_default_agent(self, client: Client, settings: Any) -> None:
        settings.A2A_DEFAULT_AGENT = "tables"
        here, there = await client.post("/", LIST), await client.post("/agents/tables/", LIST)
        assert (here.status, here.headers, here.body) == (there.status, there.headers, there.body)

    @rows("body", [b"", b"{", b"a=b"])
    async def test_tells_errors_in_json(self, client: Client, body: bytes) -> None:
        answer = await client.ask("POST", "/", body, {"content-type": "application/json"})
        assert (answer.status, answer.header("content-type")) == (200, "application/json")
        assert "error" in answer.json

    async def test_has_nothing_without_a_default_agent(self, client: Client, settings: Any) -> None:
        settings.A2A_DEFAULT_AGENT = ""
        answer = await client.post("/", LIST)
        assert (answer.status, answer.header("content-type")) == (404, "application/json")

    async def test_is_a_page_for_who_looks(self, client: Client) -> None:
        assert (await client.get("/")).header("content-type") == "text/html; charset=utf-8"


class TestAContentType:
    @rows(
        "said",
        [
            "application/json",
            "application/json; charset=utf-8",
            "APPLICATION/JSON",
            A2A,
            "application/vnd.x+json",
            "",
        ],
    )
    async def test_that_means_json_is_taken(self, peer: Peer, said: str) -> None:
        response = await peer.ask("SendMessage", message("echo hi"), {"content-type": said})
        assert state_of(peer.unwrapped(response)["task"]) == "completed"

    @rows(
        "said",
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x"],
    )
    async def test_of_something_else_is_refused(self, peer: Peer, said: str) -> None:
        response = await peer.ask("SendMessage", message("echo hi"), {"content-type": said})
        assert response.status == (415 if peer.name == "JSONRPC" else 400)
        with pytest.raises(Fault) as caught:
            peer.unwrapped(response)
        assert caught.value.reason == "CONTENT_TYPE_NOT_SUPPORTED"

    @rows(
        ("headers", "answered"),
        [
            ({}, "application/json"),
            ({"accept": "application/json"}, "application/json"),
            ({"accept": "*/*"}, "application/json"),
            ({"accept": A2A}, A2A),
            ({"accept": f"text/html, {A2A.upper()};q=0.5"}, A2A),
            ({"content-type": A2A}, A2A),
        ],
    )
    async def test_of_the_answer_over_http_is_the_clients(
        self, client: Client, host: None, headers: dict[str, str], answered: str
    ) -> None:
        for method, path, status in (
            ("GET", "/tasks", 200),
            ("GET", "/tasks/unknown", 404),
            ("POST", "/tasks/unknown:cancel", 404),
            ("GET", "/nothing", 404),
            ("PUT", "/tasks", 405),
        ):
            response = await client.ask(method, AGENT + path, headers=headers)
            assert (response.status, response.header("content-type")) == (status, answered)

    @rows("headers", [{}, {"accept": A2A}, {"content-type": A2A}])
    async def test_of_the_answer_over_json_rpc_is_json(
        self, client: Client, host: None, headers: dict[str, str]
    ) -> None:
        for document in (LIST, {}):
            response = await client.post(AGENT, document, headers)
            assert response.header("content-type") == "application/json"

    @rows("said", ["text/plain", "application/x-www-form-urlencoded"])
    async def test_matters_not_where_there_is_no_body(
        self, client: Client, host: None, said: str
    ) -> None:
        response = await client.ask(
            "POST", f"{AGENT}/tasks/t:cancel", headers={"content-type": said}
        )
        assert response.json["error"]["message"] == "Task not found"


class TestTheVersion:
    @rows("said", ["1.0", "1.0.7", " 1.0", ""])
    async def test_that_is_spoken_is_answered(self, peer: Peer, said: str) -> None:
        response = await peer.ask("ListTasks", {}, {"a2a-version": said})
        assert peer.unwrapped(response)["tasks"] == []
        assert response.header("a2a-version") == "1.0"

    @rows("said", ["0.5", "1.1", "99.0", "abc", "v1.0", "\xb2"])
    @rows("operation", ["ListTasks", "SendMessage", "SubscribeToTask"])
    async def test_that_nobody_speaks_is_refused(
        self, peer: Peer, operation: str, said: str
    ) -> None:
        params = {"id": "t"} if operation == "SubscribeToTask" else {}
        with pytest.raises(Fault) as caught:
            await peer.call(operation, params, {"a2a-version": said})
        assert caught.value.reason == "VERSION_NOT_SUPPORTED"
        assert caught.value.metadata["requestedVersion"] == said
        assert caught.value.metadata["supportedVersions"]

    @rows("name", ["A2A-Version", "a2a-version", "A2A-VERSION"])
    async def test_is_found_whatever_the_case_of_its_header(self, peer: Peer, name: str) -> None:
        _, path, body, headers = peer.request("ListTasks", {})
        del headers["a2a-version"]
        method = "POST" if body else "GET"
        response = await peer.client.ask(method, path, body, {**headers, name: "99.0"})
        with pytest.raises(Fault) as caught:
            peer.unwrapped(response)
        assert caught.value.reason == "VERSION_NOT_SUPPORTED"


class TestExtensions:
    async def test_in_force_are_named_in_the_answer(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        asked = {"a2a-extensions": "urn:x:two,urn:x:one/v2", "x-a2a-extensions": "urn:x:one"}
        response = await peer.ask("ListTasks", {}, asked)
        assert response.header("a2a-extensions") == "urn:x:one, urn:x:two"

    async def test_in_force_are_named_by_a_stream_too(self, peer: Peer, puppet: Puppet) -> None:
        peer = peer.at("/agents/puppet")
        headers = {"a2a-extensions": "urn:x:one"}
        async with peer.stream("SendStreamingMessage", message(), headers) as stream:
            assert stream.header("a2a-extensions") == "urn:x:one"
            (await puppet.hand()).end()

    @rows("asked", ["", ",", "urn:unknown", "urn:x:one/v2", "URN:X:ONE"])
    async def test_that_nobody_knows_are_not(self, peer: Peer, puppet: Puppet, asked: str) -> None:
        response = await peer.at("/agents/puppet").ask("ListTasks", {}, {"a2a-extensions": asked})
        assert response.header("a2a-extensions") is None


class TestTheHeaders:
    async def test_of_an_answer_say_what_it_depends_on(self, peer: Peer) -> None:
        response = await peer.ask("ListTasks")
        assert response.header("vary") == "A2A-Version, A2A-Extensions"
        assert response.header("content-length") == str(len(response.body))


class TestCredentials:
    @pytest.fixture(autouse=True)
    def closed(self, settings: Settings) -> None:
        """A host for known callers only."""
        settings.A2A_ANONYMOUS = "0"

    def challenged(self, response: Response) -> None:
        no_leak(response.body)
        assert response.status == 401, response
        assert response.header("www-authenticate")

    async def test_are_missed_before_anything_is_said_of_the_request(self, peer: Peer) -> None:
        """R-208: what is wrong with a request is told to callers, not to strangers."""
        self.challenged(await peer.ask("SendMessage", {}))
        self.challenged(await peer.ask("ListTasks", {"pageSize": 0}))

    @rows("path", [AGENT, f"{AGENT}/message:send"])
    async def test_are_missed_before_the_body_is_read(self, client: Client, path: str) -> None:
        async with client.exchange("POST", path, {"content-type": "application/json"}) as exchange:
            exchange.upload(b"{", more=True)
            exchange.upload(b"}", more=True)
            exchange.leave()
            self.challenged(await exchange.response())


class TestAMount:
    @rows("mount", ["", "/", "/a2a", "/a2a/", "/a2a/1.0", "/a2a/1.0/", "//a2a//1.0"])
    async def test_serves_json_rpc(self, client: Client, host: None, mount: str) -> None:
        response = await client.post(AGENT + mount, LIST)
        assert response.json["result"]["tasks"] == []

    @rows("mount", ["", "/a2a", "/a2a/1.0"])
    async def test_serves_http_with_and_without_tenant(
        self, client: Client, host: None, mount: str
    ) -> None:
        for path in ("/tasks", "/acme/tasks", "/tasks/"):
            response = await client.get(AGENT + mount + path)
            assert response.json["tasks"] == []


class TestAHostName:
    async def test_is_told_in_cards(self, client: Client, settings: Settings) -> None:
        response = await client.get("/.well-known/agent-card.json", {"host": "127.0.0.1:9"})
        urls = {interface["url"] for interface in response.json["supportedInterfaces"]}
        assert all(url.startswith("http://127.0.0.1:9/agents/demo/a2a/") for url in urls)


class TestAnExtendedCard:
    def call(self, caller: Caller, puppet: Puppet) -> CallContext:
        return CallContext(agent=puppet, caller=caller, base_url="https://example.com")

    @pytest.fixture
    def declared(self, puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> Puppet:
        monkeypatch.setattr(Puppet, "has_extended_card", True)
        return puppet

    async def test_is_for_callers_with_credentials(self, declared: Puppet, client: Client) -> None:
        response = await client.get("/agents/puppet/extendedAgentCard")
        assert response.status == 401
        assert response.header("www-authenticate")
        with pytest.raises(Unauthenticated):
            await get_extended_agent_card(
                GetExtendedAgentCardRequest(), self.call(Caller(), declared)
            )

    async def test_that_is_declared_but_missing_says_so(self, declared: Puppet) -> None:
        with pytest.raises(ExtendedAgentCardNotConfigured):
            await get_extended_agent_card(
                GetExtendedAgentCardRequest(), self.call(Caller(principal="user:1"), declared)
            )


class TestHealth:
    @rows("path", ["/healthz", "/readyz"])
    async def test_is_told_without_details(self, host: None, path: str) -> None:
        response = await Client(application).get(path)
        assert (response.status, response.json) == (200, {"status": "ok"})
        assert response.header("cache-control") == "no-store"

    async def test_says_that_the_tables_are_missing(
        self, host: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def ask() -> None:
            with connection.cursor() as cursor:
                cursor.execute("select 1 from a_table_of_a_migration_to_come")

        monkeypatch.setattr(health, "ask_database", ask)
        response = await Client(application).get("/readyz")
        assert response.status == 503
        assert "manage.py migrate" in response.json["status"]


class TestTheOtherPaths:
    async def test_are_djangos(self, client: Client, host: None) -> None:
        response = await client.get("/admin/login/")
        assert response.status == 200
        assert b"csrf" in response.body

    async def test_serve_agents_that_are_on_and_no_others(self, client: Client) -> None:
        response = await client.get("/agents/")
        named = {card["name"] for card in response.json["agents"]}
        assert named == {agent.name for agent in registry.agents()}
        assert "Bare" not in named
        assert json.loads(response.body) == (await client.get("/agents")).json


class TestTheRoutesBelowTheRoot:
    """Clients that know only the address of the site reach the default agent over HTTP+JSON, too."""

    @rows("below", ["", "/v1"])
    async def test_answers_the_routes_of_the_default_agent(self, host: None, below: str) -> None:
        site = Client(application)
        body = json.dumps(message("echo root") if not below else V03).encode()
        headers = {"content-type": "application/json"}
        sent = (await site.post(f"{below}/message:send", body, headers)).json
        task = sent.get("task") or sent
        assert (await site.get(f"{below}/tasks/{task['id']}")).json["id"] == task["id"]
        assert (await site.post(f"{below}/message:stream", body, headers)).status == 200
        again = await site.post(f"{below}/tasks/{task['id']}:cancel", b"{}", headers)
        assert again.status in {400, 409}
        assert (await site.get("/tasks")).status == 200

    async def test_tells_those_who_left_out_the_slash_of_an_address(self, host: None) -> None:
        """`new URL(".well-known/agent-card.json", "http://host/agents/demo")` is beside the agent."""
        answer = await Client(application).get("/agents/.well-known/agent-card.json")
        assert answer.status == 404
        assert "ends with a slash" in answer.json["error"]["message"]

    async def test_leaves_them_to_a_project_that_has_the_host_beside_its_pages(
        self, settings: Settings
    ) -> None:
        assert Application.serves("/tasks")
        settings.ROOT_URLCONF = "shop.urls"
        for path in ("/tasks", "/v1/tasks", "/message:send", "*"):
            assert not Application.serves(path)
        assert Application.serves("/", "POST")


V03 = {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "echo root"}]}}


class TestSlashes:
    """Slashes too many or too few: a redirect would lose the body of a POST, since clients repeat it as a GET."""

    RPC = ("", "/", "//", "/a2a", "/a2a/", "/a2a/1.0", "/a2a/1.0/", "/a2a/1.0//")
    REST = ("/message:send", "/message:send/", "//message:send", "/a2a/1.0/message:send/")
    ROOT = ("/message:send/", "/v1/message:send/", "//message:send", "//agents/demo/message:send")

    @rows(
        "path",
        ["/", "//", *(f"/agents/demo{end}" for end in RPC), "/agents//demo/", "//agents/demo/"],
    )
    async def test_of_an_address_do_not_matter(self, host: None, path: str) -> None:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("echo hi")}
        answer = await Client(application).post(path, asked, {"a2a-version": "1.0"})
        assert "task" in answer.json["result"]

    @rows("path", [*(f"/agents/demo{end}" for end in REST), *ROOT])
    async def test_of_a_route_do_not_matter(self, host: None, path: str) -> None:
        sent = V03 if path.startswith("/v1") else message("echo hi")
        answer = await Client(application).post(path, sent)
        assert "task" in answer.json

    @rows("path", ["/agents", "/agents/none", "/agents/demo/none/", "/api/v1/tasks/1/cancel/"])
    async def test_of_nothing_are_no_redirect(self, host: None, path: str) -> None:
        answer = await Client(application).post(path, message())
        assert answer.status in {401, 403, 404, 405}
        assert answer.header("location") is None
