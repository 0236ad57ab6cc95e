"""The public keys of the host are where receivers look for them."""

from __future__ import annotations

import jwt
from django.test import Client
from pytest_django import Settings

from a2a_push import keys
from a2a_push.bearer import mint
from a2a_push.signing import Secret
from a2a_tasks.signatures.key_file import write_jwks
from tests.support.signatures.given import EDWARDS, NIST

URL = "/.well-known/jwks.json"
OLD, NEW = Secret(b"o" * 32).text, Secret(b"n" * 32).text


class TestThePage:
    def test_verifies_what_every_live_key_signs(self, client: Client, settings: Settings) -> None:
        settings.A2A_WEBHOOK_SECRETS = f"{NEW},{OLD}"
        known = jwt.PyJWKSet.from_dict(client.get(URL).json())
        for key in keys.ring().token_keys():
            token = mint(key, issuer="i", audience="a", id_="m", of={}, body=b"", now=2e9)
            kid = jwt.get_unverified_header(token)["kid"]
            claims = jwt.decode(token, known[kid], audience="a", options={"verify_iat": False})
            assert claims["jti"] == "m"
        assert len(known.keys) == 2

    def test_has_the_keys_of_cards_and_of_tokens_without_their_private_halves(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_SECRETS = OLD
        settings.A2A_PUBLIC_URL, settings.A2A_CARD_KEYS = "https://h", write_jwks([EDWARDS, NIST])
        shown = client.get(URL).json()["keys"]
        (token_key,) = keys.ring().token_keys()
        assert [key["kid"] for key in shown] == [EDWARDS.kid, NIST.kid, token_key.jwk.kid]
        for key in shown:
            assert key.keys() <= {"kty", "crv", "x", "y", "use", "alg", "kid"}
            assert key["use"] == "sig"

    def test_may_be_kept_for_a_while(self, client: Client) -> None:
        answer = client.get(URL)
        assert answer.status_code == 200
        assert answer["Content-Type"] == "application/jwk-set+json"
        assert answer["Cache-Control"] == "public, max-age=300"

    def test_has_a_tag_that_changes_with_the_keys(self, client: Client, settings: Settings) -> None:
        settings.A2A_WEBHOOK_SECRETS = OLD
        tag = client.get(URL)["ETag"]
        again = client.get(URL, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        settings.A2A_WEBHOOK_SECRETS = f"{NEW},{OLD}"
        assert client.get(URL, headers={"If-None-Match": tag}).status_code == 200
        tag = client.get(URL)["ETag"]
        settings.A2A_PUBLIC_URL = "https://h"
        assert client.get(URL, headers={"If-None-Match": tag}).status_code == 200

    def test_can_only_be_read(self, client: Client) -> None:
        assert client.head(URL).status_code == 200
        assert client.post(URL).status_code == 405
