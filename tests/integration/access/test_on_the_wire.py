"""Every scheme opens every binding in every dialect, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from a2a_project.asgi import application
from a2a_project.trusted_proxies import behind_proxies
from a2a_tasks.access.api_keys import issue, rotate
from a2a_tasks.agents import Agent
from a2a_tasks.agents.security import API_KEY, BASIC, BEARER, MUTUAL_TLS, SCHEMES
from a2a_tasks.bindings.http import ASGIApp, Receive, Scope, Send
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.test_users_and_certificates import PASSWORD, basic
from tests.support.access.certificates import as_in_rfc_9440, certificate
from tests.support.access.issuer import Issuer
from tests.support.bindings.client import Client, Response
from tests.support.bindings.peers import PEERS, Fault, Peer, message
from tests.support.dialects.clients import WIRES, Refused, Wire

pytestmark = [pytest.mark.usefixtures("host"), pytest.mark.in_turn("binding", share=2)]
Show = Callable[[str], Awaitable[dict[str, str]]]


def bearing(headers: Mapping[str, str], app: ASGIApp = application) -> ASGIApp:
    """The host, for a client that sends these headers with every request."""
    more = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "headers": [*scope["headers"], *more]}, receive, send)

    return asked


def challenges(response: Response) -> list[str]:
    return [value for name, value in response.headers if name == "www-authenticate"]


@pytest.fixture
def show(issuer: Issuer, settings: Any) -> Show:
    """A host that accepts every scheme, and good credentials of each."""
    settings.A2A_BASIC = True
    settings.A2A_MTLS_PEERS = "127.0.0.1"

    async def credentials(scheme: str) -> dict[str, str]:
        if scheme == BEARER:
            return {"authorization": f"Bearer {issuer.token()}"}
        if scheme == API_KEY:
            return {"x-api-key": (await run_in_thread(issue, "test")).key}
        if scheme == BASIC:
            await run_in_thread(User.objects.create_user, "alice", password=PASSWORD)
            return basic("alice")
        return {"client-cert": as_in_rfc_9440(certificate("alice"))}

    return credentials


#: Credentials that are none; a session is not even looked at.
WRONG: list[dict[str, str]] = [
    {"authorization": "Bearer x.y.z"},
    {"x-api-key": "a2a_aaaaaaaaaaaa_" + "A" * 43},
    basic("mallory"),
    {"client-cert": "x"},
    {"cookie": "sessionid=x"},
]


def at(wire: Wire, headers: Mapping[str, str], slug: str = "demo") -> Wire:
    """The wire's client, with these headers, at an agent."""
    return wire.of(Client(bearing(headers)), slug)


@pytest.mark.in_turn("wire", share=3)
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.django_db
class TestEveryWire:
    async def test_opens_to_every_scheme(self, wire: Wire, show: Show) -> None:
        for scheme in SCHEMES:
            known = at(wire, await show(scheme))
            view = await known.send("echo hi")
            assert view.status.word == "completed"
            assert (await known.get(view.id)).id == view.id
            async with known.stream("echo hi") as watch:
                assert await watch.rest()

    async def test_stays_closed_to_wrong_credentials(self, wire: Wire, show: Show) -> None:
        for headers in WRONG:
            unknown = at(wire, headers)
            for ask in (unknown.send("echo hi"), unknown.get("t"), self.streamed(unknown)):
                with pytest.raises(Refused) as found:
                    await ask
                assert found.value.response.status == 401
                told = challenges(found.value.response)
                named = [text.split()[0] for text in told]
                assert named == ["Bearer", "ApiKey", "Basic", "MutualTLS"]
                assert ('error="invalid_token"' in told[0]) == ("cookie" not in headers)

    async def streamed(self, wire: Wire) -> None:
        async with wire.stream("echo hi"):
            pass

    async def test_says_which_scope_is_missing(
        self, wire: Wire, show: Show, guarded: Agent
    ) -> None:
        made = await run_in_thread(issue, "test", scopes=["invoices"])
        with pytest.raises(Refused) as found:
            await at(wire, {"x-api-key": made.key}, "guarded").send("hi")
        response = found.value.response
        assert response.status == 403
        assert b"invoices:write" in response.body
        assert challenges(response) == [
            'Bearer realm="a2a", error="insufficient_scope", scope="invoices invoices:write"'
        ]


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name)
def binding(request: pytest.FixtureRequest) -> type[Peer]:
    made: type[Peer] = request.param
    return made


async def keyed(binding: type[Peer], slug: str = "demo", **about: Any) -> Peer:
    made = await run_in_thread(issue, "test", **about)
    return binding(Client(bearing({"x-api-key": made.key}), f"/agents/{slug}"))


class TestACaller:
    async def test_keeps_them_when_its_key_is_rotated(self, binding: type[Peer]) -> None:
        old = await run_in_thread(issue, "test")
        task = await binding(Client(bearing({"x-api-key": old.key}), "/agents/demo")).send()
        new = await run_in_thread(rotate, old.row.prefix, timedelta(0))
        later = binding(Client(bearing({"x-api-key": new.key}), "/agents/demo"))
        assert (await later.call("GetTask", {"id": task["id"]}))["id"] == task["id"]

    async def test_of_a_tenant_names_tenants_below_it_as_long_as_can_be_kept(
        self, binding: type[Peer]
    ) -> None:
        known = await keyed(binding, tenant="t" * 128)
        for length, fits in ((127, True), (128, False)):
            asked = known.ask("SendMessage", {**message("echo hi"), "tenant": "x" * length})
            response = await asked
            assert response.status < 500, response
            assert (b"TASK_STATE_COMPLETED" in response.body) == fits

    async def test_and_its_scopes_are_known_to_the_agent(
        self, binding: type[Peer], guarded: Agent
    ) -> None:
        alice = await keyed(binding, "guarded", scopes=["invoices", "invoices:write"])
        task = await alice.send("hi")
        assert task["artifacts"][0]["parts"][0]["text"].endswith(" invoices invoices:write")

    async def test_is_kept_from_a_skill_whose_scope_it_lacks(
        self, binding: type[Peer], guarded: Agent
    ) -> None:
        all_but = ["invoices", "invoices:write"]
        task = await (await keyed(binding, "guarded", scopes=all_but)).send("pay")
        assert task["status"]["state"] == "TASK_STATE_FAILED"
        assert "the scope: pay" in task["status"]["message"]["parts"][0]["text"]
        paying = await keyed(binding, "guarded", scopes=[*all_but, "pay"])
        assert (await paying.send("pay"))["status"]["state"] == "TASK_STATE_COMPLETED"


class TestTwoCredentials:
    async def test_are_none_however_good(self, binding: type[Peer], show: Show) -> None:
        for other in (BEARER, BASIC):
            both = {**await show(API_KEY), **await show(other)}
            response = await binding(Client(bearing(both), "/agents/demo")).ask("ListTasks")
            assert response.status == 401

    async def test_a_certificate_of_the_connection_is_no_second_one(
        self, binding: type[Peer], show: Show
    ) -> None:
        both = {**await show(API_KEY), **await show(MUTUAL_TLS)}
        peer = binding(Client(bearing(both), "/agents/demo"))
        task = await peer.send()
        alone = await keyed(binding)
        with pytest.raises(Fault, match="not found"):
            await alone.call("GetTask", {"id": task["id"]})


class TestAnAgent:
    async def test_may_accept_fewer_schemes_than_the_host(
        self, binding: type[Peer], guarded: Agent, show: Show, issuer: Issuer
    ) -> None:
        type(guarded).schemes, type(guarded).scopes = [BEARER], []
        refused = await (await keyed(binding, "guarded")).ask("ListTasks")
        assert refused.status == 401
        assert [text.split()[0] for text in challenges(refused)] == ["Bearer"]
        token = issuer.token(aud="https://agents.example.com/agents/guarded")
        headers = {"authorization": f"Bearer {token}"}
        bearer = binding(Client(bearing(headers), "/agents/guarded"))
        assert (await bearer.call("ListTasks"))["totalSize"] == 0

    async def test_that_asks_for_scopes_is_closed_on_an_open_host(
        self, binding: type[Peer], guarded: Agent, settings: Any
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        response = await binding(Client(application, "/agents/guarded")).ask("ListTasks")
        assert response.status == 401
        assert challenges(response) == ['ApiKey realm="a2a", in="header", name="X-API-Key"']


class TestAnOpenHost:
    async def test_takes_wrong_credentials_for_wrong_and_not_for_none(
        self, binding: type[Peer], settings: Any
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        assert (await binding(Client(application, "/agents/demo")).ask("ListTasks")).status == 200
        for headers in ({"x-api-key": "x"}, {"authorization": "Bearer x"}):
            wrong = binding(Client(bearing(headers), "/agents/demo"))
            assert (await wrong.ask("ListTasks")).status == 401

    async def test_knows_whoever_wants_to_be_known(
        self, binding: type[Peer], settings: Any
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        task = await (await keyed(binding)).send()
        with pytest.raises(Fault, match="not found"):
            await binding(Client(application, "/agents/demo")).call("GetTask", {"id": task["id"]})

    async def test_asks_for_credentials_before_it_shows_an_extended_card(
        self, binding: type[Peer], guarded: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        type(guarded).scopes, type(guarded).has_extended_card = (), True
        monkeypatch.setattr(type(guarded), "extended_card", lambda self, card, caller: card)
        unknown = await binding(Client(application, "/agents/guarded")).ask("GetExtendedAgentCard")
        assert unknown.status == 401
        assert challenges(unknown)
        card = await (await keyed(binding, "guarded")).call("GetExtendedAgentCard")
        assert "apiKey" in card["securitySchemes"]


class TestASession:
    async def test_of_the_admin_opens_pages_and_nothing_of_the_protocol(
        self, binding: type[Peer]
    ) -> None:
        def log_in() -> str:
            browser = Browser()
            browser.force_login(User.objects.create_superuser("root"))
            assert browser.get("/admin/").status_code == 200
            return browser.cookies["sessionid"].value

        cookie = {"cookie": f"sessionid={await run_in_thread(log_in)}"}
        response = await binding(Client(bearing(cookie), "/agents/demo")).ask("ListTasks")
        assert response.status == 401


class TestBehindAProxy:
    """The launchers put the client's address where the proxy's was; a certificate is still the proxy's word."""

    async def asked(self, peer: str, headers: Mapping[str, str]) -> int:
        """The status of what a peer asks for."""
        proxied = behind_proxies(application, ["127.0.0.1"])

        async def from_peer(scope: Scope, receive: Receive, send: Send) -> None:
            await proxied({**scope, "client": (peer, 5000)}, receive, send)

        peer_of = PEERS[0](Client(bearing(headers, from_peer), "/agents/demo"))
        return (await peer_of.ask("ListTasks")).status

    async def test_a_certificate_counts_by_who_sends_it_not_for_whom(self, settings: Any) -> None:
        settings.A2A_MTLS_PEERS = "127.0.0.1"
        shown = {"client-cert": as_in_rfc_9440(certificate("alice"))}
        assert await self.asked("127.0.0.1", {**shown, "x-forwarded-for": "8.8.8.8"}) == 200
        assert await self.asked("8.8.8.8", {**shown, "x-forwarded-for": "127.0.0.1"}) == 401
        assert await self.asked("8.8.8.8", shown) == 401

    async def test_one_written_by_the_client_beside_the_proxys_is_refused(
        self, settings: Any
    ) -> None:
        settings.A2A_MTLS_PEERS = "127.0.0.1"
        mine, proxys = certificate("root"), certificate("mallory")
        both = bearing(
            {"client-cert": as_in_rfc_9440(mine)}, bearing({"Client-Cert": as_in_rfc_9440(proxys)})
        )
        assert (await PEERS[0](Client(both, "/agents/demo")).ask("ListTasks")).status == 401


@pytest.mark.django_db
@pytest.mark.parametrize("scheme", [BEARER, API_KEY, BASIC, MUTUAL_TLS])
async def test_a_refusal_is_the_same_whatever_was_wrong(scheme: str, show: Show) -> None:
    wrong = {
        BEARER: [{"authorization": "Bearer x"}, {"authorization": "Bearer a.b.c"}],
        API_KEY: [{"x-api-key": "x"}, {"x-api-key": "a2a_aaaaaaaaaaaa_" + "A" * 43}],
        BASIC: [basic("nobody"), {"authorization": "Basic x"}],
        MUTUAL_TLS: [{"client-cert": "x"}, {"client-cert": ":AAAA:"}],
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    answers = [
        await Client(application, "/agents/demo").post("/", call, headers)
        for headers in wrong[scheme]
    ]
    first = answers[0]
    assert all((one.status, one.body) == (first.status, first.body) for one in answers)
    assert json.loads(first.body)["error"]["message"] == "The credentials are not valid"
