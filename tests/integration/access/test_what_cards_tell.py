"""Cards declare what is enforced, of each agent, in every form; and challenges name the same schemes."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.access.challenges import challenges
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents.cards import card_of
from a2a_tasks.agents.security import SCHEMES, list_accepted
from a2a_tasks.protocol.errors import Unauthenticated
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.signatures.key_file import write_jwks
from tests.support.bindings.client import Client
from tests.support.protocol.card_schemas import check
from tests.support.rows import rows
from tests.support.signatures.given import NIST, by_the_sdk

BASE = "https://h"
ISSUER = "https://login.example.com/realms/main"


@pytest.fixture
def every(settings: Any) -> None:
    settings.A2A_JWT_ISSUER = ISSUER
    settings.A2A_BASIC = True
    settings.A2A_MTLS_PEERS = "10.0.0.1"


def demo() -> Agent:
    found = registry.find("demo")
    assert found is not None
    return found


class TestACard:
    def test_of_an_open_agent_promises_no_door(self, settings: Any) -> None:
        settings.A2A_ANONYMOUS = "1"
        card = card_of(demo(), BASE)
        assert not {"securitySchemes", "securityRequirements"} & card.keys()

    @pytest.mark.usefixtures("every")
    def test_of_a_closed_one_names_every_way_in(self) -> None:
        card = card_of(demo(), BASE)
        check("v10", card)
        url = f"{ISSUER}/.well-known/openid-configuration"
        assert card["securitySchemes"] == {
            "bearer": {"openIdConnectSecurityScheme": {"openIdConnectUrl": url}},
            "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
            "basic": {"httpAuthSecurityScheme": {"scheme": "Basic"}},
            "mutualTLS": {"mtlsSecurityScheme": {}},
        }
        assert card["securityRequirements"] == [
            {"schemes": {name: {"list": []}}} for name in SCHEMES
        ]

    @pytest.mark.usefixtures("every")
    def test_says_bearer_where_there_is_no_discovery(self, settings: Any) -> None:
        settings.A2A_JWT_JWKS_URL = f"{ISSUER}/keys"
        assert card_of(demo(), BASE)["securitySchemes"]["bearer"] == {
            "httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}
        }

    def test_names_the_scopes_of_the_agent_and_of_each_skill(self, guarded: Agent) -> None:
        card = card_of(guarded, BASE)
        check("v10", card)
        scopes = ["invoices", "invoices:write"]
        assert card["securityRequirements"] == [{"schemes": {"apiKey": {"list": scopes}}}]
        read, pay = card["skills"]
        assert "securityRequirements" not in read
        assert pay["securityRequirements"] == [{"schemes": {"apiKey": {"list": [*scopes, "pay"]}}}]

    @pytest.mark.usefixtures("every")
    def test_names_no_scheme_its_agent_does_not_accept(self, guarded: Agent) -> None:
        type(guarded).schemes = ["basic", "apiKey"]
        assert list(card_of(guarded, BASE)["securitySchemes"]) == ["apiKey", "basic"]

    def test_of_an_open_agent_with_a_fuller_card_says_how_to_get_it(
        self, guarded: Agent, settings: Any
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        type(guarded).scopes, type(guarded).has_extended_card = (), True
        card = card_of(guarded, BASE)
        assert "apiKey" in card["securitySchemes"]
        assert "securityRequirements" not in card

    @rows("form", [*MOUNTS, "legacy", "hybrid"])
    @pytest.mark.usefixtures("every")
    async def test_tells_it_in_every_dialect(self, form: str, client: Client) -> None:
        paths = {"legacy": ".well-known/agent.json", "hybrid": ".well-known/agent-card.json"}
        path = paths.get(form) or f"{MOUNTS[form].path}/.well-known/agent-card.json"
        card = (await client.get(f"/agents/demo/{path}")).json
        old = card.get("authentication", {}).get("schemes")
        if form in {"s0", "v00", "v01", "legacy"}:
            assert old == ["Bearer", "Basic"]
        if form in {"s0", "v00", "v01"}:
            return
        without = {"mutualTLS"} if form in {"v02", "legacy"} else set()
        named = [name for name in SCHEMES if name not in without]
        assert list(card["securitySchemes"]) == named
        if form in {"v02", "v03", "legacy", "hybrid"}:
            assert card["security"] == [{name: []} for name in named]
        if form in {"v10", "hybrid"}:
            assert [list(one["schemes"]) for one in card["securityRequirements"]] == named_each(
                named
            )

    @pytest.mark.parametrize("form", ["s0", "v00", "v01"])
    async def test_never_says_in_the_oldest_that_nothing_is_asked_for_when_keys_are(
        self, form: str, client: Client, settings: Any
    ) -> None:
        path = f"/agents/demo/{MOUNTS[form].path}/.well-known/agent-card.json"
        assert (await client.get(path)).json["authentication"] == {"schemes": ["apiKey"]}
        settings.A2A_ANONYMOUS = "1"
        assert (await client.get(path)).json["authentication"] == {"schemes": []}

    @pytest.mark.usefixtures("every")
    async def test_is_signed_with_all_it_asks_for(self, client: Client, settings: Any) -> None:
        settings.A2A_PUBLIC_URL, settings.A2A_CARD_KEYS = BASE, write_jwks([NIST])
        for path in (
            "/.well-known/agent-card.json",
            "/agents/demo/a2a/1.0/.well-known/agent-card.json",
        ):
            card = (await client.get(path)).json
            assert card["securityRequirements"]
            by_the_sdk(card, NIST)


def named_each(names: list[str]) -> list[list[str]]:
    return [[name] for name in names]


@pytest.mark.usefixtures("every")
def test_challenges_name_what_the_card_names(guarded: Agent) -> None:
    for agent in (demo(), guarded):
        words = [text.split()[0].lower() for text in challenges(Unauthenticated(), agent)]
        assert words == [name.lower() for name in list_accepted(agent)]
        assert words == [name.lower() for name in card_of(agent, BASE)["securitySchemes"]]


@pytest.mark.usefixtures("every")
def test_a_bearer_challenge_names_the_scopes_to_ask_the_issuer_for(guarded: Agent) -> None:
    first = next(iter(challenges(Unauthenticated(), guarded)))
    assert first == 'Bearer realm="a2a", scope="invoices invoices:write"'
