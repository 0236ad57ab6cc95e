"""Cards as they are served, signed: in every dialect that has signatures, once for many requests, alike everywhere."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from pytest_django import Settings

from a2a_tasks.agents import registry
from a2a_tasks.bindings.door import load_dialect, present
from a2a_tasks.caller import Caller
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.signatures import signing
from a2a_tasks.signatures.forms import strict
from a2a_tasks.signatures.key_file import write_jwks
from a2a_tasks.signatures.keys import CardKey
from a2a_tasks.signatures.verification import CardUnverified, verify
from tests.support.bindings.client import Client
from tests.support.protocol.card_schemas import check
from tests.support.signatures.given import EDWARDS, NIST, OTHER, by_the_sdk, public

HOST = "https://agents.example.com"
CARD = "/.well-known/agent-card.json"
JWKS = "/.well-known/jwks.json"
PINNED = {code: f"/agents/demo/{mount.path}{CARD}" for code, mount in MOUNTS.items()}
SIGNED = ("v10", "dr", "v03")
#: Where one finds a card that has what there is of 1.0.
OF_1_0 = (CARD, f"/agents/demo{CARD}", PINNED["v10"])


@pytest.fixture(autouse=True)
def signs(settings: Settings) -> None:
    """A host that knows where it is and has a key."""
    settings.A2A_PUBLIC_URL, settings.A2A_CARD_KEYS = HOST, write_jwks([NIST])


class TestAServedCard:
    @pytest.mark.parametrize("form", SIGNED)
    async def test_is_signed_in_the_strict_form_of_its_dialect(
        self, client: Client, form: str
    ) -> None:
        card = (await client.get(PINNED[form])).json
        check(form, card)
        found = verify(card, public(NIST), now=time.time())
        assert found.card == strict(card, form)
        assert found.header.jku == HOST + JWKS

    @pytest.mark.parametrize("path", OF_1_0)
    async def test_of_1_0_and_hybrid_is_verified_by_the_official_sdk(
        self, client: Client, path: str
    ) -> None:
        by_the_sdk((await client.get(path)).json, NIST)

    async def test_that_is_hybrid_vouches_for_its_members_of_1_0(self, client: Client) -> None:
        hybrid, strictly = (await client.get(CARD)).json, (await client.get(PINNED["v10"])).json
        assert "additionalInterfaces" in hybrid
        found = verify(hybrid, public(NIST), now=time.time()).card
        assert found.keys() == strictly.keys() - {"signatures"}

    @pytest.mark.parametrize("form", [code for code in DIALECTS if code not in SIGNED])
    async def test_of_an_older_dialect_has_no_signature(self, client: Client, form: str) -> None:
        assert "signatures" not in (await client.get(PINNED[form])).json

    async def test_is_signed_in_the_catalogue_too(self, client: Client) -> None:
        catalogue = (await client.get("/agents/")).json["agents"]
        assert len(catalogue) == len(registry.agents())
        for card in catalogue:
            verify(card, public(NIST), now=time.time())

    async def test_is_verified_with_the_keys_at_its_jku(self, client: Client) -> None:
        card, jwks = (await client.get(CARD)).json, (await client.get(JWKS)).json
        verify(card, jwks["keys"], now=time.time())
        assert {key.key_id for key in jwt.PyJWKSet.from_dict(jwks).keys} > {NIST.kid}

    async def test_is_signed_by_old_and_new_while_keys_are_rotated(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_CARD_KEYS = write_jwks([OTHER, NIST])
        card, jwks = (await client.get(CARD)).json, (await client.get(JWKS)).json["keys"]
        for key in (OTHER, NIST):
            by_the_sdk(card, key)
        expired = CardKey(NIST.kid, NIST.algorithm, NIST.jwk, {"exp": 1_000_000_000})
        settings.A2A_CARD_KEYS = write_jwks([OTHER, expired])
        now, after = (await client.get(CARD)).json, (await client.get(JWKS)).json["keys"]
        verify(now, after, now=time.time())
        assert {key["kid"] for key in jwks} - {key["kid"] for key in after} == {NIST.kid}
        with pytest.raises(CardUnverified):
            verify({**card, "signatures": card["signatures"][1:]}, after, now=time.time())

    async def test_is_not_signed_where_the_client_says_what_stands_in_it(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_PUBLIC_URL = ""
        assert "signatures" not in (await client.get(CARD)).json
        kids = {key["kid"] for key in (await client.get(JWKS)).json["keys"]}
        assert NIST.kid not in kids

    async def test_names_no_keys_that_are_not_behind_tls(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_PUBLIC_URL = "http://agents.example.com"
        card = (await client.get(CARD)).json
        assert verify(card, public(NIST), now=time.time()).header.jku == ""


class TestManyRequests:
    async def test_cost_one_signature(self, client: Client, settings: Settings) -> None:
        settings.A2A_CARD_KEYS = write_jwks([CardKey.new("ES256")])
        before = signing._signature.cache_info()
        tags = {(await client.get(PINNED["v10"])).header("etag") for _ in range(20)}
        after = signing._signature.cache_info()
        assert len(tags) == 1
        assert (after.hits, after.misses) == (before.hits, before.misses + 1)

    @pytest.mark.parametrize("key", [NIST, EDWARDS], ids=["ES256", "EdDSA"])
    async def test_get_the_same_bytes_in_every_process(
        self, client: Client, settings: Settings, key: CardKey
    ) -> None:
        """Another process has read the same key, and has nothing in its caches."""
        settings.A2A_CARD_KEYS = write_jwks([key])
        one = await client.get(CARD)
        settings.A2A_CARD_KEYS = " " + write_jwks([key])
        signing._signature.cache_clear()
        two = await client.get(CARD)
        assert (one.body, one.header("etag")) == (two.body, two.header("etag"))

    async def test_get_another_tag_with_another_key(
        self, client: Client, settings: Settings
    ) -> None:
        first = (await client.get(CARD)).header("etag") or ""
        settings.A2A_CARD_KEYS = write_jwks([OTHER, NIST])
        second = await client.get(CARD, {"if-none-match": first})
        assert second.status == 200
        assert second.header("etag") != first


class TestAnExtendedCard:
    @pytest.mark.parametrize("form", SIGNED)
    def test_is_signed_like_any_other(self, form: str) -> None:
        agent: Any = registry.find("demo")
        call = CallContext(
            agent=agent, caller=Caller(principal="user:1"), base_url=HOST, dialect=form
        )
        made = {"name": "Demo for you", "description": "More.", "version": "1", "skills": []}
        card = present(made, load_dialect(form), call)
        assert verify(card, public(NIST), now=time.time()).card["name"] == "Demo for you"
        over_http = present(made, load_dialect(form).rest, call)
        assert over_http == card
