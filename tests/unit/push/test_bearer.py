"""Tokens of the host are verified by what receivers have: PyJWT, the published keys, and the checks of the samples."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from hypothesis import given
from hypothesis import strategies as st

from a2a_push.bearer import TokenKey, jwks, mint
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.signatures.keys import ORDER

OLD, NEW = TokenKey.from_seed(b"o" * 48), TokenKey.from_seed(b"n" * 48)
NOW = 1_700_000_000.9
BODY = b'{"task":{"id":"task-1"}}'
ISSUER, AUDIENCE = "https://agents.example.com", "https://hooks.example.com"
CHECKS = ["iss", "aud", "iat", "exp", "jti"]


def minted(key: TokenKey = NEW, body: bytes = BODY) -> str:
    """A token of now."""
    return mint(
        key,
        issuer=ISSUER,
        audience=AUDIENCE,
        id_="msg_1",
        of={"taskId": "task-1", "tenant": "acme"},
        body=body,
        now=NOW,
    )


def verified(token: str, *published: TokenKey, audience: str = AUDIENCE) -> dict[str, object]:
    """What a receiver reads in it, at the time it was made. Raises jwt.InvalidTokenError, KeyError."""
    known = jwt.PyJWKSet.from_dict(jwks(published))
    key = known[jwt.get_unverified_header(token)["kid"]]
    found: dict[str, object] = jwt.decode(
        token,
        key,
        algorithms=["ES256"],
        audience=audience,
        issuer=ISSUER,
        options={"require": CHECKS, "verify_exp": False, "verify_iat": False},
    )
    return found


class TestAToken:
    def test_says_who_to_whom_of_what_and_until_when(self) -> None:
        assert verified(minted(), NEW) == {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": 1_700_000_000,
            "exp": 1_700_000_300,
            "jti": "msg_1",
            "taskId": "task-1",
            "tenant": "acme",
            "request_body_sha256": hashlib.sha256(BODY).hexdigest(),
        }

    def test_names_algorithm_type_and_key(self) -> None:
        header = jwt.get_unverified_header(minted())
        assert header == {"alg": "ES256", "typ": "JWT", "kid": NEW.jwk.kid}

    def test_is_for_one_receiver(self) -> None:
        with pytest.raises(jwt.InvalidAudienceError):
            verified(minted(), NEW, audience="https://else.example.com")

    def test_that_was_changed_is_none(self) -> None:
        head, _, signature = minted().split(".")
        claims = minted(body=b"{}").split(".")[1]
        with pytest.raises(jwt.InvalidSignatureError):
            verified(f"{head}.{claims}.{signature}", NEW)

    def test_of_an_unknown_key_is_none(self) -> None:
        with pytest.raises(KeyError):
            verified(minted(NEW), OLD)

    @given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
    def test_holds_the_hash_the_samples_compute_from_the_parsed_body(
        self, tree: dict[str, object]
    ) -> None:
        """They parse the body and write it again, without white space and without escapes."""
        body = write(tree)
        again = json.dumps(json.loads(body), ensure_ascii=False, separators=(",", ":"))
        expected = hashlib.sha256(again.encode()).hexdigest()
        assert verified(minted(body=body), NEW)["request_body_sha256"] == expected


class TestTheKeySet:
    def test_verifies_old_and_new(self) -> None:
        for key in (OLD, NEW):
            assert verified(minted(key), NEW, OLD)["jti"] == "msg_1"

    def test_holds_nothing_private(self) -> None:
        for shown in jwks([NEW, OLD])["keys"]:
            assert set(shown) == {"kty", "crv", "x", "y", "kid", "use", "alg"}
            assert (shown["kty"], shown["crv"], shown["use"], shown["alg"]) == (
                "EC",
                "P-256",
                "sig",
                "ES256",
            )

    def test_names_keys_by_their_thumbprint(self) -> None:
        """RFC 7638 §3: the required members in order, without white space."""
        (shown,) = jwks([NEW])["keys"]
        required = {name: shown[name] for name in ("crv", "kty", "x", "y")}
        digest = hashlib.sha256(json.dumps(required, separators=(",", ":")).encode()).digest()
        assert shown["kid"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")


class TestAKey:
    @pytest.mark.parametrize("seed", [b"\x00" * 48, b"\xff" * 48, ORDER.to_bytes(48, "big")])
    def test_can_be_made_of_any_seed(self, seed: bytes) -> None:
        assert verified(minted(TokenKey.from_seed(seed)), TokenKey.from_seed(seed))

    def test_is_not_shown(self) -> None:
        assert re.fullmatch(r"<.*TokenKey object at 0x[0-9a-f]+>", repr(NEW))

    def test_counts_to_the_order_of_the_curve(self) -> None:
        """One less than the order is minus one: the generator, upside down."""
        one, less = (
            derive_private_key(scalar, SECP256R1()).public_key().public_numbers()
            for scalar in (1, ORDER - 1)
        )
        assert one.x == less.x
        assert one.y != less.y
