"""The verifier: one good signature by a trusted key of today is enough, and nothing else is."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from google.protobuf.json_format import MessageToDict

from a2a_tasks.signatures.forms import loose, payload, strict
from a2a_tasks.signatures.signing import encode_base64url, sign_card
from a2a_tasks.signatures.verification import (
    MAX_COUNT,
    CardUnverified,
    SignatureHeader,
    headers,
    verify,
)
from tests.support.rows import rows
from tests.support.signatures.given import CARD, EDWARDS, NIST, NOW, OTHER, public, sign, tampered
from tests.unit.protocol.test_cards import ALL, FULL

CONTENT = encode_base64url(payload(strict(CARD, "v10")))
#: A card of somebody else's, that leaves nothing empty but what it leaves out.
ALIEN = {
    "name": "Alien",
    "description": "Ünïcödé €",
    "version": "1",
    "supportedInterfaces": [
        {"url": "https://a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
}


def why(card: dict[str, Any], jwks: list[dict[str, Any]], **more: Any) -> str:
    """What the verifier says of a card that it refuses."""
    with pytest.raises(CardUnverified) as caught:
        verify(card, jwks, **{"now": NOW, **more})
    return str(caught.value)


def by_header(header: Any, signature: bytes | None = None) -> dict[str, Any]:
    """The card with a signature by our key, whose protected header is that."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    protected = encode_base64url(text)
    made = NIST.sign(f"{protected}.{CONTENT}".encode()) if signature is None else signature
    return {**CARD, "signatures": [{"protected": protected, "signature": encode_base64url(made)}]}


class TestAVerifiedCard:
    @pytest.mark.parametrize("key", [NIST, EDWARDS], ids=["ES256", "EdDSA"])
    def test_says_by_whom_and_what_is_vouched_for(self, key: Any) -> None:
        found = verify(sign(CARD, key, jku="https://k"), public(OTHER, key), now=NOW)
        assert found.header == SignatureHeader(key.algorithm, key.kid, "https://k")
        assert not found.loose
        assert found.card == strict(CARD, "v10")

    @rows("form", ["v10", "hybrid", "dr", "v03"])
    def test_may_be_of_every_dialect_that_has_signatures(self, form: str) -> None:
        card = ALL[form]({**FULL, "signatures": []})
        told = dict(sign_card(card, form, [NIST]))
        assert verify(told, public(NIST), now=NOW).card == strict(card, form)
        assert "not match the card" in why(tampered(told, name="Evil"), public(NIST))

    def test_is_given_without_what_nobody_vouches_for(self) -> None:
        card = tampered(sign(CARD, NIST), url="https://evil", note="trust me")
        assert verify(card, public(NIST), now=NOW).card == strict(CARD, "v10")

    def test_needs_one_good_signature_of_several(self) -> None:
        card = sign(CARD, OTHER, EDWARDS, NIST)
        card["signatures"] = [3, {"protected": "!"}, *card["signatures"]]
        assert verify(card, public(NIST), now=NOW).header.kid == NIST.kid

    def test_may_come_from_the_official_sdk(self) -> None:
        message = parse_agent_card(dict(ALIEN))
        key = jwt.PyJWK.from_dict(NIST.as_dict(private=True))
        header: Any = {"kid": NIST.kid, "alg": "ES256", "jku": "https://k", "typ": "JOSE"}
        create_agent_card_signer(key, header)(message)
        found = verify(MessageToDict(message), public(NIST), now=NOW)
        assert found.header.jku == "https://k"
        assert found.card["name"] == ALIEN["name"]

    def test_may_have_been_signed_by_rsa(self) -> None:
        key = rsa.generate_private_key(65537, 2048)
        protected = encode_base64url(json.dumps({"alg": "RS256", "kid": "r"}).encode())
        algorithm = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
        made = algorithm.sign(f"{protected}.{CONTENT}".encode(), key)
        card = {
            **CARD,
            "signatures": [{"protected": protected, "signature": encode_base64url(made)}],
        }
        jwk = {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": "r"}
        del jwk["key_ops"]
        assert verify(card, [jwk], now=NOW).header.algorithm == "RS256"
        assert "not allowed" in why(card, [jwk], algorithms=["ES256", "EdDSA"])


class TestTheLooseForm:
    """Official SDKs sign and verify it; it tells nothing of what is empty."""

    card = {**CARD, "signatures": sign(CARD, NIST)["signatures"][1:]}

    def test_is_verified_only_if_asked_for(self) -> None:
        assert "not match the card" in why(self.card, public(NIST))
        found = verify(self.card, public(NIST), now=NOW, loosely=True)
        assert found.loose
        assert found.card == loose(CARD, "v10")

    def test_does_not_see_what_is_added_empty(self) -> None:
        schemes = {**CARD["securitySchemes"], "more": {"mtlsSecurityScheme": {}}}
        card = tampered(sign(CARD, NIST), securitySchemes=schemes)
        assert "not match the card" in why(card, public(NIST))
        found = verify(card, public(NIST), now=NOW, loosely=True)
        assert "more" not in found.card["securitySchemes"]

    def test_lets_a_card_pass_from_which_all_that_is_empty_was_taken(self) -> None:
        """The price of signing both: that one card and no other. `A2A_CARD_SIGNED_FORMS=strict` does not pay it."""
        stripped = dict(loose(CARD, "v10") or {})
        assert stripped != strict(CARD, "v10")
        both = {**stripped, "signatures": sign(CARD, NIST)["signatures"]}
        assert verify(both, public(NIST), now=NOW).card == stripped
        one = {**stripped, "signatures": sign(CARD, NIST, loosely=False)["signatures"]}
        assert "not match the card" in why(one, public(NIST))


class TestARefusedCard:
    def test_is_not_signed(self) -> None:
        for card in (CARD, {**CARD, "signatures": []}, {**CARD, "signatures": None}):
            assert why(card, public(NIST)) == "the card is not signed"

    @rows(
        "changed",
        [
            {"name": "Evil"},
            {"supportedInterfaces": [{**CARD["supportedInterfaces"][0], "url": "https://evil"}]},
            {"supportedInterfaces": CARD["supportedInterfaces"][::-1]},
            {"securityRequirements": []},
            {"securityRequirements": [{}]},
            {"capabilities": {**CARD["capabilities"], "streaming": False}},
            {"skills": CARD["skills"][:1]},
            {"documentationUrl": ""},
            {"iconUrl": None},
        ],
    )
    @rows("loosely", [False, True])
    def test_was_changed(self, changed: dict[str, Any], loosely: bool) -> None:
        card = tampered(sign(CARD, NIST, EDWARDS), **changed)
        assert "not match the card" in why(card, public(NIST, EDWARDS), loosely=loosely)

    def test_is_signed_by_somebody_else(self) -> None:
        assert f"no key '{NIST.kid}' is known" in why(sign(CARD, NIST), public(OTHER))

    def test_is_signed_by_somebody_else_under_a_known_name(self) -> None:
        """Confusion of kid: the name is that of a trusted key, the signature is not."""
        posing = [{**public(OTHER)[0], "kid": NIST.kid}]
        assert "not match the card" in why(sign(CARD, NIST), posing)
        found = verify(sign(CARD, NIST), [*posing, *public(NIST)], now=NOW)
        assert found.card == strict(CARD, "v10")

    @rows("algorithm", ["none", "None", "nOnE", "HS256", "HS512", "RS1", "", "es256"])
    def test_names_an_algorithm_that_is_not_allowed(self, algorithm: str) -> None:
        for signature in (b"", None):
            said = {"alg": algorithm, "kid": NIST.kid}
            assert "allowed" in why(by_header(said, signature), public(NIST))

    def test_takes_a_public_key_for_a_secret(self) -> None:
        """The oldest trick: HMAC with the public key, in whatever spelling."""
        protected = encode_base64url(json.dumps({"alg": "HS256", "kid": NIST.kid}).encode())
        for secret in (json.dumps(public(NIST)[0]).encode(), NIST.jwk.as_pem(private=False)):
            made = hmac.new(secret, f"{protected}.{CONTENT}".encode(), hashlib.sha256).digest()
            card = {
                **CARD,
                "signatures": [{"protected": protected, "signature": encode_base64url(made)}],
            }
            assert "not allowed" in why(card, public(NIST), algorithms=["HS256", "ES256"])

    def test_names_another_algorithm_than_its_key_has(self) -> None:
        for algorithm in ("ES384", "EdDSA", "RS256"):
            said = {"alg": algorithm, "kid": NIST.kid}
            assert f"is not for {algorithm}" in why(by_header(said), public(NIST))
        bare = {name: public(NIST)[0][name] for name in ("kty", "crv", "x", "y", "kid")}
        assert "not match the card" in why(by_header({"alg": "ES384", "kid": NIST.kid}), [bare])

    @rows(
        ("said", "reason"),
        [
            ({"exp": NOW}, "has expired"),
            ({"exp": NOW - 1}, "has expired"),
            ({"nbf": NOW + 1}, "is not valid yet"),
            ({"revoked": {"revoked_at": NOW - 9}}, "is revoked"),
            ({"exp": "soon"}, "cannot be read"),
            ({"use": "enc"}, "is not for signatures"),
            ({"key_ops": ["encrypt"]}, "is not for signatures"),
            ({"alg": "ES384"}, "is not for ES256"),
        ],
    )
    def test_is_signed_by_a_key_that_must_not_be_used(
        self, said: dict[str, Any], reason: str
    ) -> None:
        jwk = {**public(NIST)[0], **said}
        assert f"{reason}" in why(sign(CARD, NIST), [jwk])

    def test_is_not_saved_by_a_good_key_of_another_name(self) -> None:
        expired = {**public(NIST)[0], "exp": NOW - 1}
        assert "has expired" in why(sign(CARD, NIST), [expired, *public(OTHER)])

    @rows(
        ("header", "reason"),
        [
            (b"nonsense", "not JSON"),
            (b"[]", "not an object"),
            (b'{"alg":"ES256","kid":"a","kid":"b"}', "not JSON"),
            ({"alg": "ES256"}, "does not name"),
            ({"kid": NIST.kid}, "does not name"),
            ({"alg": "ES256", "kid": ""}, "does not name"),
            ({"alg": "ES256", "kid": [NIST.kid]}, "does not name"),
            ({"alg": "ES256", "kid": NIST.kid, "crit": ["x"]}, "critical header"),
            ({"alg": "ES256", "kid": NIST.kid, "b64": False, "crit": ["b64"]}, "critical header"),
        ],
    )
    def test_has_a_header_that_says_too_little_or_too_much(self, header: Any, reason: str) -> None:
        assert reason in why(by_header(header), public(NIST))

    def test_is_not_helped_by_what_is_not_protected(self) -> None:
        (entry,) = by_header({"alg": "ES256", "kid": "unknown"})["signatures"]
        helped = {**entry, "header": {"kid": NIST.kid, "alg": "ES256"}}
        assert "no key 'unknown'" in why({**CARD, "signatures": [helped]}, public(NIST))

    @pytest.mark.parametrize(
        "signature",
        [
            b"",
            b"\0" * 64,
            NIST.sign(b"something else"),
            NIST.sign(f"{encode_base64url(b'{}')}.{CONTENT}".encode()),
        ],
        ids=["empty", "zeros", "of other bytes", "of another header"],
    )
    def test_has_a_signature_of_something_else(self, signature: bytes) -> None:
        said = {"alg": "ES256", "kid": NIST.kid}
        assert "not match the card" in why(by_header(said, signature), public(NIST))

    def test_has_a_signature_in_der(self) -> None:
        """JWS has r and s side by side; what OpenSSL writes is another thing (RFC 7518 §3.4)."""
        private = NIST.jwk.private_key
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        protected = encode_base64url(json.dumps({"alg": "ES256", "kid": NIST.kid}).encode())
        ways = ec.ECDSA(SHA256())
        made = private.sign(f"{protected}.{CONTENT}".encode(), ways)
        card = {
            **CARD,
            "signatures": [{"protected": protected, "signature": encode_base64url(made)}],
        }
        assert "not match the card" in why(card, public(NIST))

    @rows("member", ["protected", "signature"])
    @rows("text", [None, 3, "a b", "YQ==", "+/+/", "a", "é"])
    def test_has_members_that_are_not_base64url(self, member: str, text: object) -> None:
        card = by_header({"alg": "ES256", "kid": NIST.kid})
        card["signatures"][0][member] = text
        assert f"{member} is not base64url" in why(card, public(NIST))

    @rows("signatures", [{}, "x", [{}] * (MAX_COUNT + 1)])
    def test_has_signatures_that_are_none_or_too_many(self, signatures: Any) -> None:
        assert "array of at most" in why({**CARD, "signatures": signatures or {"a": 1}}, [])

    def test_has_no_canonical_form(self) -> None:
        card = tampered(sign(CARD, NIST), version=2**60)
        assert "canonical" in why(card, public(NIST))

    @rows(
        "jwk",
        [
            {},
            {"kty": "EC"},
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
            {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"},
            {"kty": "oct", "k": "AA"},
        ],
    )
    def test_has_a_key_that_is_none(self, jwk: dict[str, Any]) -> None:
        assert "signature 1" in why(sign(CARD, NIST), [{**jwk, "kid": NIST.kid}])

    def test_is_signed_by_an_rsa_key_that_is_too_short(self) -> None:
        said = {"alg": "RS256", "kid": "r"}
        modulus = base64.urlsafe_b64encode(b"\xff" * 128).decode().rstrip("=")
        short = {"kty": "RSA", "n": modulus, "e": "AQAB", "kid": "r"}
        assert "not match the card" in why(by_header(said), [short])


class TestHeaders:
    def test_are_read_and_not_believed(self) -> None:
        card = sign(CARD, NIST, jku="https://k", loosely=False)
        card["signatures"].insert(0, {"protected": "!"})
        assert headers(card) == [SignatureHeader("ES256", NIST.kid, "https://k")]
        assert headers(CARD) == []
