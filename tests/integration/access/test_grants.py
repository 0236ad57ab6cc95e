"""Agents for those they were granted to: to everybody else they are missing, on every route, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.access import authentication, grants
from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.access.credentials import Credentials, ShownCredential, read_credential
from a2a_tasks.access.grants import GrantRight, grant, is_grantee, rights, withdraw
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents.security import check
from a2a_tasks.caller import ANONYMOUS, Caller
from a2a_tasks.checks import check_settings
from a2a_tasks.models import Grant
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.store.db import run_in_thread
from tests.integration.access.statements import statements
from tests.integration.access.test_on_the_wire import bearing, challenges
from tests.integration.access.test_users_and_certificates import basic
from tests.support.access.certificates import certificate, thumbprint
from tests.support.access.issuer import AUDIENCE, Issuer
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client, Response
from tests.support.bindings.peers import PEERS, Peer
from tests.support.rows import rows
from tests.support.thorough import thorough

pytestmark = pytest.mark.usefixtures("host")

SECRET, MISSING = "secret", "missing"


async def told(turn: Any) -> Any:
    yield turn.caller.principal


@pytest.fixture(autouse=True)
def secret(settings: Any) -> Iterator[Agent]:
    """An agent that is listed, on a host whose others are open."""
    settings.A2A_POLL_SECONDS = 3600.0
    settings.A2A_DOORS, settings.A2A_PUBLIC_URL = "catalog", AUDIENCE
    with playing(told, slug=SECRET, grants="listed", has_extended_card=True) as agent:
        yield agent


async def keyed(**about: Any) -> tuple[dict[str, str], str]:
    """Credentials, and whose they are."""
    made = await run_in_thread(issue, "test", **about)
    return {"x-api-key": made.key}, principal_of(made.row)


def caller(**about: Any) -> Caller:
    return Caller(principal="key:a", **about)


ROUTES: list[tuple[str, str, object]] = [
    ("GET", "/.well-known/agent-card.json", None),
    ("HEAD", "/.well-known/agent-card.json", None),
    ("POST", "/.well-known/agent-card.json", {}),
    ("GET", "/.well-known/agent.json", None),
    ("POST", "/", {"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": {"id": "t"}}),
    ("POST", "/", {"jsonrpc": "2.0", "id": 7, "method": "GetExtendedAgentCard"}),
    ("POST", "/", {"jsonrpc": "2.0", "id": 7, "method": "agent/getCard", "params": {}}),
    ("POST", "/", "not even JSON-RPC"),
    ("GET", "/", None),
    ("GET", "/tasks/t", None),
    ("GET", "/tasks", None),
    ("GET", "/v1/card", None),
    ("GET", "/extendedAgentCard", None),
    ("POST", "/message:send", {"message": {}}),
    ("POST", "/message:stream", {"message": {}}),
    ("GET", "/tasks/t:subscribe", None),
    ("POST", "/tasks/t:cancel", {}),
    ("GET", "/a2a/9.9/tasks", None),
    ("DELETE", "/nothing/like/that", None),
    *[
        (verb, f"/{mount.path}{rest}", body)
        for mount in MOUNTS.values()
        for verb, rest, body in (
            ("GET", "/.well-known/agent-card.json", None),
            (
                "POST",
                "/",
                {"jsonrpc": "2.0", "id": 7, "method": "tasks/get", "params": {"id": "t"}},
            ),
        )
    ],
]


#: The read of the database's clock, which comes every ten seconds, whatever is asked.
CLOCK = "select extract(epoch from clock_timestamp())"


async def both(
    route: tuple[str, str, object], headers: dict[str, str]
) -> tuple[list[Response], list[list[str]]]:
    """The answers of the agent that is not there, and of the one that was not granted; and what was asked for them."""
    verb, path, body = route
    answers, looks = [], []
    for slug in (MISSING, SECRET):
        client = Client(bearing(headers), f"/agents/{slug}")
        grants.forget()
        with statements() as said:
            text = b"" if body is None else json.dumps(body).encode()
            answers.append(await client.ask(verb, path, text, {"content-type": "application/json"}))
        looks.append([one for one in said if CLOCK not in one])
    return answers, looks


@pytest.mark.django_db
class TestWhatWasNotGranted:
    @rows("route", [pytest.param(route, id=" ".join(route[:2])) for route in ROUTES])
    async def test_is_missing_on_every_route(self, route: tuple[str, str, object]) -> None:
        known, _ = await keyed(tenant="acme", scopes=["billing"])
        await run_in_thread(grant, SECRET, "key:somebody", "use")
        await run_in_thread(grant, SECRET, "tenant:umbrella", "use")
        await Client(bearing(known)).get("/agents/")  # the key is known now
        for headers in ({}, known):
            (missing, foreign), (looked, looked_again) = await both(route, headers)
            assert foreign == missing
            assert missing.status == 404
            assert looked_again == looked
            assert len(looked) >= 1

    @pytest.mark.parametrize(
        "headers",
        [{"x-api-key": "x"}, {"authorization": "Bearer x.y.z"}, basic("mallory")],
        ids=["key", "token", "password"],
    )
    async def test_refuses_wrong_credentials_as_what_is_missing_does(
        self, headers: dict[str, str]
    ) -> None:
        for route in ROUTES:
            (missing, foreign), (looked, looked_again) = await both(route, headers)
            assert foreign == missing
            assert missing.status == 401
            assert challenges(missing)
            assert looked_again == looked

    async def test_refuses_a_token_for_another_audience_as_what_is_missing_does(
        self, issuer: Issuer
    ) -> None:
        token = issuer.token(aud="https://agents.example.com/agents/demo")
        await run_in_thread(grant, SECRET, "*", "use")
        headers = {"authorization": f"Bearer {token}"}
        await Client(bearing(headers)).get("/agents/")
        (missing, foreign), _ = await both(ROUTES[4], headers)
        assert foreign == missing
        assert missing.status == 401

    async def test_is_not_in_the_catalogue_nor_on_the_front_page(self) -> None:
        known, principal = await keyed()
        await run_in_thread(grant, SECRET, principal, "see")
        assert SECRET not in await catalogue({})
        assert SECRET in await catalogue(known)
        assert SECRET not in await run_in_thread(front_page)
        await run_in_thread(grant, SECRET, "*", "see")
        assert SECRET in await catalogue({})
        assert SECRET in await run_in_thread(front_page)

    async def test_is_in_the_catalogue_for_tokens_for_it_or_the_host_alone(
        self, issuer: Issuer, settings: Any
    ) -> None:
        await run_in_thread(grant, SECRET, "tenant:acme", "see")
        settings.A2A_JWT_TENANT_CLAIM = "org"
        host = "https://agents.example.com"
        for aud, shows in (
            (host, True),
            (f"{host}/agents/{SECRET}", True),
            (f"{host}/agents/demo", False),
        ):
            token = issuer.token(aud=aud, org="acme")
            assert (SECRET in await catalogue({"authorization": f"Bearer {token}"})) is shows

    async def test_is_in_no_catalogue_for_a_bound_token_without_its_certificate(
        self, issuer: Issuer
    ) -> None:
        token = issuer.token(cnf={"x5t#S256": thumbprint(certificate("alice"))})
        answer = await Client(bearing({"authorization": f"Bearer {token}"})).get("/agents/")
        assert answer.status == 401

    async def test_leaves_the_others_as_they_are(self) -> None:
        known, _ = await keyed()
        agents = [agent.slug for agent in registry.agents() if agent.slug != SECRET]
        assert await catalogue({}) == await catalogue(known) == agents
        card = await Client(bearing({}), "/agents/demo").get("/.well-known/agent-card.json")
        assert card.status == 200
        assert "public" in (card.header("cache-control") or "")


async def catalogue(headers: dict[str, str]) -> list[str]:
    """The slugs of the agents in the catalogue, as these credentials see it; the AI catalog has the same."""
    client, shown = Client(bearing(headers)), []
    for path, member in (("/agents/", "agents"), ("/.well-known/ai-catalog.json", "entries")):
        answer = await client.get(path)
        assert answer.status == 200
        assert answer.header("cache-control") == "private, max-age=60"
        assert answer.header("vary") == "Authorization, X-API-Key"
        urls = [
            one.get("url") or one["supportedInterfaces"][0]["url"] for one in answer.json[member]
        ]
        shown.append([url.split("/agents/")[1].split("/")[0] for url in urls])
    assert shown[0] == shown[1]
    return shown[0]


def front_page() -> list[str]:
    text = Browser().get("/", headers={"host": "localhost:8000"}).content.decode()
    return [agent.slug for agent in registry.agents() if f'id="{agent.slug}"' in text]


@pytest.mark.in_turn("binding", share=2)
@pytest.mark.parametrize("binding", PEERS, ids=lambda peer: peer.name)
class TestWhatWasGranted:
    @pytest.mark.parametrize(
        ("to", "agent"),
        [("principal", SECRET), ("scope:billing", "*"), ("tenant:acme", SECRET), ("*", "*")]
        + [thorough(*left) for left in (("principal", "*"), ("scope:billing", SECRET))]
        + [thorough(*left) for left in (("tenant:acme", "*"), ("*", SECRET))],
    )
    async def test_is_used(self, binding: type[Peer], to: str, agent: str) -> None:
        known, principal = await keyed(tenant="acme", scopes=["billing"])
        peer = binding(Client(bearing(known), f"/agents/{SECRET}"))
        assert (await peer.ask("ListTasks")).status == 404
        await run_in_thread(grant, agent, principal if to == "principal" else to, "use")
        task = await peer.send()
        assert task["artifacts"][0]["parts"][0]["text"] == principal
        assert (await peer.call("GetTask", {"id": task["id"]}))["id"] == task["id"]
        card = await peer.client.get("/.well-known/agent-card.json")
        assert card.status == 200
        assert card.header("cache-control") == "private, max-age=60"
        assert card.header("vary") == "A2A-Version, Accept, Authorization, X-API-Key"

    async def test_has_the_credentials_of_a_request_read_once(
        self, binding: type[Peer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known, principal = await keyed()
        await run_in_thread(grant, SECRET, principal, "use")
        reads: list[Credentials] = []

        def read(credentials: Credentials) -> ShownCredential | None:
            reads.append(credentials)
            return read_credential(credentials)

        monkeypatch.setattr(authentication, "read_credential", read)
        peer = binding(Client(bearing(known), f"/agents/{SECRET}"))
        assert (await peer.ask("ListTasks")).status == 200
        assert len(reads) == 1

    async def test_is_missing_again_when_it_was_taken_away(self, binding: type[Peer]) -> None:
        known, principal = await keyed()
        peer = binding(Client(bearing(known), f"/agents/{SECRET}"))
        await run_in_thread(grant, SECRET, principal, "use")
        assert (await peer.ask("ListTasks")).status == 200
        assert await run_in_thread(withdraw, SECRET, principal) == 1
        assert (await peer.ask("ListTasks")).status == 404

    @pytest.mark.parametrize("right", ["see", "operate"])
    async def test_may_be_seen_and_not_used(self, binding: type[Peer], right: str) -> None:
        known, principal = await keyed()
        await run_in_thread(grant, SECRET, principal, right)
        peer = binding(Client(bearing(known), f"/agents/{SECRET}"))
        assert (await peer.client.get("/.well-known/agent-card.json")).status == 200
        refused = await peer.ask("ListTasks")
        assert refused.status == 403
        assert b"not use it" in refused.body

    async def test_to_be_seen_by_everybody_asks_for_credentials(self, binding: type[Peer]) -> None:
        await run_in_thread(grant, SECRET, "*", "see")
        peer = binding(Client(bearing({}), f"/agents/{SECRET}"))
        assert (await peer.client.get("/.well-known/agent-card.json")).status == 200
        refused = await peer.ask("ListTasks")
        assert refused.status == 401
        assert challenges(refused)

    async def test_to_everybody_is_for_anonymous_callers_where_these_are_let_in(
        self, binding: type[Peer], settings: Any
    ) -> None:
        await run_in_thread(grant, SECRET, "*", "use")
        peer = binding(Client(bearing({}), f"/agents/{SECRET}"))
        assert (await peer.ask("ListTasks")).status == 401
        settings.A2A_ANONYMOUS = "1"
        assert (await peer.ask("ListTasks")).status == 200

    async def test_to_some_is_for_no_anonymous_caller_of_an_open_host(
        self, binding: type[Peer], settings: Any
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        await run_in_thread(grant, SECRET, "tenant:acme", "use")
        peer = binding(Client(bearing({}), f"/agents/{SECRET}"))
        assert (await peer.ask("ListTasks")).status == 404

    async def test_does_not_replace_the_scopes_an_agent_asks_for(
        self, binding: type[Peer], secret: Agent
    ) -> None:
        type(secret).scopes = ["invoices"]
        known, principal = await keyed()
        await run_in_thread(grant, SECRET, principal, "use")
        peer = binding(Client(bearing(known), f"/agents/{SECRET}"))
        refused = await peer.ask("ListTasks")
        assert refused.status == 403
        assert b"invoices" in refused.body


class TestAHostWhereAllAreListed:
    async def test_has_the_card_at_its_root_for_those_it_was_granted_to(
        self, settings: Any
    ) -> None:
        settings.A2A_GRANTS = "listed"
        known, principal = await keyed()
        for headers in ({}, known):
            assert (
                await Client(bearing(headers)).get("/.well-known/agent-card.json")
            ).status == 404
            assert await catalogue(headers) == []
        await run_in_thread(grant, "demo", principal, "use")
        assert (await Client(bearing(known)).get("/.well-known/agent-card.json")).status == 200
        assert (await Client(bearing({})).get("/.well-known/agent-card.json")).status == 404
        assert await catalogue(known) == ["demo"]

    async def test_may_have_agents_that_are_open(self, settings: Any, secret: Agent) -> None:
        settings.A2A_GRANTS, type(secret).grants = "listed", "open"
        known, _ = await keyed()
        assert await catalogue(known) == [SECRET]


class TestAPolicyThatIsNone:
    async def test_lets_nobody_in_and_is_a_mistake(self, settings: Any) -> None:
        settings.A2A_GRANTS, settings.A2A_VISIBILITY = "Open", "everybody"
        assert await catalogue({}) == []
        mistakes = [str(mistake.msg) for mistake in check_settings()]
        assert mistakes == [
            "A2A_GRANTS must be one of open, listed",
            "A2A_VISIBILITY must be one of own, tenant",
        ]


class TestAHostWhereAllAreOpen:
    async def test_asks_for_no_grants(self, secret: Agent) -> None:
        type(secret).grants = ""
        known, _ = await keyed()
        clients = [Client(bearing(h), "/agents/demo") for h in ({}, known)]
        await PEERS[0](clients[1]).send()
        with statements() as said:
            for client in clients:
                assert (await client.get("/.well-known/agent-card.json")).status == 200
            assert (await Client(bearing({})).get("/agents/")).header("vary") is None
            assert (await Client(bearing({})).get("/agents/missing")).status == 404
        assert not said


class TestRights:
    async def test_are_read_once_for_as_long_as_credentials_are_believed(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_CREDENTIAL_SECONDS = 5.0
        clock = [1000.0]
        # Its own clock: this test's loop goes by the other.
        monkeypatch.setattr(grants, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        await run_in_thread(grant, SECRET, "key:a", "use")
        assert GrantRight.USE in await rights(caller(), SECRET)
        await run_in_thread(Grant.objects.all().delete)  # by another process
        clock[0] += 4.9
        with statements() as said:
            assert GrantRight.USE in await rights(caller(), SECRET)
        assert not said
        clock[0] += 0.2
        with statements() as said:
            assert not await rights(caller(), SECRET)
            assert not await rights(ANONYMOUS, SECRET)
        assert said

    async def test_hold_at_once_where_they_are_given(self) -> None:
        assert not await rights(caller(), SECRET)
        assert await run_in_thread(grant, SECRET, "key:a", "see")
        assert not await run_in_thread(grant, SECRET, "key:a", "see")
        assert await rights(caller(), SECRET) == {GrantRight.SEE}
        await run_in_thread(grant, "*", "scope:s", "operate")
        assert await rights(caller(scopes=frozenset({"s"})), SECRET) == {
            GrantRight.SEE,
            GrantRight.OPERATE,
        }

    async def test_of_nobody_are_those_of_everybody(self) -> None:
        for grantee in ("key:a", "scope:", "tenant:", "*"):
            if is_grantee(grantee):
                await run_in_thread(grant, SECRET, grantee, "use" if grantee == "*" else "operate")
        assert await rights(ANONYMOUS, SECRET) == {GrantRight.USE, GrantRight.SEE}

    @given(st.text("key:scoptnajwu*a ", max_size=12))
    def test_are_given_to_nobody_but_a_kind_of_caller(self, text: str) -> None:
        kind, colon, name = text.partition(":")
        kinds = {"key", "jwt", "user", "cert", "scope", "tenant"}
        assert is_grantee(text) == (
            text == "*"
            or (kind in kinds and bool(colon and name) and not (kind == "scope" and " " in name))
        )

    @pytest.mark.parametrize(
        ("agent", "grantee"),
        [
            ("A B", "*"),
            ("", "*"),
            (SECRET, ""),
            (SECRET, "bob"),
            (SECRET, "key:\n"),
            (SECRET, "tenant:a/b"),
        ],
    )
    async def test_of_no_agent_or_nobody_cannot_be_given(self, agent: str, grantee: str) -> None:
        with pytest.raises(ValueError, match=r"cannot be|is no principal"):
            await run_in_thread(grant, agent, grantee, "use")

    def test_that_are_none_are_a_mistake_of_the_agent(self, secret: Agent) -> None:
        assert not list(check(secret))
        type(secret).grants = "closed"
        assert [mistake.id for mistake in check(secret)] == ["a2a_tasks.E041"]


class TestTheCommand:
    def said(self, *words: str) -> str:
        out = StringIO()
        call_command("grants", *words, stdout=out, stderr=out)
        return out.getvalue()

    def test_grants_lists_and_takes_away(self) -> None:
        assert self.said("add", SECRET, "tenant:acme") == "Granted.\n"
        assert self.said("add", SECRET, "tenant:acme", "use") == "It is granted already.\n"
        self.said("add", "*", "key:a", "operate")
        self.said("add", "tables", "key:a", "see")
        every = "*  operate  key:a\nsecret  use  tenant:acme\ntables  see  key:a\n"
        assert self.said("list") == every
        assert "tables" not in self.said("list", SECRET)
        assert self.said("remove", SECRET, "tenant:acme") == "Taken away: 1.\n"
        with pytest.raises(CommandError):
            self.said("remove", SECRET, "tenant:acme")

    def test_says_that_an_open_agent_needs_none(self) -> None:
        assert "is open" in self.said("add", "demo", "key:a")

    def test_refuses_who_is_nobody(self) -> None:
        with pytest.raises(CommandError, match="is no principal"):
            self.said("add", SECRET, "bob")
